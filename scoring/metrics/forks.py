"""Compares forks with their origins: the same beginning, then another agent, user or seed.

D@τ estimates the loss when a human leaves early from one course of events. A fork runs the rest
again, so that its difference is one between two courses of events with the same beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from ..columns.table import Columns, column_of, columns_of
from ..trajectory.points import NO_ROUND, Trajectory
from .numbers import known, whole
from .results import Estimate
from .sample import Sample
from .values import MISSING, Facts

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
    source: Columns | Iterable[Trajectory], *, bootstrap: int = 1000, seed: int = 0
) -> ForkReport:
    """Compares each fork among the sessions with its origin.

    Args:
        source: forks and origins, in any order; other sessions are ignored.
        bootstrap: resamples for the intervals (percentile, 95 %); 0 for none.
        seed: seeds the resampling.
    """
    facts = Facts(source)
    columns = facts.columns
    rows = {session: row for row, session in enumerate(columns.session)}
    forks = tuple(
        _fork(facts, row, rows.get(columns.forked_from.of(row) or ""))
        for row in rows.values()
        if columns.forked_from.codes[row] >= 0
    )
    grouped: dict[tuple[tuple[str, str], ...], list[Fork]] = {}
    for fork in forks:
        if fork.difference is not None:
            key = (*sorted(fork.played_then.items()), ("", ""), *sorted(fork.played_now.items()))
            grouped.setdefault(key, []).append(fork)
    groups = [_group(grouped[key], bootstrap, f"{seed}/forks/{key}") for key in sorted(grouped)]
    return ForkReport(groups=tuple(groups), forks=forks)


def without_forks(source: Columns | Iterable[Trajectory]) -> Columns:
    """The sessions without the forks whose origins are among them.

    A fork shares its beginning with its origin; means over both would count that twice.
    """
    columns = columns_of(source)
    if not columns.forked_from.values:
        return columns
    sessions = set(columns.session)
    return columns.take(np.flatnonzero(~columns.forked_from.flags(sessions.__contains__)))


def _fork(facts: Facts, fork: int, origin: int | None) -> Fork:
    columns = facts.columns
    at = whole(columns.forked_at[fork])
    then = None if origin is None else known(facts.performance[origin])
    now = known(facts.performance[fork])
    reason = None
    if origin is None:
        reason = "its origin is not among the sessions"
    elif at is None:
        reason = "it has no record of its own yet"
    elif then is None or now is None:
        missing = origin if then is None else fork
        why = MISSING[int(facts.missing[missing])] or NO_ROUND
        reason = f"utility of {columns.session[missing]}: {why}"
    return Fork(
        session=columns.session[fork],
        origin=columns.forked_from.of(fork) or "",
        version=whole(columns.forked_version[fork]) or 0,
        round=at,
        before=_before(facts, fork, at or 0),
        then=then,
        now=now,
        difference=None if then is None or now is None or reason is not None else now - then,
        rounds_then=None if origin is None else int(facts.rounds[origin]),
        rounds_now=int(facts.rounds[fork]),
        played_then={} if origin is None else columns.group(origin, _PLAYERS),
        played_now=columns.group(fork, _PLAYERS),
        state=columns.state.of(fork) or "",
        reason=reason,
        effort_then={} if origin is None else _effort(columns, origin),
        effort_now=_effort(columns, fork),
    )


def _before(facts: Facts, row: int, forked_at: int) -> float | None:
    """The utility before the first own round of a fork."""
    before = min(forked_at - 1, int(facts.rounds[row]))
    if before > 0:
        return known(facts.columns.rounds.utility[facts.columns.starts[row] + before - 1])
    return 0.0 if facts.valued[row] else None


def _effort(columns: Columns, row: int) -> Mapping[str, float | None]:
    names = columns.measures.of(row) or ()
    return {name: known(columns.effort[name][row]) for name in names}


def _group(forks: Sequence[Fork], resamples: int, seed: str) -> ForkGroup:
    sample = Sample(
        {
            "then": column_of(fork.then for fork in forks),
            "now": column_of(fork.now for fork in forks),
            "difference": column_of(fork.difference for fork in forks),
            "rounds": np.array(
                [fork.rounds_now - (fork.rounds_then or 0) for fork in forks], np.float64
            ),
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
