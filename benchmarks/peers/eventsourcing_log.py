"""A peer of the log: ``eventsourcing``, if it is installed (``pip install eventsourcing``).

Each event is saved by itself, as its users do.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from duolog.benchmarks.workloads.typical_events import EVENTS

__all__ = ("PACKAGE", "append_theirs", "read_theirs")

PACKAGE = "eventsourcing"


@functools.cache
def their_application() -> Any:  # noqa: ANN401 (its type needs the library)
    """An application of ``eventsourcing``'s that reads as many events at a time as we do."""
    application = importlib.import_module("eventsourcing.application")

    class Sessions(application.Application):  # type: ignore[misc, name-defined]
        log_section_size = 10

    return Sessions


@functools.cache
def their_aggregate() -> Any:  # noqa: ANN401 (its type needs the library)
    """An aggregate of ``eventsourcing``'s, to which things happen."""
    domain = importlib.import_module("eventsourcing.domain")

    class Session(domain.Aggregate):  # type: ignore[misc, name-defined]
        @domain.event("Happened")  # type: ignore[untyped-decorator]
        def happen(self, what: object) -> None:
            pass

    return Session


def theirs(path: Path, sessions: int) -> tuple[Any, list[Any]]:
    """An application of ``eventsourcing``'s on a SQLite file, with an aggregate per session."""
    source = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)}
    aggregate = their_aggregate()
    return their_application()(env=source), [aggregate() for _ in range(sessions)]


def append_theirs(path: Path, sessions: int, count: int) -> Callable[[], int]:
    """Saves one event at a time, from as many aggregates as there are sessions."""
    app, aggregates = theirs(path, sessions)
    bodies = [msgspec.to_builtins(event) for event in EVENTS]

    def save() -> int:
        for number in range(count):
            aggregate = aggregates[number % sessions]
            aggregate.happen(bodies[number % len(bodies)])
            app.save(aggregate)
        app.close()
        return count

    return save


def read_theirs(path: Path, count: int) -> Callable[[bool], int]:
    """Reads notifications in the sections that they come in; decodes them if it is told to."""
    app, aggregates = theirs(path, 100)
    bodies = [msgspec.to_builtins(event) for event in EVENTS]
    for aggregate in aggregates:
        for number in range(count // 100):
            aggregate.happen(bodies[number % len(bodies)])
        app.save(aggregate)

    def read(decode: bool) -> int:
        start, read = 1, 0
        while notifications := app.notification_log.select(start=start, limit=10):
            if decode:
                for notification in notifications:
                    app.mapper.to_domain_event(notification)
            read += len(notifications)
            start = notifications[-1].id + 1
        return read

    return read
