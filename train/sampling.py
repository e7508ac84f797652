"""The value of a state of an episode: the rewards of continuations that another agent plays from it."""

from __future__ import annotations

import math
from functools import partial

import msgspec

from ..engine.errors import InvalidInput
from ..engine.log.contract import EventLog
from ..engine.records import TRACE
from ..engine.session.fork import last_act_of_round
from ..engine.session.runner import Session
from ..engine.session.simulation import Outcome, SessionFailure, simulate
from ..experiments.continuations import Changes, Continuations, load_records
from .rewards import RewardTerms, reward_of, terms_in

__all__ = ("SampledValue", "sampled_value")


class SampledValue(msgspec.Struct, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        value: the mean of the rewards.
        rewards: the rewards of each continuation, from the beginning of the session to its end.
        sessions: their ids; they stay in the log.
    """

    value: float
    rewards: tuple[float, ...]
    sessions: tuple[str, ...]


async def sampled_value(
    log: EventLog,
    session: str,
    round: int,
    *,
    agent: str,
    continuations: int = 8,
    seed: int = 0,
    terms: RewardTerms | None = None,
    concurrency: int = 32,
) -> SampledValue:
    """The multi-turn value of an episode after a round: what continuations from there earn, on average.

    Each continuation is a fork of the session after the last act of the round. It starts from the
    shared history with separate draws. An agent available here plays on in place of the one that
    was trained.

    Args:
        log: holds the session, and takes the continuations.
        session: session id.
        round: after which round.
        agent: the kind of agent that plays on, as for ``duolog run --agents``.
        continuations: how many.
        seed: the seed of the first; each has another.
        terms: how the reward is made; None for what the session's opening has.
        concurrency: how many run at the same time.

    Raises:
        SessionNotFound: the log has no such session.
        InvalidInput: there is no such round or agent, no continuation is asked for, or one of them has no
            utility.
    """
    if continuations < 1:
        raise InvalidInput(f"continuations must be at least 1, got {continuations}")
    records = await load_records(log, session)
    if not records:
        await log.summary(session)  # says that there is none
    terms = terms or terms_in(records[0])
    cut = last_act_of_round([r for r in records if r.stream == TRACE], round)
    making = Continuations(log)
    made = [
        await making.make(
            records, cut, Changes(agent=agent, seed=number, unstopped=False), from_view=True
        )
        for number in range(seed, seed + continuations)
    ]
    failures: list[SessionFailure] = []

    def note(outcome: Outcome) -> None:
        if isinstance(outcome, SessionFailure):
            failures.append(outcome)

    await simulate(
        log, [partial(_same, one) for one in made], concurrency=concurrency, on_outcome=note
    )
    if failures:
        raise InvalidInput(f"continuation {failures[0].session!r} failed: {failures[0].error}")
    rewards = [await _worth(log, one.id, terms) for one in made]
    return SampledValue(
        value=math.fsum(rewards) / len(rewards),
        rewards=tuple(rewards),
        sessions=tuple(one.id for one in made),
    )


def _same(session: Session) -> Session:
    return session


async def _worth(log: EventLog, session: str, terms: RewardTerms) -> float:
    found = await reward_of(log, session, terms)
    if found.total is None:
        raise InvalidInput(f"continuation {session!r} could not be scored: {found.missing}")
    return found.total
