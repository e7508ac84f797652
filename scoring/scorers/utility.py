"""Utility scorers: a function of snapshots or of rounds, as a ``Scorer``.

A score is a value in [0, 1], or missing with a reason. A score that failed is missing, never 0.
See ``retention`` and ``feedback`` for utilities that work without ground truth.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from numbers import Real
from typing import TypeAlias, final

import msgspec

from ...engine.codec import digest
from ...engine.errors import InvalidInput
from ...engine.events import (
    JSON,
    ProfileChanged,
    ScorerRef,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from ...engine.files import Contents
from ...engine.records import TRACE, Record
from ...engine.rounds import Round, Rounds
from ...engine.scorers.observing import finished
from ...engine.scorers.protocol import Cost, Measurement, SessionScorer

__all__ = (
    "Missing",
    "RoundUtility",
    "Score",
    "ScoreRound",
    "ScoreSnapshot",
    "SnapshotUtility",
    "as_score",
    "reference",
    "unreadable",
)

NO_OPENING = "the session has no opening"

_READ = frozenset({"SessionOpened", "ProfileChanged", "SnapshotTaken"})


class Score(msgspec.Struct, frozen=True):
    """A utility, as a scorer's function returns it.

    Attributes:
        value: in [0, 1].
        parts: named parts of the value; None for a missing one.

    Raises:
        InvalidInput: the value is not in [0, 1].
    """

    value: float
    parts: Mapping[str, float | None] = {}

    def __post_init__(self) -> None:
        if not 0.0 <= self.value <= 1.0:  # so that NaN is refused too
            raise InvalidInput(f"a utility lies in [0, 1], and {self.value!r} does not")
        for name, part in self.parts.items():
            if part is not None and not math.isfinite(part):
                raise InvalidInput(f"part {name!r} of a utility is {part!r}; None if it is missing")


class Missing(msgspec.Struct, frozen=True):
    """A missing score with its reason, e.g. that the evaluator did not answer.

    Raises:
        InvalidInput: no reason is given.
    """

    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise InvalidInput("a missing score needs a reason")


ScoreSnapshot: TypeAlias = Callable[
    [SnapshotTaken, SessionOpened], Score | Missing | Awaitable[Score | Missing]
]
"""Scores a snapshot of a session; may be async. The opening has the current private parts."""

ScoreRound: TypeAlias = Callable[
    [Round, Sequence[Record], SessionOpened],
    Score | Missing | Awaitable[Score | Missing | None] | None,
]
"""Scores a closed round with its records; None if there is nothing new to score. The opening has
the private parts as of the end of the round."""


def unreadable() -> Score:
    """The score of an output that cannot be read or is invalid: 0, with the part that says so.

    The author of the output failed, not the measurement, so the score is not missing.
    """
    return Score(0.0, {"readable": 0.0})


def as_score(worth: object, whose: str) -> Score | Missing:
    """Converts a utility's result to a score: a number, or a ``Score`` or ``Missing`` itself.

    Args:
        worth: the result.
        whose: names the utility in the message.

    Raises:
        InvalidInput: it is something else, or a number that is not in [0, 1].
    """
    if isinstance(worth, Score | Missing):
        return worth
    if not isinstance(worth, Real):
        raise InvalidInput(
            f"{whose} gave {worth!r}: it must be a number in [0, 1], a Score or Missing"
        )
    return Score(float(worth))


def reference(name: str, version: str, config: JSON = None) -> ScorerRef:
    """A scorer's identity, with the digest of its configuration.

    Raises:
        InvalidInput: a name or version that cannot name a measurement stream.
    """
    if not name or not version or "@" in version:
        raise InvalidInput(
            f"a scorer needs a name and a version without '@', not {name!r} and {version!r}"
        )
    return ScorerRef(name=name, version=version, config=digest(config))


def with_profile(opened: SessionOpened, changed: ProfileChanged) -> SessionOpened:
    """The opening as if its owner had held the changed profile from the start.

    A function that scores by the private parts in the opening scores by what the human wants now.
    """
    private = {**opened.private, changed.owner: changed.profile}
    return msgspec.structs.replace(opened, private=private)


def cost_of(function: Callable[..., object]) -> Cost:
    """The cost of calling a user's function: an async function waits, any other computes."""
    called = getattr(function, "__call__", None)  # noqa: B004  (of an object with an async one)
    asks = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
    return "waits" if asks else "computes"


def measured(
    ref: ScorerRef,
    result: Score | Missing,
    of: str,
    *,
    snapshot: int | None = None,
    over: Round | None = None,
    rounds: Rounds = "handoff",
) -> Measurement:
    """The measurement that records a score.

    Args:
        ref: the scorer.
        result: its score.
        of: identity of what was scored, unique per scorer in the session.
        snapshot: trace version of the snapshot scored.
        over: the round scored, if no snapshot was.
        rounds: how rounds are counted.
    """
    event = UtilityScored(
        scorer=ref,
        snapshot=snapshot,
        round=over.number if over else None,
        until=(over.last_act or over.last) if over else None,
        rounds=rounds,
        value=result.value if isinstance(result, Score) else None,
        parts=result.parts if isinstance(result, Score) else {},
        missing=result.reason if isinstance(result, Missing) else None,
    )
    return Measurement(event, of)


@final
class SnapshotUtility:
    """Scores each snapshot of humans and agents with your function.

    If a profile changed, the snapshot at the end of that round is scored again for that round, by
    what the human wants then.

    For example::

        def brevity(snapshot: duolog.SnapshotTaken, opened: duolog.SessionOpened) -> duolog.Score:
            return duolog.Score(1.0 if len(str(snapshot.content)) <= 280 else 0.0)

        scorer = duolog.SnapshotUtility("brevity", "1", brevity)
        log.watch(scorers=[scorer], on_update=print).start()

    Args:
        name: the name of the scorer.
        version: raise it when the function changes, so that new scores do not mix with old ones.
        score: the function. An exception from it quarantines the scorer for the session.
        config: the settings that the function depends on; each score carries their digest.

    Raises:
        InvalidInput: the name or version is empty.
    """

    def __init__(
        self, name: str, version: str, score: ScoreSnapshot, *, config: JSON = None
    ) -> None:
        self.ref = reference(name, version, config)
        self._score = score

    def begin(self, session: str) -> SessionScorer:
        """Starts to score one session from its first record."""
        return _Snapshots(self.ref, self._score)


@final
class _Snapshots:
    rounds: Rounds = "handoff"

    def __init__(self, ref: ScorerRef, score: ScoreSnapshot) -> None:
        self._ref = ref
        self._score = score
        self._cost = cost_of(score)
        self._opened: SessionOpened | None = None
        self._standing: tuple[int, SnapshotTaken] | None = None
        self._contents = Contents()
        self._outdated = False

    def cost(self, record: Record, over: Round | None) -> Cost:
        again = over is not None and self._outdated
        return self._cost if again or record.kind == "SnapshotTaken" else "quick"

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        if not self._outdated or self._standing is None:
            return ()
        version, snapshot = self._standing
        of = f"snapshot/{version}/round/{over.number}"
        score = await self._scored(snapshot)
        self._outdated = False
        return (measured(self._ref, score, of, over=over),)

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream != TRACE or record.kind not in _READ:
            return ()
        event = record.event
        if isinstance(event, SessionOpened):
            self._opened = event
        elif isinstance(event, ProfileChanged) and self._opened is not None:
            self._opened = with_profile(self._opened, event)
            self._outdated = True
        elif isinstance(event, SnapshotTaken) and record.role in ("human", "agent"):
            of = f"snapshot/{record.version}"
            event = self._contents.whole(event)
            score = await self._scored(event)
            self._standing, self._outdated = (record.version, event), False
            return (measured(self._ref, score, of, snapshot=record.version),)
        return ()

    async def _scored(self, snapshot: SnapshotTaken) -> Score | Missing:
        if self._opened is None:
            return Missing(NO_OPENING)
        return await finished(self._score(snapshot, self._opened))


@final
class RoundUtility:
    """Scores each closed round with your function, for example whether a question was answered.

    Args:
        name: the name of the scorer.
        version: raise it when the function changes.
        score: the function. An exception from it quarantines the scorer for the session.
        config: the settings that the function depends on; each score carries their digest.
        rounds: how rounds are counted.

    Raises:
        InvalidInput: the name or version is empty.
    """

    def __init__(
        self,
        name: str,
        version: str,
        score: ScoreRound,
        *,
        config: JSON = None,
        rounds: Rounds = "handoff",
    ) -> None:
        self.ref = reference(name, version, {"rounds": rounds, "config": config})
        self._score = score
        self._rounds: Rounds = rounds

    def begin(self, session: str) -> SessionScorer:
        """Starts to score one session from its first record."""
        return _Rounds(self.ref, self._score, self._rounds)


@final
class _Rounds:
    def __init__(self, ref: ScorerRef, score: ScoreRound, rounds: Rounds) -> None:
        self._ref = ref
        self._score = score
        self.rounds: Rounds = rounds
        self._cost = cost_of(score)
        self._opened: SessionOpened | None = None
        self._records: list[Record] = []

    def cost(self, record: Record, over: Round | None) -> Cost:
        return "quick" if over is None else self._cost

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream != TRACE:
            return ()
        if record.kind == "SessionOpened" and isinstance(record.event, SessionOpened):
            self._opened = record.event
        elif record.kind == "ProfileChanged" and self._opened is not None:
            event = record.event
            if isinstance(event, ProfileChanged):
                self._opened = with_profile(self._opened, event)
        self._records.append(record)
        return ()

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        records, self._records = self._records, []
        result: Score | Missing | None = Missing(NO_OPENING)
        if self._opened is not None:
            result = await finished(self._score(over, records, self._opened))
        if result is None:
            return ()
        of = f"round/{over.number}"
        return (measured(self._ref, result, of, over=over, rounds=self.rounds),)
