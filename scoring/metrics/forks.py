"""Compares forks with their origins: the same beginning, then another agent, user or seed.

D@τ estimates the loss when a human leaves early from one course of events. A fork runs the rest
again, so that its difference is one between two courses of events with the same beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..trajectory.points import Trajectory
from . import Estimate
from .sample import Sample
from .values import NO_ROUND, missing_utility, performance

__all__ = ("Fork", "ForkGroup", "ForkReport", "compare_forks", "without_forks")

_PLAYERS = ("agent", "user", "model")


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """A fork and its origin.

    Attributes:
        session: the fork's id.
        origin: the origin's id.
        version: the last trace version that they share.
        round: the round of the fork's first own act; None if it has none yet.
        before: utility before that round, the same in both; None if it is missing.
        then: final utility of the origin; None if it is not among the sessions.
        now: final utility of the fork; None if it is missing.
        difference: ``now`` less ``then``.
        rounds_then: rounds of the origin.
        rounds_now: rounds of the fork.
        effort_then: effort in the origin, by measure.
        effort_now: effort in the fork.
        played_then: who played in the origin, by label.
        played_now: who plays in the fork.
        state: ``open``, or why the fork was closed.
        reason: why there is no difference; None if there is one.
    """

    session: str
    origin: str
    version: int
    round: int | None
    before: float | None
    then: float | None
    now: float | None
    difference: float | None
    rounds_then: int | None
    rounds_now: int
    played_then: Mapping[str, str]
    played_now: Mapping[str, str]
    state: str
    reason: str | None = None
    effort_then: Mapping[str, float | None] = {}
    effort_now: Mapping[str, float | None] = {}


class ForkGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The forks in which the same players took over from the same players.

    Attributes:
        played_then: who played in the origins.
        played_now: who plays in the forks.
        forks: how many there are with a difference.
        then: mean final utility of the origins.
        now: mean final utility of the forks.
        difference: mean difference, with its interval over forks.
        rounds: mean difference in rounds.
    """

    played_then: Mapping[str, str]
    played_now: Mapping[str, str]
    forks: int
    then: Estimate
    now: Estimate
    difference: Estimate
    rounds: Estimate


class ForkReport(msgspec.Struct, frozen=True, kw_only=True):
    """All forks, and their means by who took over from whom."""

    groups: tuple[ForkGroup, ...]
    forks: tuple[Fork, ...]


def compare_forks(
    trajectories: Iterable[Trajectory], *, bootstrap: int = 1000, seed: int = 0
) -> ForkReport:
    """Compares each fork among the sessions with its origin.

    Args:
        trajectories: forks and origins, in any order; other sessions are ignored.
        bootstrap: resamples for the intervals (percentile, 95 %); 0 for none.
        seed: seeds the resampling.
    """
    sessions = {item.session: item for item in trajectories}
    forks = tuple(
        _fork(item, sessions.get(item.forked_from.session), item.forked_from.version)
        for item in sessions.values()
        if item.forked_from is not None
    )
    grouped: dict[tuple[tuple[str, str], ...], list[Fork]] = {}
    for fork in forks:
        if fork.difference is not None:
            key = (*sorted(fork.played_then.items()), ("", ""), *sorted(fork.played_now.items()))
            grouped.setdefault(key, []).append(fork)
    groups = [_group(grouped[key], bootstrap, f"{seed}/forks/{key}") for key in sorted(grouped)]
    return ForkReport(groups=tuple(groups), forks=forks)


def without_forks(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """The sessions without the forks whose origins are among them.

    A fork shares its beginning with its origin; means over both would count that twice.
    """
    sessions = {item.session for item in trajectories}
    return [
        item
        for item in trajectories
        if item.forked_from is None or item.forked_from.session not in sessions
    ]


def _fork(fork: Trajectory, origin: Trajectory | None, version: int) -> Fork:
    before = [point.utility for point in fork.points if point.round < (fork.forked_at or 0)]
    now = performance(fork)
    then = None if origin is None else performance(origin)
    reason = None
    if origin is None:
        reason = "its origin is not among the sessions"
    elif fork.forked_at is None:
        reason = "it has no record of its own yet"
    elif then is None or now is None:
        missing = origin if then is None else fork
        reason = f"utility of {missing.session}: {missing_utility(missing) or NO_ROUND}"
    return Fork(
        session=fork.session,
        origin=fork.forked_from.session if fork.forked_from else "",
        version=version,
        round=fork.forked_at,
        before=before[-1] if before else 0.0 if missing_utility(fork) is None else None,
        then=then,
        now=now,
        difference=None if then is None or now is None or reason is not None else now - then,
        rounds_then=None if origin is None else len(origin.points),
        rounds_now=len(fork.points),
        played_then={} if origin is None else _players(origin),
        played_now=_players(fork),
        state=fork.state,
        reason=reason,
        effort_then={} if origin is None else _effort(origin),
        effort_now=_effort(fork),
    )


def _effort(item: Trajectory) -> Mapping[str, float | None]:
    return item.points[-1].effort if item.points else {}


def _players(item: Trajectory) -> dict[str, str]:
    return {name: item.group[name] for name in _PLAYERS if name in item.group}


def _group(forks: Sequence[Fork], resamples: int, seed: str) -> ForkGroup:
    sample = Sample(
        {
            "then": [fork.then for fork in forks],
            "now": [fork.now for fork in forks],
            "difference": [fork.difference for fork in forks],
            "rounds": [
                None if fork.rounds_then is None else fork.rounds_now - fork.rounds_then
                for fork in forks
            ],
        },
        resamples,
        seed,
    )
    return ForkGroup(
        played_then=forks[0].played_then,
        played_now=forks[0].played_now,
        forks=len(forks),
        then=sample.estimate("then"),
        now=sample.estimate("now"),
        difference=sample.estimate("difference"),
        rounds=sample.estimate("rounds"),
    )
