"""Which formats a small file could be, where its beginning does not say."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

from ...engine.events import ActionTaken, MessageSent
from ...engine.plugins import PluginCall
from .protocol import Foreign, Importer, Reading, Remark

__all__ = ("candidates_for",)

_LARGEST: Final = 1 << 16  # bytes of a file that is tried
_LOOK: Final = 1000  # events of it that are looked at


def candidates_for(source: Path, importers: Iterable[Importer]) -> list[str]:
    """Names of the importers that find something said or done in a small file, and nothing wrong.

    Args:
        source: a file that none of them recognises; of a large one nothing is read.
        importers: are tried one after the other.
    """
    if not source.is_file() or source.stat().st_size > _LARGEST:
        return []
    return [importer.name for importer in importers if _reads(importer, source)]


def _reads(importer: Importer, source: Path) -> bool:
    """Whether an importer can read a file, and finds an act in it."""
    try:
        with PluginCall(f"importer {importer.name!r}"):
            found = list(islice(importer.read(source, Reading()), _LOOK))
    except Exception:  # noqa: BLE001  (whatever it raises, it is not of this format)
        return False
    if any(isinstance(one, Remark) and one.kind == "problem" for one in found):
        return False
    return any(
        isinstance(one, Foreign) and isinstance(one.draft.event, MessageSent | ActionTaken)
        for one in found
    )
