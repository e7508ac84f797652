"""The analyses of ``duolog report`` that go beyond its table: judges, and one session explained."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..engine.display import clean
from ..engine.errors import InvalidInput
from ..scoring.comparison.agreement import Agreement, agreement
from ..scoring.comparison.sensitivity import Sensitivity, sensitivity
from ..scoring.metrics import Report
from ..scoring.metrics.forks import without_forks
from ..scoring.report import explain, explanation_text
from ..scoring.trajectory.options import Options
from ..scoring.trajectory.points import Trajectory
from .output import print_json, print_text
from .report_sources import judges_of, load, one_session

__all__ = ("agreement_of", "print_explanation", "sensitivity_of")


def sensitivity_of(
    sources: Sequence[str],
    options: Options,
    *,
    taus: Sequence[int],
    bootstrap: int,
    seed: int,
    workers: int | None = None,
) -> Sensitivity:
    """The drop by judge, threshold and reading of missing ratings.

    Raises:
        InvalidInput: nobody rated anything in the sources.
        LogError: a log cannot be read.
    """
    by_judge = _by_judge(sources, options, workers)
    return sensitivity(by_judge, taus=taus, bootstrap=bootstrap, seed=seed)


def agreement_of(
    sources: Sequence[str],
    options: Options,
    *,
    bootstrap: int,
    seed: int,
    workers: int | None = None,
) -> Agreement:
    """The agreement of all judges who rated rounds of the sources.

    Raises:
        InvalidInput: nobody rated anything in the sources.
        LogError: a log cannot be read.
    """
    rounds: dict[str, list[dict[str, int]]] = {}
    for judge, trajectories in _by_judge(sources, options, workers).items():
        for item in trajectories:
            found = rounds.setdefault(item.session, [{} for _ in item.points])
            for ratings, point in zip(found, item.points, strict=True):
                if point.rating is not None:
                    ratings[judge] = point.rating
    return agreement(rounds, resamples=bootstrap, seed=seed)


def _by_judge(
    sources: Sequence[str], options: Options, workers: int | None
) -> dict[str, list[Trajectory]]:
    """The same sessions with the ratings of each judge, without forks of what is there already."""
    judges = judges_of(sources)
    if not judges:
        raise InvalidInput(f"nobody rated the progress of any round in {', '.join(sources)}")
    found = {
        judge: load(sources, msgspec.structs.replace(options, judge=judge), workers=workers)
        for judge in judges
    }
    return dict(zip(found, map(without_forks, found.values()), strict=True))


def print_explanation(
    trajectories: Sequence[Trajectory], report: Report, name: str, *, as_json: bool
) -> None:
    """Explains a session's numbers; under ``paper`` they depend on the cut of its group."""
    trajectory = one_session(trajectories, name)
    mine = {
        label: trajectory.group[label] for label in report.group_by if label in trajectory.group
    }
    cuts = [
        group.max_step
        for group in report.groups
        if group.group == mine and group.baseline == trajectory.baseline
    ]
    explained = explain(
        trajectory,
        convention=report.convention,
        taus=report.taus,
        max_step=cuts[0] if cuts else None,
    )
    if as_json:
        print_json(explained)
    else:
        print_text(clean(explanation_text(explained)))
