"""Checks the contract of importers on a source: ``check_importer``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

import anyio.to_thread

from ...engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    Unknown,
    UtilityScored,
)
from ...engine.files import files_problem
from ...engine.log.memory import MemoryLog
from ...engine.records import TRACE
from ...interop.importers.protocol import Foreign, Found, Importer, Reading
from ...interop.importers.run import import_foreign
from ..tools import collect, require

__all__ = ("check_importer",)


async def check_importer(importer: Importer, source: Path, reading: Reading | None = None) -> None:
    """Checks that an importer keeps its contract on a source that it can read.

    Two readings are equal; the events of a session are contiguous, its opening is the first and its
    close the last; events refer to earlier ones; every actor is a participant; importing twice adds
    nothing; and the log accepts everything.

    Args:
        importer: reads one format.
        source: a file or directory of that format.
        reading: how it is read.

    Raises:
        AssertionError: the contract is broken; the message says where.
    """
    how = reading or Reading()

    def read() -> list[Found]:
        return list(importer.read(source, how))

    first = await anyio.to_thread.run_sync(read)
    second = await anyio.to_thread.run_sync(read)
    require(first == second, "a source must read the same each time")
    events = [one for one in first if isinstance(one, Foreign)]
    require(bool(events), f"{source} must hold a session")
    names = [name for name, _ in groupby(events, lambda one: one.session)]
    require(len(names) == len(set(names)), "a session must come in one piece")
    for name in names:
        _check_session(name, [one for one in events if one.session == name])
    async with MemoryLog() as log:
        taken = await import_foreign(log, source, importer, reading=how, keep_going=True)
        again = await import_foreign(log, source, importer, reading=how, keep_going=True)
        require(taken.records == len(events), f"{taken.records} of {len(events)} events were taken")
        require(again.records == 0, f"importing again added {again.records} events")
        require(len(await collect(log.sessions())) == len(names), "sessions must have own names")
        problems = (await log.verify()).problems
        require(not problems, f"the log finds {problems} wrong")


def _check_session(name: str, found: list[Foreign]) -> None:
    trace = [one.draft for one in found if one.stream == TRACE]
    events = [draft.event for draft in trace]
    openings = [event for event in events if isinstance(event, SessionOpened)]
    first = openings[:1] == events[:1] and bool(openings)
    require(first, f"session {name!r} must be opened before anything else")
    require(len(openings) == 1, f"session {name!r} must be opened once")
    closed = [n for n, event in enumerate(events, 1) if isinstance(event, SessionClosed)]
    require(closed in ([], [len(events)]), f"session {name!r} must be closed once, at its end")
    announced = {(one.name, one.role) for one in openings[0].participants}
    for draft in trace:
        if draft.role in ("human", "agent"):
            who = (draft.actor, draft.role)
            require(who in announced, f"{who} acts in session {name!r}, and is no participant")
    _check_references(name, events)
    for one in found:
        if one.stream != TRACE:
            require(one.draft.role == "scorer", f"stream {one.stream!r} is a scorer's only")
            scored = one.draft.event
            if isinstance(scored, UtilityScored) and scored.snapshot is not None:
                _refers(name, events, scored.snapshot, SnapshotTaken, len(events) + 1)


def _check_references(name: str, events: list[Event | Unknown]) -> None:
    resolved: set[int] = set()
    files: Mapping[str, str] = {}
    for version, event in enumerate(events, start=1):
        if isinstance(event, ActionResolved):
            _refers(name, events, event.action, ActionTaken, version)
            require(event.action not in resolved, f"action {event.action} is resolved twice")
            resolved.add(event.action)
        elif isinstance(event, ApprovalGiven):
            _refers(name, events, event.asked, ApprovalAsked, version)
        elif isinstance(event, SnapshotTaken):
            problem = files_problem(event, files)
            require(problem is None, f"snapshot {version}: {problem}")
            files = event.files or {}
            if event.base is not None:
                _refers(name, events, event.base, SnapshotTaken, version)


def _refers(
    name: str, events: list[Event | Unknown], to: int, kind: type[Event], before: int
) -> None:
    found = events[to - 1] if 1 <= to < before else None
    require(isinstance(found, kind), f"version {to} of session {name!r} is no {kind.__name__}")
