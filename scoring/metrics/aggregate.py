"""From trajectories to a report: grouping, and the numbers of each group.

What ``first``, ``final``, ``overall``, ``gain`` and ``drop`` mean is stated in ``formal`` and
``paper``, a module for each convention. Common to both: every interval is a seeded percentile
bootstrap over sessions (95 %), and an absent number is None with a reason, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ...engine.errors import InvalidInput
from ...engine.log.summary import FORGOTTEN
from ..trajectory.points import NO_SCORE, NOT_EVALUATED, Trajectory, counted
from ..trajectory.tolerance import check_taus
from .bootstrap import LEVEL
from .buckets import make_buckets, token_ratio
from .cells import (
    BASELINE_ITSELF,
    NO_BASELINE,
    Cell,
    Stops,
    absent_utility,
    baseline_group,
    collaboration_group,
    sample_seed,
)
from .completion import completion_of
from .curves import carried, reached_rounds
from .effort import effort_columns, effort_measures
from .formal import formal_values, is_rated
from .grouping import LABELS, bucket_labels, chosen_labels, compared_labels
from .paper import TOO_FEW, cut_length, is_silent, paper_values
from .process import process_columns
from .results import Buckets, Convention, Counts, Estimate, Group, Report, SessionScore
from .sample import Column, Sample
from .values import (
    BROKEN_OFF,
    SessionValues,
    check_range,
    missing_utility,
    performance,
    result_only,
)

__all__ = ("LABELS", "aggregate")


class _ReportSettings(NamedTuple):
    convention: Convention
    taus: tuple[int, ...]
    labels: tuple[str, ...]
    resamples: int
    seed: int


def aggregate(
    trajectories: Iterable[Trajectory],
    *,
    convention: Convention = "formal",
    taus: Sequence[int] = (1, 2, 3),
    group_by: Sequence[str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Report:
    """Computes the paper's numbers for each group of sessions.

    Args:
        trajectories: the sessions, collaborating ones and automated runs, in any order.
        convention: ``formal`` reads the formulas of the paper's section 3 to the letter;
            ``paper`` computes as the published analysis does.
        taus: the tolerances τ to give the drop for.
        group_by: the labels to group by; by default those of ``LABELS`` that occur.
        bootstrap: resamples for the intervals; 0 for none.
        seed: seeds the resampling. The same sessions and seed give the same intervals.

    Returns:
        The report; without groups where there are no sessions.

    Raises:
        InvalidInput: an argument is not valid, no session has a label to group by, or a utility is
            not within 0 and 1.
    """
    found = list(trajectories)
    sessions = [item for item in found if item.state != FORGOTTEN]
    if convention not in ("formal", "paper"):
        raise InvalidInput(f"unknown convention {convention!r}: choose 'formal' or 'paper'")
    for item in sessions:
        check_range(item)
    if bootstrap < 0:
        raise InvalidInput(f"the number of bootstrap resamples is {bootstrap}: give 0 or more")
    settings = _ReportSettings(
        convention,
        check_taus(taus),
        chosen_labels(
            {name for item in sessions for name in item.group}, group_by, some=bool(sessions)
        ),
        bootstrap,
        seed,
    )
    cells: dict[tuple[bool, tuple[tuple[str, str], ...]], list[Trajectory]] = {}
    for item in sessions:
        key = (item.baseline, tuple(_group(item, settings.labels).items()))
        cells.setdefault(key, []).append(item)
    groups: list[Group] = []
    scores: list[SessionScore] = []
    references: dict[tuple[tuple[str, str], ...], Estimate] = {}
    baselines = [item for item in sessions if item.baseline]
    for key in sorted(cells):
        baseline, labels = key
        beside = compared_labels(labels)
        if not baseline and beside not in references:
            references[beside] = _reference(baselines, dict(beside), settings)
        make = _baseline if baseline else _collaboration
        reference = BASELINE_ITSELF if baseline else references[beside]
        group, values = make(dict(labels), cells[key], reference, settings)
        groups.append(group)
        scores += _scores(group, cells[key], values)
    return Report(
        convention=convention,
        taus=settings.taus,
        group_by=settings.labels,
        level=LEVEL,
        resamples=bootstrap,
        seed=seed,
        groups=tuple(groups),
        buckets=_all_buckets(sessions, settings),
        scores=tuple(scores),
        judges=tuple(sorted({name for item in sessions for name in item.judges})),
        forgotten=len(found) - len(sessions),
    )


def _group(item: Trajectory, labels: Iterable[str]) -> dict[str, str]:
    return {name: item.group[name] for name in labels if name in item.group}


def _baseline(
    labels: Mapping[str, str],
    members: Sequence[Trajectory],
    reference: Estimate,
    settings: _ReportSettings,
) -> tuple[Group, Sequence[SessionValues | None]]:
    """Automated runs: mean final performance, and effort."""
    columns = {"performance": [performance(item) for item in members]}
    sample = Sample(
        columns | effort_columns(members, settings.convention),
        settings.resamples,
        sample_seed(settings.seed, "baseline", labels),
    )
    cell = Cell(
        labels=labels,
        sessions=len(members),
        absent=absent_utility(Counter(map(missing_utility, members))),
        counts=_counts(members),
        completion=completion_of(members),
        measures=effort_measures(members),
    )
    return baseline_group(cell, sample, reference, settings.taus), [None] * len(members)


def _collaboration(
    labels: Mapping[str, str],
    members: Sequence[Trajectory],
    reference: Estimate,
    settings: _ReportSettings,
) -> tuple[Group, Sequence[SessionValues | None]]:
    """Sessions with a human: all numbers under the convention."""
    taus = settings.taus
    max_step = cut_length(members) if settings.convention == "paper" else None
    found: list[SessionValues | None]
    absent = absent_utility(Counter(map(missing_utility, members)))
    if settings.convention == "formal":
        found = [formal_values(item, taus) for item in members]
    elif max_step is not None:
        found = [paper_values(item, taus, max_step) for item in members]
    else:
        found, absent = [None] * len(members), TOO_FEW
    formal = settings.convention == "formal"
    results = [formal and result_only(item) for item in members]
    walks = [
        values.utilities if values and not only else ()
        for values, only in zip(found, results, strict=True)
    ]
    length = max(map(len, walks), default=0) if formal else max_step or 0
    columns: dict[str, Column] = {
        "first": _column(found, lambda values: values.first),
        "final": _column(found, lambda values: values.final),
        "overall": _column(found, lambda values: values.overall),
        "gain": _column(found, lambda values: values.gain),
    }
    for index, tau in enumerate(taus):
        columns |= _drop_columns(found, index, tau, paired=formal)
    columns |= carried(walks, length) | effort_columns(members, settings.convention)
    columns |= process_columns(members)
    sample = Sample(columns, settings.resamples, sample_seed(settings.seed, "group", labels))
    valued = [
        (item, values) for item, values in zip(members, found, strict=True) if values is not None
    ]
    cell = Cell(
        labels=labels,
        sessions=len(members),
        absent=absent,
        counts=_counts(members, published=not formal),
        completion=completion_of(members),
        measures=effort_measures(members),
        valued=len(valued),
        results=sum(
            only for only, values in zip(results, found, strict=True) if values is not None
        ),
        unrated=sum(not is_rated(item) for item, _ in valued),
        stops=tuple([_stops(valued, index, formal=formal) for index in range(len(taus))]),
        reached=reached_rounds(walks, length),
        max_step=max_step,
    )
    return collaboration_group(cell, sample, reference, taus, formal=formal), found


def _drop_columns(
    found: Sequence[SessionValues | None], index: int, tau: int, *, paired: bool
) -> dict[str, Column]:
    """Where the human stops, and what it is compared with.

    ``paired``: only sessions that have the first are in the mean of the second. The published
    analysis compares with the mean of all.
    """
    stops = [values.stops[index] if values else None for values in found]
    return {
        f"stop {tau}": stops,
        f"reference {tau}": [
            None if values is None or (paired and stop is None) else values.reference
            for values, stop in zip(found, stops, strict=True)
        ],
    }


def _stops(
    valued: Sequence[tuple[Trajectory, SessionValues]], index: int, *, formal: bool
) -> Stops:
    """Of the sessions with a utility: who stopped at a tolerance, and who is left out, and why."""
    without = [item for item, values in valued if formal and values.stops[index] is None]
    return Stops(
        stopped=sum(values.stopped[index] for _, values in valued),
        unrated=sum(not is_rated(item) for item in without),
        cut_short=sum(is_rated(item) and not result_only(item) for item in without),
    )


def _column(
    found: Iterable[SessionValues | None], pick: Callable[[SessionValues], float | None]
) -> Column:
    return [None if values is None else pick(values) for values in found]


def _reference(
    baselines: Iterable[Trajectory], beside: Mapping[str, str], settings: _ReportSettings
) -> Estimate:
    """Mean final performance of the automated runs whose labels do not contradict a row's."""
    matching = [
        performance(item)
        for item in baselines
        if all(item.group.get(name, value) == value for name, value in beside.items())
    ]
    sample = Sample(
        {"performance": matching},
        settings.resamples,
        sample_seed(settings.seed, "reference", beside),
    )
    return sample.estimate("performance", absent=NO_BASELINE)


def _counts(members: Sequence[Trajectory], *, published: bool = False) -> Counts:
    points = [point for item in members for point in item.points]
    reasons = Counter(missing_utility(item) for item in members)
    whole = [item for item in members if not item.baseline]
    return Counts(
        total_rounds=len(points),
        stale_points=sum(point.stale for point in points),
        missing_ratings=sum(point.rating is None and not point.pending for point in points),
        pending_ratings=sum(point.pending for point in points),
        estimated_tokens=sum(item.estimated for item in members),
        unvalued_sessions=len(members) - reasons[None] - (reasons[NO_SCORE] if published else 0),
        unevaluated_sessions=reasons[NOT_EVALUATED],
        failed_sessions=reasons[NO_SCORE],
        unscored_first=0 if published else sum(map(_unscored_first, whole)),
        result_only=0 if published else sum(map(result_only, whole)),
        unrated_sessions=sum(not is_rated(item) for item in whole),
        broken_baselines=sum(item.baseline and item.state in BROKEN_OFF for item in members),
        closing_rounds=sum(point.closing for point in points),
        closing_only=sum(bool(item.points) and not counted(item) for item in members),
        silent_sessions=sum(is_silent(item) if published else not item.points for item in members),
        open_sessions=sum(item.state == "open" for item in members),
        faulty_sessions=sum(any(item.faults.values()) for item in members),
        faults=_faults(members),
    )


def _unscored_first(item: Trajectory) -> bool:
    """Whether the first update has no score, though others of the session may."""
    first = next((point for point in counted(item) if point.updated), None)
    return missing_utility(item) is None and first is not None and first.stale


def _faults(members: Sequence[Trajectory]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for item in members:
        total.update(item.faults)
    return dict(sorted(total.items()))


def _scores(
    group: Group, members: Sequence[Trajectory], found: Sequence[SessionValues | None]
) -> list[SessionScore]:
    scores = [
        SessionScore(
            session=item.session,
            group=group.group,
            baseline=item.baseline,
            all_rounds=len(item.points),
            first=values.first if values else None,
            final=values.final if values else None,
            overall=values.overall if values else None,
            performance=performance(item),
            agent_tokens=item.agent_tokens,
            human_tokens=item.human_tokens,
        )
        for item, values in zip(members, found, strict=True)
    ]
    return sorted(scores, key=lambda score: score.session)


def _all_buckets(sessions: Sequence[Trajectory], settings: _ReportSettings) -> tuple[Buckets, ...]:
    """Buckets per model, and per any other label grouped by, over all collaborating agents."""
    labels = bucket_labels(settings.labels)
    pooled: dict[tuple[tuple[str, str], ...], list[Trajectory]] = {}
    for item in sessions:
        if not item.baseline:
            pooled.setdefault(tuple(_group(item, labels).items()), []).append(item)
    return tuple(
        make_buckets(
            dict(key),
            _rated(pooled[key], settings.convention),
            settings.resamples,
            sample_seed(settings.seed, "buckets", dict(key)),
        )
        for key in sorted(pooled)
    )


def _rated(
    sessions: Iterable[Trajectory], convention: Convention
) -> list[tuple[float, float | None]]:
    """Token ratio and final performance of the sessions that have the first."""
    return [
        (ratio, performance(item))
        for item in sessions
        if (ratio := token_ratio(item.agent_tokens, item.human_tokens, convention)) is not None
    ]
