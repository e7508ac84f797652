"""Lines of a session: what goes on where a person took something back while the session was followed.

What was recorded stays. Where a source goes on in another way than the log has it, the session ends
there, and what goes on is a fork of it: the session's next line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import final

import msgspec

from ...engine.events import Origin, SessionOpened
from .json_sniff import Shape
from .protocol import Foreign, Found, Importer, Reading

__all__ = ("LineImporter",)


@final
class LineImporter:
    """Reads what another importer reads, with a session that was parted under the name of its last
    line.

    Args:
        importer: reads the source.
    """

    def __init__(self, importer: Importer) -> None:
        self._importer = importer
        self._cuts: dict[str, list[int]] = {}
        self._lines: dict[str, str] = {}  # the session that a line belongs to

    @property
    def name(self) -> str:
        """The format."""
        return self._importer.name

    @property
    def about(self) -> str:
        """In a few words."""
        return self._importer.about

    def part(self, parted: Mapping[str, int]) -> None:
        """From now on, what these sessions go on with is their next line.

        Args:
            parted: by session or line, the last version that it shares with what goes on.
        """
        for name, version in parted.items():
            session = self._lines.get(name, name)
            self._cuts.setdefault(session, []).append(version)
            self._lines[_line(session, len(self._cuts[session]))] = session

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a source looks like the format."""
        return self._importer.recognises(source, shape)

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads a source.

        Raises:
            InvalidInput: it cannot be read.
        """
        left_out = False
        for one in self._importer.read(source, reading):
            if not isinstance(one, Foreign):
                yield one
                continue
            event = one.draft.event
            if isinstance(event, SessionOpened):
                # The branches of a session that has lines are those lines.
                left_out = event.forked_from is not None and event.forked_from.session in self._cuts
            if not left_out:
                yield self._in_line(one)

    def _in_line(self, one: Foreign) -> Foreign:
        cuts = self._cuts.get(one.session)
        if cuts is None:
            return one
        name = _line(one.session, len(cuts))
        event = one.draft.event
        if not isinstance(event, SessionOpened):
            return one._replace(session=name)
        origin = Origin(session=_line(one.session, len(cuts) - 1), version=cuts[-1])
        opened = msgspec.structs.replace(event, forked_from=origin)
        return one._replace(session=name, draft=msgspec.structs.replace(one.draft, event=opened))


def _line(session: str, cuts: int) -> str:
    return f"{session}-line-{cuts + 1}" if cuts else session
