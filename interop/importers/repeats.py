"""Tells sessions apart that bear one name in several sources, such as two threads called ``1``."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import final

import msgspec

from ...engine import codec
from ...engine.events import SessionOpened
from ...engine.records import TRACE
from .protocol import Foreign, Found, Remark

__all__ = ("SessionNames",)


@final
class SessionNames:
    """Goes over the sources of one import in order.

    A session that is there again with the same events, or with more of them, keeps its name, and is
    taken on from where it was. One with other events is another session: it gets the name of its
    file behind its own.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Path, array[int]]] = {}

    def told_apart(self, source: Path, found: Iterable[Found]) -> Iterator[Found]:
        """What was read in a source, with the names that its sessions have in this import."""
        renamed: dict[str, str] = {}
        waiting: list[Foreign] = []  # of a session that may be one that is known
        for one in found:
            if isinstance(one, Remark):
                yield one
                continue
            opens = isinstance(one.draft.event, SessionOpened)
            if opens:
                yield from waiting
                waiting = []
                renamed.pop(one.session, None)
            known = self._seen.get(one.session)
            if known is None:
                known = self._seen[one.session] = (source, array("q"))
            first, marks = known
            if first == source:
                self._note(one, marks)
                yield one
            elif one.session in renamed:
                yield _under(one, renamed)
            elif _differs(one, sum(other.stream == TRACE for other in waiting), marks):
                name = f"{one.session}-{source.stem}"
                renamed[one.session] = name
                what = f"another session is called {one.session!r} in {first}: this is {name!r}"
                yield Remark("difference", what, str(source), name)
                yield from (_under(other, renamed) for other in (*waiting, one))
                waiting = []
            else:
                waiting.append(one)
        yield from waiting

    def _note(self, one: Foreign, marks: array[int]) -> None:
        if one.stream == TRACE:
            marks.append(_mark(one))


def _differs(one: Foreign, place: int, marks: array[int]) -> bool:
    """Whether an event is another one than the session has there; openings may grow."""
    if one.stream != TRACE or not place or place >= len(marks):
        return False
    return marks[place] != _mark(one)


def _mark(one: Foreign) -> int:
    draft = one.draft
    return hash((draft.actor, draft.role, draft.time, codec.encode_body(draft.event)))


def _under(one: Foreign, names: dict[str, str]) -> Foreign:
    """The event of a session under its other name, which its forks name as well."""
    event = one.draft.event
    if isinstance(event, SessionOpened):
        origin = event.forked_from
        if origin is not None and origin.session in names:
            origin = msgspec.structs.replace(origin, session=names[origin.session])
            event = msgspec.structs.replace(event, forked_from=origin)
            one = one._replace(draft=msgspec.structs.replace(one.draft, event=event))
    return one._replace(session=names[one.session])
