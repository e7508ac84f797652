"""Entries to record, and the check that each is new."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ...engine.events import JSON, Event, Role, Unknown
from ...telemetry.actor import RecordedActor
from ...telemetry.receipt import Awaited, Receipt
from .names import AguiEvent
from .thread_index import ThreadIndex, agui_digest, event_digest, without_timestamp, wrap_event

__all__ = ("AguiEntry", "Deduplicator", "RecordEntry", "add_entry", "parse_timestamp")

RecordEntry: TypeAlias = Callable[[RecordedActor[Awaited], float], Awaited]
"""Records an entry, as an actor, at a time."""


class AguiEntry(NamedTuple):
    """Something to record, a diagnostic, or both.

    Attributes:
        do: records it; None for a diagnostic alone.
        role: the role of the actor.
        name: the name of the actor; None for the first of that role.
        at: time, UTC epoch seconds; None for now.
        problem: what is wrong with it; None for nothing.
        done: called with the receipt.
    """

    do: RecordEntry | None = None
    role: Role = "environment"
    name: str | None = None
    at: float | None = None
    problem: str | None = None
    done: Callable[[Receipt], None] | None = None


class Deduplicator:
    """Makes entries for items missing from the log, and adds them to the index.

    Attributes:
        known: the items in the log or about to be recorded.
        run: id of the run that is open.
        new: whether the log did not hold this run.
    """

    def __init__(self, known: ThreadIndex) -> None:
        self.known = known
        self.run = ""
        self.new = False

    def open_run(self, run: str, *, new: bool) -> None:
        """Begins a run; events without an id are counted from 0 in it."""
        self.run = run
        self.new = new
        self.known.counts.clear()

    def fresh(self, ident: str, mark: str) -> str | None:
        """The id under which to record an event: its own, or one made from its digest if another
        event has that id; None if the log holds the event.
        """
        marks = self.known.marks
        held = marks.get(ident)
        if held == mark:
            return None
        if held is not None:
            ident = f"{ident}/{mark[:12]}"
            if ident in marks:
                return None
        marks[ident] = mark
        return ident

    def scoped(self, event: AguiEvent) -> str | None:
        """An id for an event that has none, the same whenever its run is received; None if the log
        holds it.
        """
        kind = str(event.get("type"))
        mark = agui_digest(event)
        self.known.counts[kind, mark] += 1
        number = self.known.counts[kind, mark]
        ident = f"run/{self.run[:160]}/{kind[:80]}/{mark[:16]}/{number}"
        if ident in self.known.marks:
            return None
        self.known.marks[ident] = mark
        return ident

    def keep(self, event: AguiEvent, problem: str | None = None) -> list[AguiEntry]:
        """An entry of an event as it was received, unless the log holds it."""
        ident = self.scoped(event)
        if ident is None:
            return []
        return [
            add_entry(
                wrap_event(event),
                ident,
                at=parse_timestamp(event.get("timestamp")),
                problem=problem,
            )
        ]

    def keep_as(self, ident: str, event: AguiEvent, problem: str) -> list[AguiEntry]:
        """An entry, as received, of an event with its own id or from a list that runs repeat."""
        held = wrap_event(without_timestamp(event))
        fresh = self.fresh(ident, event_digest(held))
        if fresh is None:
            return []
        return [add_entry(held, fresh, at=parse_timestamp(event.get("timestamp")), problem=problem)]

    def keep_fields(self, ident: str, fields: AguiEvent) -> list[AguiEntry]:
        """An entry of the fields that do not fit the log's own events, if there are any."""
        said = {key: value for key, value in fields.items() if value is not None}
        named = f"{ident}/fields"
        if not said or named in self.known.marks:
            return []
        self.known.marks[named] = ""
        return [add_entry(wrap_event({"of": ident, "fields": said}, "fields"), named)]


def add_entry(
    event: Event | Unknown,
    ident: str,
    *,
    role: Role = "environment",
    name: str | None = None,
    at: float | None = None,
    problem: str | None = None,
    done: Callable[[Receipt], None] | None = None,
) -> AguiEntry:
    """An entry that adds an event as it is."""

    def do(actor: RecordedActor[Awaited], at: float) -> Awaited:
        return actor.adds(event, id=ident, at=at)

    return AguiEntry(do, role, name, at, problem, done)


def parse_timestamp(stamp: JSON) -> float | None:
    """A time stamp, given in milliseconds or seconds, in seconds; None for anything else."""
    if isinstance(stamp, bool) or not isinstance(stamp, (int, float)):
        return None
    if 1e11 <= stamp <= 1e14:
        return stamp / 1000
    return float(stamp) if 1e9 <= stamp < 1e11 else None
