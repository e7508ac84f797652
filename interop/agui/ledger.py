"""What is to be recorded, before it is known who in the session does it, and whether it is new."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ...engine.events import JSON, Event, Role, Unknown
from ...telemetry.actor import Actor, Awaited
from ...telemetry.receipt import Receipt
from .known import Known, kept, mark_of, said_by, unstamped
from .names import AguiEvent

__all__ = ("Book", "Deed", "Filed", "adding", "seconds_of")

Deed: TypeAlias = Callable[[Actor[Awaited], float], Awaited]
"""Does it, as an actor, at a time."""


class Filed(NamedTuple):
    """Something to record, or to remark on, or both.

    Attributes:
        do: records it; None for a remark alone.
        role: whose it is.
        name: of the actor; None for the first of that role.
        at: when it was, UTC epoch seconds; None for now.
        problem: what is wrong with it; None where all is well.
        done: told of the receipt.
    """

    do: Deed | None = None
    role: Role = "environment"
    name: str | None = None
    at: float | None = None
    problem: str | None = None
    done: Callable[[Receipt], None] | None = None


class Book:
    """Keeps count of what is known, and makes what is new into something to record.

    Attributes:
        known: what the log holds; brought up to date with all that is filed.
        run: id of the run that is open.
        new: whether it is the first time that this run is told.
    """

    def __init__(self, known: Known) -> None:
        self.known = known
        self.run = ""
        self.new = False

    def open_run(self, run: str, *, new: bool) -> None:
        """A run begins, which the log has or has not; in it, what has no id is counted anew."""
        self.run = run
        self.new = new
        self.known.counts.clear()

    def fresh(self, ident: str, mark: str) -> str | None:
        """The id under which to record something, another one if it says something else than what
        has that id; None where the log has it.
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
        """An id for an event that has none: the same whenever its run is told again; None where the
        log has it.
        """
        kind = str(event.get("type"))
        mark = said_by(event)
        self.known.counts[kind, mark] += 1
        number = self.known.counts[kind, mark]
        ident = f"run/{self.run[:160]}/{kind[:80]}/{mark[:16]}/{number}"
        if ident in self.known.marks:
            return None
        self.known.marks[ident] = mark
        return ident

    def keep(
        self, event: AguiEvent, problem: str | None = None, *, kind: str | None = None
    ) -> list[Filed]:
        """Keeps an event as it came, unless the log has it."""
        ident = self.scoped(event)
        if ident is None:
            return []
        return [
            adding(kept(event, kind), ident, at=seconds_of(event.get("timestamp")), problem=problem)
        ]

    def keep_as(self, ident: str, event: AguiEvent, problem: str) -> list[Filed]:
        """Keeps what came with an id of its own, or in a list that comes again with each run."""
        held = kept(unstamped(event))
        fresh = self.fresh(ident, mark_of(held))
        if fresh is None:
            return []
        return [adding(held, fresh, at=seconds_of(event.get("timestamp")), problem=problem)]

    def keep_fields(self, ident: str, fields: AguiEvent) -> list[Filed]:
        """Keeps what an event said besides what the log's own events hold, if anything."""
        said = {key: value for key, value in fields.items() if value is not None}
        named = f"{ident}/fields"
        if not said or named in self.known.marks:
            return []
        self.known.marks[named] = ""
        return [adding(kept({"of": ident, "fields": said}, "fields"), named)]


def adding(
    event: Event | Unknown,
    ident: str,
    *,
    role: Role = "environment",
    name: str | None = None,
    at: float | None = None,
    problem: str | None = None,
    done: Callable[[Receipt], None] | None = None,
) -> Filed:
    """Adds an event as it is."""

    def do(actor: Actor[Awaited], at: float) -> Awaited:
        return actor.adds(event, id=ident, at=at)

    return Filed(do, role, name, at, problem, done)


def seconds_of(stamp: JSON) -> float | None:
    """A time stamp in seconds; in milliseconds, as everybody has it, or in seconds."""
    if isinstance(stamp, bool) or not isinstance(stamp, (int, float)):
        return None
    if 1e11 <= stamp <= 1e14:
        return stamp / 1000
    return float(stamp) if 1e9 <= stamp < 1e11 else None
