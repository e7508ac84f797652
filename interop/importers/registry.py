"""Which importers there are, and which of them a source is for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint
from itertools import islice
from pathlib import Path
from typing import Final

from ...engine.budget import is_inside
from ...engine.errors import InvalidInput
from ...engine.events import ActionTaken, MessageSent
from ...engine.loading import entry_points
from ...engine.plugins import PluginCall
from ...engine.text import suggestion
from .json_sniff import Shape, shape_of
from .protocol import Diagnostic, Foreign, Importer, Reading

__all__ = (
    "ENDINGS",
    "candidates_for",
    "entries_of",
    "find_importer",
    "importer_names",
    "installed_importers",
    "recognise",
)

GROUP: Final = "duolog.importers"
ENDINGS: Final = frozenset({".json", ".jsonl", ".ndjson", ".eval", ".traj", ".parquet"})
"""Of files that may hold conversations."""
_HIDDEN: Final = "."
"""How names begin that are passed over."""


def importer_names() -> list[str]:
    """Names of the formats that installed packages can import, in alphabetical order."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def find_importer(name: str) -> Importer:
    """The importer of a format.

    Raises:
        InvalidInput: there is none of this name, or there are several.
    """
    found = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not found:
        raise InvalidInput(f"unknown format {name!r}{suggestion(name, importer_names())}")
    if len({entry.value for entry in found}) > 1:
        packages = ", ".join(sorted(entry.value for entry in found))
        raise InvalidInput(f"several packages offer an importer {name!r}: {packages}")
    return _load(found[0])


def installed_importers() -> list[Importer]:
    """All importers, in the order of their names.

    Raises:
        InvalidInput: several packages offer one of the same name.
    """
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise InvalidInput(
                f"several packages offer an importer {entry.name!r}: {other.value}, {entry.value}"
            )
    return [_load(entry) for entry in found.values()]


def recognise(source: Path, importers: Iterable[Importer] | None = None) -> Importer | None:
    """The importer that recognises a source; None if none does, and for a directory that holds files
    of other formats as well.

    Args:
        source: a file or a directory.
        importers: the importers to ask; None for all that are installed. Finding these takes far
            longer than asking them, so for many files find them once.

    Raises:
        InvalidInput: the source cannot be read, or several recognise it.
    """
    if not source.exists():
        raise InvalidInput(f"cannot read {source}: No such file or directory")
    shape: Shape | None = None if source.is_dir() else shape_of(source)
    asked = installed_importers() if importers is None else list(importers)
    found = [importer for importer in asked if importer.recognises(source, shape)]
    if len(found) > 1:
        *names, last = (importer.name for importer in found)
        raise InvalidInput(
            f"{source} looks like {', '.join(names)} and {last}: say which, with --format"
        )
    if not found or (source.is_dir() and _holds_others(source, found[0], asked)):
        return None
    return found[0]


def entries_of(directory: Path, seen: set[Path], root: Path) -> list[Path]:
    """The files and directories in a directory, by their names. Hidden ones are left out, as are
    pipes and the like, and links that lead out of the root.

    Args:
        directory: the directory to search.
        root: the directory that is imported.
        seen: directories that were searched; none of them is searched again, since a link may lead
            back to it. This one is added.

    Raises:
        OSError: it cannot be read.
    """
    real = directory.resolve()
    if real in seen:
        return []
    seen.add(real)
    shown = (path for path in directory.iterdir() if not path.name.startswith(_HIDDEN))
    found = sorted(path for path in shown if path.is_dir() or path.is_file())
    return [path for path in found if is_inside(path, root)]


def _importable_below(directory: Path, seen: set[Path], root: Path) -> Iterator[Path]:
    """The files below a directory that may hold conversations, by their names. Unreadable ones are
    left out.
    """
    try:
        paths = entries_of(directory, seen, root)
    except OSError:
        return
    for path in paths:
        if path.is_dir():
            yield from _importable_below(path, seen, root)
        elif path.suffix in ENDINGS:
            yield path


def _holds_others(directory: Path, importer: Importer, asked: Iterable[Importer]) -> bool:
    """Whether a file below a directory is of a format that the importer of the whole does not read."""
    others = [one for one in asked if one is not importer]
    for path in _importable_below(directory, set(), directory):
        try:
            shape = shape_of(path)
        except InvalidInput:
            continue
        if not importer.recognises(path, shape) and any(
            other.recognises(path, shape) for other in others
        ):
            return True
    return False


def _load(entry: EntryPoint) -> Importer:
    importer: Importer = entry.load()()
    return importer


# --- which formats a small file could be, if its beginning does not say ------------------------


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
    if any(isinstance(one, Diagnostic) and one.kind == "problem" for one in found):
        return False
    return any(
        isinstance(one, Foreign) and isinstance(one.draft.event, MessageSent | ActionTaken)
        for one in found
    )
