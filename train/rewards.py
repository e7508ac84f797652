"""The reward of an episode: named parts, each computed from the log.

The terms are recorded in the opening of the session, and everything that they go by is in the log. So a
reward can be computed again from the log alone, and its utility and effort are those of ``duolog score``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

import msgspec

from ..engine.errors import InvalidInput
from ..engine.events import MessageSent, SessionOpened
from ..engine.log.contract import EventLog
from ..engine.records import TRACE, Record
from ..engine.rounds import RoundProjector, is_unproductive
from ..scoring.trajectory.effort import MEASURES
from ..scoring.trajectory.fold import TrajectoryFold
from ..scoring.trajectory.options import Options
from ..scoring.trajectory.points import Trajectory, counted, missing_utility
from ..scoring.trajectory.tolerance import PENDING, stop_rounds
from ..scoring.trajectory.updates import Update

__all__ = ("CONFIG", "Reward", "RewardFold", "RewardTerms", "RoundReward", "reward_of")

CONFIG: Final = "reward"
"""The terms in the opening of a session: ``SessionOpened.config["reward"]``."""

_ENDS: Final = re.compile(
    r"(?<=[.!?\n])"
)  # split, since a pattern of a question takes quadratic time
_WORDS: Final = re.compile(r"\w+")


class RewardTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How a reward is made of a session. A price or weight of 0 leaves its part out.

    Attributes:
        progress: weight of ΔU, the utility that each round adds (U_0 = 0).
        effort: which measure of the human's effort counts; see ``MEASURES``.
        price: the price of one unit of it: so much is taken off for each that a round adds.
            Utilities lie in [0, 1]; at
            0.0005 for each second, ten minutes of reading and typing cost 0.3.
        terminal: weight of U_K, the utility at the end.
        drop: weight of D@τ = U_k_τ - U_K, which is negative if the human would have left before the
            end.
        tau: the tolerance τ of that part.
        unproductive: taken off for each round that the human rates below 3.
        repeated: taken off for each question of the agent that it had asked before, and the human had
            answered.

    Raises:
        InvalidInput: a number is not finite, a tolerance is below 1, or there is no such measure.
    """

    progress: float = 1.0
    effort: str = "seconds"
    price: float = 0.0005
    terminal: float = 0.0
    drop: float = 0.0
    tau: int = 2
    unproductive: float = 0.0
    repeated: float = 0.0

    def __post_init__(self) -> None:
        for name in ("progress", "price", "terminal", "drop", "unproductive", "repeated"):
            value: object = getattr(self, name)
            number = (
                value
                if isinstance(value, int | float) and not isinstance(value, bool)
                else math.nan
            )
            if not math.isfinite(number):
                raise InvalidInput(f"{name} of a reward expects a finite number, got {value!r}")
        if self.effort not in MEASURES:
            raise InvalidInput(
                f"unknown measure of effort {self.effort!r}; choose from {', '.join(MEASURES)}"
            )
        tau: object = self.tau
        if not isinstance(tau, int) or isinstance(tau, bool) or tau < 1:
            raise InvalidInput(f"tau of a reward expects a whole number from 1, got {tau!r}")


class RoundReward(msgspec.Struct, frozen=True, kw_only=True):
    """What one round adds.

    Attributes:
        round: k, from 1.
        parts: by name: ``utility``, ``effort``, ``unproductive``, ``repeated``.
    """

    round: int
    parts: Mapping[str, float]


class Reward(msgspec.Struct, frozen=True, kw_only=True):
    """The reward of a session so far, or of all of it.

    Attributes:
        total: the sum of the parts; None where utility is missing.
        parts: by name: those of all rounds together, and ``terminal`` and ``drop``, of the session.
        rounds: what each round adds.
        missing: why utility, and with it the reward, is missing; None if it is not.
    """

    total: float | None
    parts: Mapping[str, float]
    rounds: tuple[RoundReward, ...]
    missing: str | None = None


@final
class RewardFold:
    """Folds the records of one session into its reward.

    Args:
        session: session id.
        terms: how the reward is made.
        options: how the session is scored.
        emit: give the updates of the trajectory from ``feed``.
    """

    def __init__(
        self,
        session: str,
        terms: RewardTerms,
        options: Options | None = None,
        *,
        emit: bool = False,
    ) -> None:
        self._terms = terms
        self._fold = TrajectoryFold(session, options, emit=emit)
        self._questions = _Questions() if terms.repeated else None

    def feed(self, record: Record) -> Sequence[Update]:
        """Takes the next record of the session, in order of position."""
        if self._questions is not None:
            self._questions.feed(record)
        return self._fold.feed(record)

    def trajectory(self) -> Trajectory:
        """The trajectory so far."""
        return self._fold.trajectory()

    def reward(self) -> Reward:
        """The reward so far."""
        repeated = {} if self._questions is None else self._questions.repeated
        return _reward(self._fold.trajectory(), self._terms, repeated)


async def reward_of(
    log: EventLog, session: str, terms: RewardTerms | None = None, options: Options | None = None
) -> Reward:
    """The reward of a session of a log, computed from what the log holds of it.

    Args:
        log: the log; it has to be open.
        session: session id. Any session has a reward, not only those that were training episodes.
        terms: how it is made; None for what the session's opening has, or else for the defaults.
        options: how the session is scored.

    Raises:
        SessionNotFound: the log has no such session.
        InvalidInput: the opening holds terms that cannot be read.
    """
    fold: RewardFold | None = None
    async for record in log.read_all(session=session):
        if fold is None:
            fold = RewardFold(session, terms or terms_in(record), options)
        fold.feed(record)
    if fold is None:
        await log.summary(session)  # says that there is none
        raise InvalidInput(f"session {session!r} is empty so far")
    return fold.reward()


def terms_in(opening: Record) -> RewardTerms:
    """The terms that the opening of a session holds; the defaults if it holds none.

    Raises:
        InvalidInput: they cannot be read.
    """
    event = opening.event
    held = event.config.get(CONFIG) if isinstance(event, SessionOpened) else None
    if held is None:
        return RewardTerms()
    try:
        return msgspec.convert(held, RewardTerms)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"session {opening.session!r} holds terms of a reward that cannot be read: {error}"
        ) from None


def _reward(trajectory: Trajectory, terms: RewardTerms, repeated: Mapping[int, int]) -> Reward:
    rounds = tuple(_rounds(trajectory, terms, repeated))
    parts = {
        name: math.fsum(one.parts[name] for one in rounds)
        for name in ("utility", "effort", "unproductive", "repeated")
    }
    points = counted(trajectory)
    last = (points[-1].utility if points else None) or 0.0
    parts["terminal"] = terms.terminal * last if trajectory.state != "open" else 0.0
    left = _left_with(trajectory, terms.tau) if terms.drop else last
    parts["drop"] = terms.drop * (left - last)
    missing = missing_utility(trajectory)
    total = None if missing is not None else math.fsum(parts.values())
    return Reward(total=total, parts=parts, rounds=rounds, missing=missing)


def _rounds(
    trajectory: Trajectory, terms: RewardTerms, repeated: Mapping[int, int]
) -> Iterable[RoundReward]:
    worth, spent = 0.0, 0.0
    for point in trajectory.points:
        utility = worth if point.utility is None or point.closing else point.utility
        effort = point.effort.get(terms.effort)
        now = spent if effort is None else float(effort)
        unproductive = not point.closing and is_unproductive(point.rating)
        yield RoundReward(
            round=point.round,
            parts={
                "utility": terms.progress * (utility - worth),
                "effort": terms.price * (spent - now),
                "unproductive": 0.0 - terms.unproductive * unproductive,
                "repeated": 0.0 - terms.repeated * repeated.get(point.round, 0),
            },
        )
        worth, spent = utility, now


def _left_with(trajectory: Trajectory, tau: int) -> float:
    """U_k_τ: the utility if the human leaves once the tolerance is used up."""
    points = counted(trajectory)
    ratings = (PENDING if point.pending else point.rating for point in points)
    stop = stop_rounds(ratings, (tau,)).get(tau)
    standing = points[-1 if stop is None else stop - 1].utility if points else None
    return standing or 0.0


@final
class _Questions:
    """Questions of agents that they had asked before, and a human had answered: by round, how many.

    Two questions are the same if their words are, ignoring case and punctuation. A question is
    answered if the human said something after it.
    """

    def __init__(self) -> None:
        self.repeated: dict[int, int] = {}
        self._rounds = RoundProjector()
        self._asked: set[str] = set()
        self._answered: set[str] = set()

    def feed(self, record: Record) -> None:
        if record.stream != TRACE:
            return
        self._rounds.feed(record)
        event = record.event if record.kind == "MessageSent" else None
        if not isinstance(event, MessageSent):
            return
        if record.role == "human":
            self._answered |= self._asked
            self._asked.clear()
        elif record.role == "agent":
            for question in _ENDS.split(event.text):
                if not question.endswith("?"):
                    continue
                words = " ".join(_WORDS.findall(question.lower()))
                if words in self._answered:
                    number = self._rounds.number
                    self.repeated[number] = self.repeated.get(number, 0) + 1
                elif words:
                    self._asked.add(words)
