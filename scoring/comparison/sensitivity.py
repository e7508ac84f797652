"""How D@τ depends on conventions: which rating counts as unproductive, and which judge counts.

A finding about the drop should not depend on a convention. Each row computes D@τ once more with one
choice changed: the least rating that counts as progress, how a missing rating counts, or the
judge whose ratings count. If the order of agents differs between rows, the analysis says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from ...engine.log.summary import FORGOTTEN
from ...engine.rounds import PRODUCTIVE
from ..columns.table import Columns
from ..metrics.aggregate import (
    absent_utility,
    chosen_labels,
    drop_columns,
    drops_of,
    sample_seed,
)
from ..metrics.formal import formal_values, read_as
from ..metrics.results import DropOrder, DropSign, Estimate, Robustness
from ..metrics.sample import Sample
from ..metrics.values import Facts, Reading, facts_of
from ..trajectory.points import Trajectory
from ..trajectory.tolerance import check_taus

__all__ = (
    "THRESHOLDS",
    "Missing",
    "Sensitivity",
    "SensitivityRow",
    "change_warnings",
    "order_changes",
    "robustness",
    "sensitivity",
)

Missing = Literal["productive", "unproductive"]
"""How a missing rating counts."""

THRESHOLDS: Final = (PRODUCTIVE - 1, PRODUCTIVE, PRODUCTIVE + 1)
"""The least ratings of a productive round under which findings about the drop are looked at."""

_MISSING: Final[tuple[Missing, ...]] = ("productive", "unproductive")
_TIE = 1e-9  # equal drops may differ by this much, since sums are rounded


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
        return self.least == PRODUCTIVE and self.missing == "productive"


class Sensitivity(msgspec.Struct, frozen=True, kw_only=True):
    """D@τ under all choices.

    Attributes:
        rows: one per judge, choice, group and τ.
        changes: the choices on which the order of agents depends.
    """

    rows: tuple[SensitivityRow, ...]
    changes: tuple[DropOrder, ...]


def sensitivity(
    by_judge: Mapping[str, Facts | Columns | Iterable[Trajectory]],
    *,
    taus: Sequence[int] = (1, 2, 3),
    least: Sequence[int] = THRESHOLDS,
    bootstrap: int = 0,
    seed: int = 0,
) -> Sensitivity:
    """Computes D@τ under every combination of judge, threshold and reading of missing ratings.

    Args:
        by_judge: the same sessions with the ratings of each judge, by the judge's name.
        taus: the tolerances.
        least: the thresholds; a rating below one counts as unproductive.
        bootstrap: resamples for the intervals; 0 for none.
        seed: seeds the resampling.

    Raises:
        InvalidInput: a tolerance is below 1.
    """
    ordered = check_taus(taus)
    rows: list[SensitivityRow] = []
    for judge, source in by_judge.items():
        facts = facts_of(source)
        columns = facts.columns
        facts = facts.take(~columns.baseline & ~columns.state.flags(FORGOTTEN.__eq__))
        facts.check_range()
        everybody = np.arange(len(facts.columns))
        groups = facts.columns.grouped(everybody, chosen_labels(facts.columns, None))
        usual = formal_values(facts, ordered)
        for bound in least:
            for missing in _MISSING:
                reading = Reading(bound, missing == "unproductive")
                values = read_as(facts, usual, ordered, reading)
                rated = facts.rated(reading)
                for labels, members in groups:
                    sample = Sample(
                        drop_columns(values, members, formal=True),
                        bootstrap,
                        sample_seed(seed, "group", labels),
                    )
                    drops = drops_of(
                        facts,
                        values,
                        members,
                        sample,
                        rated=rated,
                        absent=absent_utility(facts, members),
                        formal=True,
                    )
                    rows += [
                        SensitivityRow(
                            judge=judge,
                            least=bound,
                            missing=missing,
                            group=labels,
                            tau=drop.tau,
                            drop=drop.abs,
                            stopped=drop.stopped,
                        )
                        for drop in drops
                    ]
    return Sensitivity(rows=tuple(rows), changes=tuple(order_changes(rows)))


def robustness(found: Sensitivity) -> Robustness:
    """Whether sign and order of the drop hold under all choices, from ``sensitivity``."""
    drops: dict[tuple[tuple[tuple[str, str], ...], int], list[float]] = {}
    for row in found.rows:
        if row.drop.value is not None:
            drops.setdefault((tuple(sorted(row.group.items())), row.tau), []).append(row.drop.value)
    return Robustness(
        readings=len({(row.judge, row.least, row.missing) for row in found.rows}),
        signs=tuple(
            [
                DropSign(
                    group=dict(group),
                    tau=tau,
                    negative=sum(value < -_TIE for value in values),
                    zero=sum(abs(value) <= _TIE for value in values),
                    positive=sum(value > _TIE for value in values),
                )
                for (group, tau), values in drops.items()
            ]
        ),
        orders=tuple(_orders(found.rows)),
    )


def change_warnings(changes: Iterable[DropOrder]) -> tuple[str, ...]:
    """One sentence per two agents whose order changes, at whatever tolerances."""
    found: dict[tuple[str, str], list[int]] = {}
    for change in changes:
        found.setdefault((change.first, change.second), []).append(change.tau)
    return tuple(
        [
            f"the order of {first} and {second} by the drop at τ = "
            f"{', '.join(map(str, sorted(set(at))))} depends on what counts as unproductive "
            "(--sensitivity shows how)"
            for (first, second), at in found.items()
        ]
    )


def order_changes(rows: Iterable[SensitivityRow]) -> list[DropOrder]:
    """Pairs of agents, all else alike, of whom now one and now the other loses less."""
    return [one for one in _orders(rows) if one.above and one.below]


def _orders(rows: Iterable[SensitivityRow]) -> list[DropOrder]:
    """Each two agents, all else alike, and how often which of them loses less."""
    cells: dict[tuple[tuple[tuple[str, str], ...], int], dict[str, dict[object, float]]] = {}
    for row in rows:
        if row.drop.value is None or "agent" not in row.group:
            continue
        shared = tuple(sorted((k, v) for k, v in row.group.items() if k != "agent"))
        agents = cells.setdefault((shared, row.tau), {})
        choice = (row.judge, row.least, row.missing)
        agents.setdefault(row.group["agent"], {})[choice] = row.drop.value
    found: list[DropOrder] = []
    for (shared, tau), agents in cells.items():
        names = sorted(agents)
        for index, first in enumerate(names):
            for second in names[index + 1 :]:
                both = agents[first].keys() & agents[second].keys()
                gaps = [agents[first][choice] - agents[second][choice] for choice in both]
                found.append(
                    DropOrder(
                        group=dict(shared),
                        tau=tau,
                        first=first,
                        second=second,
                        above=sum(gap > _TIE for gap in gaps),
                        below=sum(gap < -_TIE for gap in gaps),
                        equal=sum(abs(gap) <= _TIE for gap in gaps),
                    )
                )
    return found
