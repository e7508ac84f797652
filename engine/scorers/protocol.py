"""The protocol of scorers: they follow a session's trace and measure, in their own streams.

The engine itself does not define metrics. It hands each trace record, and each round that closes, to
the scorers in order. It records their measurements under a deterministic identity, so redelivery
records nothing twice. Rounds, effort and tolerance are folded from the log, without a scorer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from ..events import Event, ScorerRef
from ..records import Record
from ..rounds import Round, Rounds

__all__ = (
    "Attended",
    "Computing",
    "Cost",
    "Measurement",
    "RoundScorer",
    "Scorer",
    "SessionScorer",
    "measurement_id",
    "stream_of",
)

Cost: TypeAlias = Literal["quick", "computes", "waits"]
"""The cost of scoring a record: ``quick`` takes less than a millisecond and waits for nothing;
``computes`` may take longer and waits for nothing; ``waits`` awaits something.
"""


class Measurement(NamedTuple):
    """A measurement and its subject.

    Attributes:
        event: e.g. ``UtilityScored``.
        of: the subject, unique per scorer in the session, e.g. ``snapshot/7``.
    """

    event: Event
    of: str


class SessionScorer(Protocol):
    """One scorer's work on one session; holds the state that it needs between records.

    It may also be a ``RoundScorer``, ``Computing`` or ``Attended``. Unless it is ``Computing``, its
    code determines where it runs in a product. Methods without any ``await`` run in a worker thread,
    since they can only compute. Others run on the event loop.
    """

    async def observe(self, record: Record) -> Sequence[Measurement]:
        """Takes the next trace record, and returns the measurements that are due now.

        An exception quarantines the scorer for the session, and is recorded as ``ScorerFailed``;
        but ``SessionInterrupted`` leaves the session as the log has it, to be resumed.
        """
        ...


@runtime_checkable
class RoundScorer(Protocol):
    """An optional protocol of a ``SessionScorer``: it is handed each round when it closes.

    The rounds of a session are computed once for all of its scorers.
    """

    @property
    def rounds(self) -> Rounds | None:
        """The convention by which to count rounds; None to receive no rounds."""
        ...

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        """Takes a closed round, and returns the measurements that are due now; see ``observe``.

        Called before ``observe`` takes the act that opens the next round. A round that
        ``SessionClosed`` ends includes that record, so ``observe`` takes it first.
        """
        ...


@runtime_checkable
class Computing(Protocol):
    """An optional protocol of a ``SessionScorer``: it reports the cost of each record.

    In a product, a ``quick`` record is scored on the event loop, and one that ``computes`` in a
    worker thread. In a simulation or a replay, everything runs on the calling thread.
    """

    def cost(self, record: Record, over: Round | None) -> Cost:
        """The cost of scoring a record; may be called more than once before the record is handed
        over.

        Args:
            record: the next record of the trace.
            over: the round that the record closes, for a ``RoundScorer``.
        """
        ...


@runtime_checkable
class Attended(Protocol):
    """An optional protocol of a ``SessionScorer`` that asks a model or a service."""

    def attend(
        self, recorded: Sequence[Record], excused: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Called once, before the first record.

        Args:
            recorded: what its stream holds already, in order: what was asked then need not be asked
                again.
            excused: to be entered while it waits for something that is sure to come, with its own
                time-out; it does not count as taking too long then.
        """
        ...


@runtime_checkable
class Scorer(Protocol):
    """A scorer: an identity, and a fresh ``SessionScorer`` for each session."""

    @property
    def ref(self) -> ScorerRef:
        """Name, version and configuration digest, carried by each of its measurements."""
        ...

    def begin(self, session: str) -> SessionScorer:
        """Starts to score one session from its first record."""
        ...


def stream_of(ref: ScorerRef) -> str:
    """The measurement stream of a scorer: one per scorer and scorer version."""
    return f"{ref.name}@{ref.version}"


def measurement_id(ref: ScorerRef, of: str) -> str:
    """The identity of a measurement within its session."""
    return f"{ref.name}@{ref.version}/{of}"
