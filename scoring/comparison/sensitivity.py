"""How D@τ depends on what nobody can measure: which rating counts as bad, and who rated.

A finding about the drop should not hang on a convention. Each row computes D@τ once more with one
choice changed: the least rating that counts as progress, what a missing rating counts as, and the
judge whose ratings count. Where the order of agents is not the same in all rows, that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from ..metrics.aggregate import aggregate
from ..metrics.results import Estimate
from ..trajectory.points import Point, Trajectory
from ..trajectory.tolerance import SATISFACTORY

__all__ = (
    "Missing",
    "OrderChange",
    "Sensitivity",
    "SensitivityRow",
    "change_warnings",
    "order_changes",
    "order_warnings",
    "ratings_as",
    "sensitivity",
)

Missing = Literal["satisfactory", "unsatisfactory"]
"""What a missing rating counts as."""

_BAD, _GOOD = 1, 5
_TIE = 1e-9  # what the same drops may differ by, since sums are rounded


class SensitivityRow(msgspec.Struct, frozen=True, kw_only=True):
    """D@τ of one group under one choice.

    Attributes:
        judge: whose ratings count.
        least: the least rating that counts as progress.
        missing: what a missing rating counts as.
        group: the labels of the group.
        tau: τ.
        drop: D@τ.
        stopped: sessions in which τ was reached.
    """

    judge: str
    least: int
    missing: Missing
    group: Mapping[str, str]
    tau: int
    drop: Estimate
    stopped: int

    @property
    def usual(self) -> bool:
        """Whether it is the choice of the definitions: below 3 is bad, missing is not."""
        return self.least == SATISFACTORY and self.missing == "satisfactory"


class OrderChange(msgspec.Struct, frozen=True, kw_only=True):
    """Two agents whose order by D@τ is not the same under all choices.

    Attributes:
        group: the labels that they share.
        tau: τ.
        first: an agent.
        second: another.
        above: under how many choices the first loses less than the second.
        below: under how many it loses more.
    """

    group: Mapping[str, str]
    tau: int
    first: str
    second: str
    above: int
    below: int


class Sensitivity(msgspec.Struct, frozen=True, kw_only=True):
    """D@τ under all choices.

    Attributes:
        rows: one per judge, choice, group and τ.
        changes: where the order of agents depends on the choice.
    """

    rows: tuple[SensitivityRow, ...]
    changes: tuple[OrderChange, ...]


def sensitivity(
    by_judge: Mapping[str, Sequence[Trajectory]],
    *,
    taus: Sequence[int] = (1, 2, 3),
    least: Sequence[int] = (2, 3, 4),
    bootstrap: int = 0,
    seed: int = 0,
) -> Sensitivity:
    """Computes D@τ under every combination of judge, threshold and reading of missing ratings.

    Args:
        by_judge: the same sessions with the ratings of each judge, by the judge's name.
        taus: the tolerances.
        least: the thresholds; a rating below one counts as unsatisfactory.
        bootstrap: resamples for the intervals; 0 for none.
        seed: seeds the resampling.

    Raises:
        InvalidInput: a tolerance is below 1.
    """
    rows: list[SensitivityRow] = []
    for judge, trajectories in by_judge.items():
        for bound in least:
            for missing in ("satisfactory", "unsatisfactory"):
                read = [
                    ratings_as(item, bound, missing) for item in trajectories if not item.baseline
                ]
                report = aggregate(read, taus=taus, bootstrap=bootstrap, seed=seed)
                rows += [
                    SensitivityRow(
                        judge=judge,
                        least=bound,
                        missing=missing,
                        group=group.group,
                        tau=drop.tau,
                        drop=drop.abs,
                        stopped=drop.stopped,
                    )
                    for group in report.groups
                    for drop in group.drops
                ]
    return Sensitivity(rows=tuple(rows), changes=tuple(order_changes(rows)))


def order_warnings(
    trajectories: Sequence[Trajectory], taus: Sequence[int] = (1, 2, 3)
) -> tuple[str, ...]:
    """One sentence per two agents whose order by D@τ depends on what counts as a bad rating.

    Args:
        trajectories: the sessions, with the ratings that count.
        taus: the tolerances.
    """
    if len({item.group.get("agent") for item in trajectories if not item.baseline}) < 2:
        return ()
    return change_warnings(sensitivity({"": trajectories}, taus=taus).changes)


def change_warnings(changes: Iterable[OrderChange]) -> tuple[str, ...]:
    """One sentence per two agents whose order changes, at whatever tolerances."""
    found: dict[tuple[str, str], list[int]] = {}
    for change in changes:
        found.setdefault((change.first, change.second), []).append(change.tau)
    return tuple(
        [
            f"the order of {first} and {second} by the drop at τ = "
            f"{', '.join(map(str, sorted(set(at))))} depends on what counts as a bad rating "
            "(--sensitivity shows how)"
            for (first, second), at in found.items()
        ]
    )


def ratings_as(item: Trajectory, least: int, missing: Missing) -> Trajectory:
    """The session with its ratings read as bad or good, whatever their values were.

    Args:
        item: the session.
        least: the least rating that counts as progress.
        missing: what a missing rating counts as.
    """
    rated = any(point.rating is not None for point in item.points)
    if not rated:
        return item  # nobody rated it: there is nothing to read otherwise
    points = tuple([_point(point, least, missing) for point in item.points])
    return msgspec.structs.replace(item, points=points)


def _point(point: Point, least: int, missing: Missing) -> Point:
    if point.rating is None:
        if missing == "satisfactory" or point.pending:
            return point
        return msgspec.structs.replace(point, rating=_BAD)
    return msgspec.structs.replace(point, rating=_BAD if point.rating < least else _GOOD)


def order_changes(rows: Iterable[SensitivityRow]) -> list[OrderChange]:
    """Pairs of agents, all else alike, of whom now one and now the other loses less."""
    cells: dict[tuple[tuple[tuple[str, str], ...], int], dict[str, dict[object, float]]] = {}
    for row in rows:
        if row.drop.value is None or "agent" not in row.group:
            continue
        shared = tuple(sorted((k, v) for k, v in row.group.items() if k != "agent"))
        agents = cells.setdefault((shared, row.tau), {})
        choice = (row.judge, row.least, row.missing)
        agents.setdefault(row.group["agent"], {})[choice] = row.drop.value
    found: list[OrderChange] = []
    for (shared, tau), agents in cells.items():
        names = sorted(agents)
        for index, first in enumerate(names):
            for second in names[index + 1 :]:
                both = agents[first].keys() & agents[second].keys()
                gaps = [agents[first][choice] - agents[second][choice] for choice in both]
                above, below = sum(gap > _TIE for gap in gaps), sum(gap < -_TIE for gap in gaps)
                if above and below:
                    found.append(
                        OrderChange(
                            group=dict(shared),
                            tau=tau,
                            first=first,
                            second=second,
                            above=above,
                            below=below,
                        )
                    )
    return found
