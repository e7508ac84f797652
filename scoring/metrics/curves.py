"""Scaling curves: mean utility against rounds, or against any other measure of effort."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from ..trajectory.points import Trajectory
from .numbers import mean, quantile, sem
from .results import CurvePoint
from .sample import Column, Sample
from .values import missing_utility, result_only, utilities

__all__ = ("carried", "effort_curve", "reached_rounds", "round_curve")


def carried(trajectories: Sequence[tuple[float, ...]], length: int) -> dict[str, Column]:
    """Columns of utilities by round, shorter trajectories carried forward, cut at ``length``."""
    return {
        f"round {k}": [
            values[min(k, len(values)) - 1] if values else None for values in trajectories
        ]
        for k in range(1, length + 1)
    }


def reached_rounds(trajectories: Sequence[tuple[float, ...]], length: int) -> tuple[int, ...]:
    """How many trajectories reach each round by themselves, up to ``length``."""
    return tuple(
        [sum(1 for values in trajectories if len(values) >= k) for k in range(1, length + 1)]
    )


def round_curve(sample: Sample, reached: Sequence[int]) -> tuple[CurvePoint, ...]:
    """Mean utility by round over the columns of ``carried``.

    Args:
        sample: holds those columns.
        reached: sessions that reach each round by themselves.
    """
    points = []
    for k in range(1, len(reached) + 1):
        name = f"round {k}"
        estimate = sample.estimate(name)
        if estimate.value is None:
            break
        points.append(
            CurvePoint(
                x=k,
                mean=estimate.value,
                sem=sample.sem(name),
                low=estimate.low,
                high=estimate.high,
                sessions=sample.count(name),
                reached=reached[k - 1],
            )
        )
    return tuple(points)


def effort_curve(
    trajectories: Sequence[Trajectory], measure: str, *, steps: int = 20, reach: float = 0.95
) -> tuple[CurvePoint, ...]:
    """Mean utility against a cumulative measure of effort.

    At effort x, the utility of a session is that of the last round that it had finished for at
    most x; before its first round U_0 = 0; after its last round its final utility.

    Args:
        trajectories: the sessions; those without a utility, that never have this measure, or of
            which only the result was measured, are left out.
        measure: name of the measure, as in ``Point.effort``.
        steps: number of steps of the axis; a measure of whole numbers up to ``steps`` has a step
            for each.
        reach: the share of sessions after whose end the axis ends.

    Returns:
        The points from x = 0; none if no session has the measure.
    """
    walks: list[tuple[list[float], list[float]]] = []
    for item in trajectories:
        if missing_utility(item) is not None or result_only(item):
            continue
        values = utilities(item)
        steps_taken = [
            (float(spent), value)
            for point, value in zip(item.points, values, strict=False)
            if (spent := point.effort.get(measure)) is not None
        ]
        if steps_taken:
            # An estimate of tokens may be corrected to less: what was reached once stays reached.
            spent_by_then = list(accumulate((spent for spent, _ in steps_taken), max))
            walks.append((spent_by_then, [value for _, value in steps_taken]))
    if not walks:
        return ()
    end = quantile(sorted(efforts[-1] for efforts, _ in walks), reach)
    whole = end <= steps and all(effort.is_integer() for efforts, _ in walks for effort in efforts)
    grid = [float(x) for x in range(int(end) + 1)] if whole else _grid(end, steps)
    points = []
    for x in grid:
        standing = [
            values[at - 1] if (at := bisect_right(efforts, x)) else 0.0 for efforts, values in walks
        ]
        centre = mean(standing)
        if centre is None:
            break
        points.append(
            CurvePoint(
                x=x,
                mean=centre,
                sem=sem(standing),
                sessions=len(standing),
                reached=sum(1 for efforts, _ in walks if efforts[-1] >= x),
            )
        )
    return tuple(points)


def _grid(end: float, steps: int) -> list[float]:
    return [end * step / steps for step in range(steps + 1)] if end > 0 else [0.0]
