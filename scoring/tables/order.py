"""Where the order of agents by D@τ depends on what counts as a bad rating; see ``comparison.sensitivity``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..comparison.sensitivity import SensitivityRow, change_warnings, order_changes
from ..metrics.grouping import LABELS
from ..metrics.results import Estimate
from .labels import named
from .query import Tables, label_of
from .values import Reading, bad_text, first_run, formal_stop, is_rated, utility_at

__all__ = ("order_warnings",)

_SAME: Final = 12
"""Digits to which drops are compared: DuckDB adds up in no certain order."""


def order_warnings(tables: Tables, taus: Sequence[int]) -> tuple[str, ...]:
    """One sentence per two agents whose order by D@τ depends on what counts as a bad rating.

    Args:
        tables: the sessions.
        taus: the tolerances.
    """
    labels = [name for name in LABELS if name in tables.labels]
    agents = tables.rows(f"SELECT DISTINCT {label_of('agent')} FROM cells WHERE NOT baseline")
    if len(agents) < 2:
        return ()
    rows: list[SensitivityRow] = []
    for least in (2, 3, 4):
        for missing in (False, True):
            rows += _drops(tables, taus, labels, Reading(least, missing))
    return change_warnings(order_changes(rows))


def _drops(
    tables: Tables, taus: Sequence[int], labels: Sequence[str], reading: Reading
) -> list[SensitivityRow]:
    """D@τ of each group under one reading of the ratings."""
    names = "".join(f", {label_of(name)} AS l{at}" for at, name in enumerate(labels))
    grouped = ", ".join(["1", *(f"l{at}" for at in range(len(labels)))])
    reached = ", ".join(f"{first_run('bad', tau)} AS k{tau}" for tau in taus)
    stops = ", ".join(f"{formal_stop(tau, at=f'k{tau}', rated='judged')} AS s{tau}" for tau in taus)
    drops = ", ".join(f"avg(s{tau}) - avg(reference) FILTER (s{tau} IS NOT NULL)" for tau in taus)
    # One step inside the other, so that nothing is computed twice for a session.
    found = tables.rows(
        f"SELECT {grouped}, bool_or(judged), {drops} FROM ("
        f"SELECT *, {stops}, {utility_at('last')} AS reference FROM ("
        f"SELECT *, {reached} FROM ("
        "SELECT n, final, numbers, utilities, missing, result_only, left_early, last, "
        f"{is_rated(reading)} AS judged, {bad_text(reading)} AS bad{names} "
        f"FROM cells WHERE NOT baseline AND missing IS NULL))) GROUP BY {grouped}"
    )
    rows = []
    for _, *values in found:
        mine = dict(named(labels, values[: len(labels)]))
        rated, *differences = values[len(labels) :]
        rows += [
            SensitivityRow(
                judge="",
                least=reading.least,
                missing="unsatisfactory" if reading.missing else "satisfactory",
                group=mine,
                tau=tau,
                drop=Estimate(value=None if not rated or value is None else round(value, _SAME)),
                stopped=0,
            )
            for tau, value in zip(taus, differences, strict=True)
        ]
    return rows
