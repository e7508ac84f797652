"""Where the order of agents by D@τ depends on what counts as a bad rating; see ``comparison.sensitivity``."""

from __future__ import annotations

from collections.abc import Sequence

from ..comparison.sensitivity import SensitivityRow, change_warnings, order_changes
from ..metrics.grouping import LABELS
from ..metrics.results import Estimate
from .labels import matching, named, selected
from .query import Tables, label_of
from .values import FINAL, Reading

__all__ = ("order_warnings",)


def order_warnings(tables: Tables, taus: Sequence[int]) -> tuple[str, ...]:
    """One sentence per two agents whose order by D@τ depends on what counts as a bad rating.

    Args:
        tables: the sessions.
        taus: the tolerances.
    """
    from .drops import DropsOfGroups

    labels = [name for name in LABELS if name in tables.labels]
    agents = tables.rows(f"SELECT DISTINCT {label_of('agent')} FROM cells WHERE NOT baseline")
    if len(agents) < 2:
        return ()
    some = "NOT baseline AND missing IS NULL"
    groups = [
        dict(named(labels, values))
        for _, *values in tables.rows(
            f"SELECT DISTINCT 1{selected(labels)} FROM cells WHERE {some}"
        )
    ]
    if not groups:
        return ()
    which = " ".join(f"WHEN {matching(labels, mine)} THEN {at}" for at, mine in enumerate(groups))
    drops = DropsOfGroups(
        tables.rounds,
        tables.columns(
            f"SELECT CASE {which} END AS in_group, coalesce(place, -1) AS place, {FINAL} AS final, last, "
            f"left_early, result_only FROM cells WHERE {some}"
        ),
        len(groups),
    )
    rows: list[SensitivityRow] = []
    for least in (2, 3, 4):
        for missing in (False, True):
            found = drops.under(Reading(least, missing), taus)
            rows += [
                SensitivityRow(
                    judge="",
                    least=least,
                    missing="unsatisfactory" if missing else "satisfactory",
                    group=mine,
                    tau=tau,
                    drop=Estimate(value=found[tau][at]),
                    stopped=0,
                )
                for at, mine in enumerate(groups)
                for tau in taus
            ]
    return change_warnings(order_changes(rows))
