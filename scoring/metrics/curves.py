"""Scaling curves: mean utility against rounds, or against any other measure of effort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import numpy as np

from ..columns.table import Columns, Floats, Integers
from ..trajectory.points import Trajectory
from .numbers import mean, quantile, sem
from .results import CurvePoint, EffortAxis
from .sample import Column, Sample
from .values import Facts, Values, facts_of

__all__ = ("UNITS", "effort_curve", "round_columns", "round_curve")


UNITS: Final[Mapping[EffortAxis, float]] = {
    "seconds": 60.0,
    "tokens_read": 1.0,
    "tokens_written": 1.0,
}
"""Axes other than rounds, and the divisor of their values: seconds are shown as minutes."""


def round_columns(
    facts: Facts, values: Values, rows: Integers, length: int | None
) -> tuple[dict[str, Column], list[int]]:
    """Utilities of a group by round, shorter trajectories carried forward.

    Args:
        facts: the facts of all sessions.
        values: the values of all sessions.
        rows: the sessions of the group.
        length: the length of the curve; None for that of the longest trajectory.

    Returns:
        A column per round; and how many sessions reach each round by themselves.
    """
    walked = values.walked[rows]
    if length is None:  # rounds of sessions of which events were lost are not known
        walked = walked & ~(facts.columns.lost[rows] > 0)
    last = np.where(walked, values.last[rows], 0)
    if length is None:
        length = int(last.max(initial=0))

    def column(k: int) -> Floats:
        return facts.at(np.minimum(last, k), rows)

    ending = np.bincount(np.minimum(last, length), minlength=length + 1)
    reached = np.cumsum(ending[::-1])[::-1][1:].tolist()
    return {f"round {k}": partial(column, k) for k in range(1, length + 1)}, reached


def round_curve(sample: Sample, reached: list[int]) -> tuple[CurvePoint, ...]:
    """Mean utility by round over the columns of ``round_columns``.

    Args:
        sample: holds those columns.
        reached: sessions that reach each round by themselves.
    """
    points = []
    for k, sessions in enumerate(reached, start=1):
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
                reached=sessions,
            )
        )
    return tuple(points)


def effort_curve(
    source: Facts | Columns | Iterable[Trajectory],
    measure: str,
    *,
    steps: int = 20,
    reach: float = 0.95,
    unit: float = 1.0,
) -> tuple[CurvePoint, ...]:
    """Mean utility against a cumulative measure of effort.

    At effort x, the utility of a session is that of the last round that it had finished for at
    most x; before its first round U_0 = 0; after its last round its final utility.

    Args:
        source: the sessions; those without a utility, that never have this measure, or of
            which only the result was measured, are left out.
        measure: name of the measure, as in ``Point.effort``.
        steps: number of steps of the axis; a measure of whole numbers up to ``steps`` has a step
            for each.
        reach: the share of sessions after whose end the axis ends.
        unit: divides the values of the measure.

    Returns:
        The points from x = 0; none if no session has the measure.
    """
    facts = facts_of(source)
    spent, utility, starts = facts.walks(measure, facts.valued & ~facts.result_only)
    if not len(starts):
        return ()
    spent = spent / unit
    ends = spent[np.append(starts[1:], len(spent)) - 1]
    end = quantile(np.sort(ends), reach)
    whole = end <= steps and bool((spent == np.rint(spent)).all())
    grid = [float(x) for x in range(int(end) + 1)] if whole else _grid(end, steps)
    points = []
    for x in grid:
        at = np.add.reduceat(spent <= x, starts, dtype=np.int64)
        standing = np.where(at > 0, utility[starts + np.maximum(at, 1) - 1], 0.0).tolist()
        points.append(
            CurvePoint(
                x=x,
                mean=mean(standing) or 0.0,
                sem=sem(standing),
                sessions=len(standing),
                reached=int((ends >= x).sum()),
            )
        )
    return tuple(points)


def _grid(end: float, steps: int) -> list[float]:
    return [end * step / steps for step in range(steps + 1)] if end > 0 else [0.0]
