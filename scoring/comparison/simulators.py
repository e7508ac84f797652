"""How simulated people differ from real ones: compares each persona's behaviour with people's.

Six measures of a session's human are compared: words of a turn, the share of turns that ask something, the share
of vague asks, edits of the output, ratings, and survival by round. Per measure::

    difference   mean of the simulated - mean of the people
    W1           ∫ |F(x) - G(x)| dx, in the unit of x: how far the mass has to be moved
    KS           max_x |F(x) - G(x)|, 0 to 1
    chance       95 % quantile of a distance when sessions are dealt out at random to the two sides

F and G are the empirical distribution functions. Of lengths of sessions, which may be cut off, they are
1 - S, with S the product-limit estimate of Kaplan and Meier, up to the last round that both have.

Intervals are seeded percentile bootstraps over sessions of both sides, each resampled, since turns of one session
are not independent. A distance is never below 0, and is above it between two samples of one
population. A distance within chance cannot be told from 0.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from ...engine.errors import InvalidInput
from ..metrics.numbers import quantile
from ..metrics.results import Estimate
from ..metrics.sample import LEVEL
from ..metrics.survival import survival_curve
from .behaviour import Behaviour

__all__ = (
    "MEASURES",
    "Audit",
    "BehaviourGap",
    "Distances",
    "PersonaAudit",
    "audit",
    "distances",
    "survival_distances",
)


class Distances(NamedTuple):
    """How far two distributions are apart.

    Attributes:
        first: mean of the first.
        second: mean of the second.
        wasserstein: W1.
        ks: the largest difference of the distribution functions.
    """

    first: float
    second: float
    wasserstein: float
    ks: float


def distances(first: Mapping[float, int], second: Mapping[float, int]) -> Distances | None:
    """The distances of two histograms, of counts by value; None if either is empty."""
    m, n = sum(first.values()), sum(second.values())
    if not m or not n:
        return None
    below_first = below_second = 0.0
    moved = largest = 0.0
    before: float | None = None
    for value in sorted(first.keys() | second.keys()):
        if before is not None:
            moved += abs(below_first - below_second) * (value - before)
        below_first += first.get(value, 0) / m
        below_second += second.get(value, 0) / n
        largest = max(largest, abs(below_first - below_second))
        before = value
    return Distances(
        sum(value * count for value, count in first.items()) / m,
        sum(value * count for value, count in second.items()) / n,
        moved,
        largest,
    )


def survival_distances(
    first: Sequence[tuple[int, bool]], second: Sequence[tuple[int, bool]]
) -> Distances | None:
    """The distances of two survival functions by round; None if either lacks sessions with rounds.

    Args:
        first: the last round of each session, and whether the human left there.
        second: likewise.

    Returns:
        The means are restricted to the rounds that both have: Σ_k S(k), with S(0) = 1.
    """
    one = [1.0, *(point.survival for point in survival_curve(first))]
    other = [1.0, *(point.survival for point in survival_curve(second))]
    shared = min(len(one), len(other))
    if shared == 1:
        return None
    gaps = [abs(a - b) for a, b in zip(one[:shared], other[:shared], strict=True)]
    return Distances(sum(one[:shared]), sum(other[:shared]), sum(gaps), max(gaps))


class BehaviourGap(msgspec.Struct, frozen=True, kw_only=True):
    """One measure, compared between a persona and people.

    Attributes:
        measure: its name.
        unit: the unit of its values, of the difference and of W1.
        simulated: mean of the simulated; its sessions are those that have a value.
        people: mean of the people, likewise.
        difference: simulated - people.
        wasserstein: W1.
        ks: the distance of Kolmogorov and Smirnov.
        chance_wasserstein: what W1 reaches by chance.
        chance_ks: what the other reaches by chance.
        reason: why there is none of these numbers.
    """

    measure: str
    unit: str
    simulated: Estimate = Estimate()
    people: Estimate = Estimate()
    difference: Estimate = Estimate()
    wasserstein: Estimate = Estimate()
    ks: Estimate = Estimate()
    chance_wasserstein: float | None = None
    chance_ks: float | None = None
    reason: str | None = None


class PersonaAudit(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of a persona with people, on all tasks or on one.

    Attributes:
        simulated: the persona, perhaps with its model.
        task: the task; empty for all.
        sessions: its sessions.
        people: the sessions of people that it is compared with: those of the task, or all if no
            person worked on it.
        same_task: whether these are of the task.
        index: 1 - mean of the distances ``ks`` of the measures that there are: 1 if nothing tells
            persona and people apart. The sessions of both sides are resampled together for its interval.
        measures: one for each of ``MEASURES``.
    """

    simulated: str
    task: str = ""
    sessions: int
    people: int
    same_task: bool = True
    index: Estimate
    measures: tuple[BehaviourGap, ...]

    @property
    def within_chance(self) -> tuple[int, int]:
        """How many measures have a distance ``ks`` that chance reaches, and how many have one."""
        there = [
            gap.ks.value <= gap.chance_ks
            for gap in self.measures
            if gap.ks.value is not None and gap.chance_ks is not None
        ]
        return sum(there), len(there)


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of all personas of one log with the people of another.

    Attributes:
        people: sessions of people.
        left_out: sessions of the people's log whose human is simulated.
        personas: one for each, by name.
        tasks: one for each persona and task, in order; empty if there is one task only, on both sides.
        resamples: of bootstrap and chance.
        level: coverage of the intervals.
        seed: the seed of both, bootstrap and chance.
    """

    people: int
    left_out: int
    personas: tuple[PersonaAudit, ...]
    tasks: tuple[PersonaAudit, ...] = ()
    resamples: int
    level: float
    seed: int


_Values: TypeAlias = Sequence[tuple[float, bool]]
"""The values of one session; in lengths of sessions, whether the human left, else True."""

_Compare: TypeAlias = Callable[[Iterable[_Values], Iterable[_Values]], Distances | None]


class _Measure(msgspec.Struct, frozen=True):
    name: str
    unit: str
    of: Callable[[Behaviour], Iterable[tuple[float, bool]]]
    absent: str
    compare: _Compare


def _plainly(first: Iterable[_Values], second: Iterable[_Values]) -> Distances | None:
    one = Counter(value for values in first for value, _ in values)
    return distances(one, Counter(value for values in second for value, _ in values))


def _by_survival(first: Iterable[_Values], second: Iterable[_Values]) -> Distances | None:
    return survival_distances(
        [(int(k), left) for values in first for k, left in values],
        [(int(k), left) for values in second for k, left in values],
    )


def _each(values: Iterable[float]) -> list[tuple[float, bool]]:
    return [(float(value), True) for value in values]


_TURNS = "no human says anything after the request"

_MEASURES: Final = (
    _Measure("turn_length", "words", lambda one: _each(one.turns), _TURNS, _plainly),
    _Measure("question_rate", "share", lambda one: _each(one.questions), _TURNS, _plainly),
    _Measure("vagueness", "share", lambda one: _each(one.vague), _TURNS, _plainly),
    _Measure("edits", "versions", lambda one: _each([one.edits]), "there is no session", _plainly),
    _Measure(
        "ratings", "points", lambda one: _each(one.ratings), "no human rates a round", _plainly
    ),
    _Measure(
        "survival", "rounds", lambda one: [(one.rounds, one.left)], "nobody leaves", _by_survival
    ),
)

MEASURES: Final = tuple(measure.name for measure in _MEASURES)
"""What is compared."""


def audit(
    simulated: Iterable[Behaviour],
    people: Iterable[Behaviour],
    *,
    resamples: int = 500,
    seed: int = 0,
) -> Audit:
    """Compares each persona with people.

    Args:
        simulated: sessions; those of people are left out.
        people: sessions; those of simulated people are left out, and counted.
        resamples: of bootstrap and chance; 0 for no intervals.
        seed: the seed of both, bootstrap and chance.

    Raises:
        InvalidInput: one side lacks simulated people, or the other lacks real ones.
    """
    by_persona: dict[str, list[Behaviour]] = {}
    for one in simulated:
        if one.simulated:
            by_persona.setdefault(one.simulated, []).append(one)
    if not by_persona:
        raise InvalidInput(
            "no human in these sessions is simulated: none has a persona, rules or a model"
        )
    listed = list(people)
    real = [one for one in listed if not one.simulated]
    if not real:
        why = "all humans are simulated" if listed else "no human takes part in any"
        raise InvalidInput(f"the sessions to compare with contain no real people: {why}")
    ordered = sorted(by_persona.items())
    worked_on = {one.task for one in real}
    every = worked_on.union(one.task for _, sessions in ordered for one in sessions)
    by_task: list[PersonaAudit] = []
    for name, sessions in ordered if len(every) > 1 else ():
        for task in sorted({one.task for one in sessions}):
            mine = [one for one in sessions if one.task == task]
            theirs = [one for one in real if one.task == task] or real
            found = _audit_of(name, mine, theirs, resamples, f"{seed}/{name}/{task}")
            by_task.append(msgspec.structs.replace(found, task=task, same_task=task in worked_on))
    return Audit(
        people=len(real),
        left_out=len(listed) - len(real),
        personas=tuple(
            _audit_of(name, sessions, real, resamples, f"{seed}/{name}")
            for name, sessions in ordered
        ),
        tasks=tuple(by_task),
        resamples=resamples,
        level=LEVEL,
        seed=seed,
    )


def _audit_of(
    name: str,
    sessions: Sequence[Behaviour],
    people: Sequence[Behaviour],
    resamples: int,
    seed: str,
) -> PersonaAudit:
    gaps = tuple(
        _gap(measure, sessions, people, resamples, f"{seed}/{measure.name}")
        for measure in _MEASURES
    )
    there = [
        measure for measure, gap in zip(_MEASURES, gaps, strict=True) if gap.ks.value is not None
    ]
    return PersonaAudit(
        simulated=name,
        sessions=len(sessions),
        people=len(people),
        index=_index(there, sessions, people, resamples, f"{seed}/index"),
        measures=gaps,
    )


def _index(
    measures: Sequence[_Measure],
    simulated: Sequence[Behaviour],
    people: Sequence[Behaviour],
    resamples: int,
    seed: str,
) -> Estimate:
    """1 - the mean distance over some measures; of draws that lack a measure, over the others."""
    chance = random.Random(seed)
    sides = (simulated, people)
    values = [[[tuple(measure.of(one)) for one in side] for side in sides] for measure in measures]

    def found(draw: Callable[[int], Iterable[int]]) -> float | None:
        rows = [list(draw(len(side))) for side in sides]
        compared = [
            measure.compare(
                [first[row] for row in rows[0] if first[row]],
                [second[row] for row in rows[1] if second[row]],
            )
            for measure, (first, second) in zip(measures, values, strict=True)
        ]
        apart = [one.ks for one in compared if one is not None]
        return 1 - sum(apart) / len(apart) if apart else None

    value = found(range)
    if value is None:
        return Estimate(reason="no measure can be compared")
    fair = min(map(len, sides)) > 1
    again = [
        found(lambda size: chance.choices(range(size), k=size))
        for _ in range(resamples if fair else 0)
    ]
    spread = sorted(one for one in again if one is not None)
    low, high = (
        (quantile(spread, (1 - LEVEL) / 2), quantile(spread, (1 + LEVEL) / 2))
        if spread
        else (None, None)
    )
    return Estimate(value=value, low=low, high=high, sessions=sum(map(len, sides)))


def _gap(
    measure: _Measure,
    simulated: Sequence[Behaviour],
    people: Sequence[Behaviour],
    resamples: int,
    seed: str,
) -> BehaviourGap:
    sides = [
        [values for one in side if (values := tuple(measure.of(one)))]
        for side in (simulated, people)
    ]
    gap = BehaviourGap(measure=measure.name, unit=measure.unit)
    if measure.name == "survival":
        for who, side in zip(_WHO, sides, strict=True):
            if not any(left for values in side for _, left in values):
                return _absent(gap, f"{measure.absent} {who}: every session is cut off or open")
    first, second = sides
    found = measure.compare(first, second)
    if found is None:
        who = " and ".join(who for who, side in zip(_WHO, sides, strict=True) if not side)
        return _absent(gap, f"{measure.absent} {who or 'on either side'}")
    chance = random.Random(seed)
    drawn: list[Distances] = []
    for _ in range(resamples):
        again = measure.compare(_drawn(first, chance), _drawn(second, chance))
        drawn += [] if again is None else [again]
    dealt = _dealt(measure, first, second, resamples, chance)
    fair = len(drawn) > 1 and min(len(first), len(second)) > 1
    rows = drawn if fair else []

    def estimate(of: Callable[[Distances], float], sessions: int) -> Estimate:
        spread = sorted(of(one) for one in rows)
        low, high = (
            (quantile(spread, (1 - LEVEL) / 2), quantile(spread, (1 + LEVEL) / 2))
            if spread
            else (None, None)
        )
        return Estimate(value=of(found), low=low, high=high, sessions=sessions)

    both = len(first) + len(second)
    return msgspec.structs.replace(
        gap,
        simulated=estimate(lambda one: one.first, len(first)),
        people=estimate(lambda one: one.second, len(second)),
        difference=estimate(lambda one: one.first - one.second, both),
        wasserstein=estimate(lambda one: one.wasserstein, both),
        ks=estimate(lambda one: one.ks, both),
        chance_wasserstein=quantile(sorted(one.wasserstein for one in dealt), LEVEL)
        if dealt
        else None,
        chance_ks=quantile(sorted(one.ks for one in dealt), LEVEL) if dealt else None,
    )


_WHO = ("among the simulated", "among the people")


def _absent(gap: BehaviourGap, reason: str) -> BehaviourGap:
    none = Estimate(reason=reason)
    return msgspec.structs.replace(
        gap,
        simulated=none,
        people=none,
        difference=none,
        wasserstein=none,
        ks=none,
        reason=reason,
    )


def _drawn(side: Sequence[_Values], chance: random.Random) -> list[_Values]:
    return chance.choices(side, k=len(side))


def _dealt(
    measure: _Measure,
    first: Sequence[_Values],
    second: Sequence[_Values],
    times: int,
    chance: random.Random,
) -> list[Distances]:
    """The distances when sessions are assigned to the two sides at random."""
    pooled = [*first, *second]
    found: list[Distances] = []
    for _ in range(times):
        chance.shuffle(pooled)
        one = measure.compare(pooled[: len(first)], pooled[len(first) :])
        found += [] if one is None else [one]
    return found
