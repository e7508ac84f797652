"""The cost of the agents of a session, and how long their answers took."""

from __future__ import annotations

from array import array
from typing import Final, final

import msgspec

from ..engine.events import ACTS, ModelCalled
from ..engine.records import TRACE, Record

__all__ = ("CostFold", "Costs")

_ANSWERS: Final = frozenset({"MessageSent", "SnapshotTaken"})


class Costs(msgspec.Struct, frozen=True):
    """The costs of the agents of a session.

    Attributes:
        dollars: US dollars for their model calls with a known price; None if no call has one.
        unpriced: model calls without a known price, which ``dollars`` leaves out.
        latency: median seconds from a human's act to the next message or version of an agent; None
            without an answer, or if the source has no times.
    """

    dollars: float | None = None
    unpriced: int = 0
    latency: float | None = None


@final
class CostFold:
    """Folds the records of a session into its costs, in order."""

    def __init__(self) -> None:
        self._dollars: float | None = None
        self._unpriced = 0
        self._asked: float | None = None
        self._answers = array("d")

    @property
    def costs(self) -> Costs:
        """The costs so far."""
        latency = None
        if self._answers:
            from statistics import median  # slow to load

            latency = median(self._answers)
        return Costs(self._dollars, self._unpriced, latency)

    def feed(self, record: Record) -> None:
        """Takes the next record of the session, of any stream.

        Raises:
            CodecError: the body of an agent's model call is damaged.
        """
        kind, role = record.kind, record.role
        if kind == "ModelCalled" and role == "agent":
            if isinstance(call := record.event, ModelCalled):
                self._called(call)
        elif record.stream != TRACE:
            return
        elif role == "human" and kind in ACTS:
            self._asked = record.time
        elif role == "agent" and kind in _ANSWERS:
            # A source without times has all records at one moment: that is not an answer in no time.
            if self._asked is not None and record.time > self._asked:
                self._answers.append(record.time - self._asked)
            self._asked = None

    def _called(self, call: ModelCalled) -> None:
        if call.cost is None:
            self._unpriced += 1
        else:
            self._dollars = (self._dollars or 0.0) + call.cost
