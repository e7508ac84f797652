"""Who worked when: stretches of work, folded from a session's trace.

An actor's work on an act is taken to begin when the latest record came that the actor had seen when
it decided, or at its own act before, if that was later; it ends with the act. The environment works
on an action from its beginning to its outcome.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import NamedTuple, final

from ....engine.events import ACTS, ActionResolved
from ....engine.records import TRACE, Record

__all__ = ("Stint", "WorkFold")

_WORK = ACTS | {"NoteTaken", "TurnYielded", "ProgressRated"}


class Stint(NamedTuple):
    """A stretch of work: who, from when to when, and the number of the record that it led to."""

    actor: str
    begin: float
    end: float
    number: int


@final
class WorkFold:
    """Folds records of the trace into stretches of work."""

    def __init__(self) -> None:
        self._stints: list[Stint] = []
        self._times = array("d")  # by trace version, from 1
        self._versions = array("q")
        self._latest: dict[str, float] = {}
        self._actions: dict[int, float] = {}

    def feed(self, record: Record, number: int) -> None:
        """Takes the next record, which has this number in its session."""
        if record.stream != TRACE:
            return
        self._times.append(record.time)
        self._versions.append(record.version)
        actor, time = record.actor, record.time
        if record.kind == "ActionResolved":
            event = record.event
            began = (
                self._actions.pop(event.action, time) if isinstance(event, ActionResolved) else time
            )
            self._stints.append(Stint(actor, began, time, number))
            return
        if record.kind == "ActionTaken":
            self._actions[record.version] = time
        if record.kind not in _WORK or record.role not in ("human", "agent"):
            return
        began = max(self._time_of(record.seen), self._latest.get(actor, float("-inf")))
        began = time if began == float("-inf") else min(began, time)
        self._latest[actor] = time
        self._stints.append(Stint(actor, began, time, number))

    def _time_of(self, version: int | None) -> float:
        """When a version came, or the last one before it that may be seen."""
        if version is None:
            return float("-inf")
        place = bisect_left(self._versions, version + 1)
        return self._times[place - 1] if place else float("-inf")

    def since(self, after: int) -> list[Stint]:
        """The stretches that led to records behind this number."""
        return self._stints[bisect_left(self._stints, after + 1, key=lambda one: one.number) :]
