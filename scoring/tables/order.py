"""Where the order of agents by D@τ depends on what counts as a bad rating; see ``comparison.sensitivity``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from ..comparison.sensitivity import SensitivityRow, change_warnings, order_changes
from ..metrics.grouping import LABELS
from ..metrics.results import Estimate
from .labels import label_of, named
from .query import Tables
from .values import Reading, formal_stop, is_rated, utility_at

__all__ = ("order_warnings",)

_SAME: Final = 12
"""Digits to which drops are compared: DuckDB adds up in no certain order."""


def order_warnings(
    tables: Tables, taus: Sequence[int], present: Collection[str]
) -> tuple[str, ...]:
    """One sentence per two agents whose order by D@τ depends on what counts as a bad rating.

    Args:
        tables: the sessions.
        taus: the tolerances.
        present: the labels that sessions have.
    """
    labels = [name for name in LABELS if name in present]
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
    stops = ", ".join(f"{formal_stop(tau, reading)} AS s{tau}" for tau in taus)
    drops = ", ".join(f"avg(s{tau}) - avg(reference) FILTER (s{tau} IS NOT NULL)" for tau in taus)
    names = "".join(f", {label_of(name)} AS l{at}" for at, name in enumerate(labels))
    grouped = ", ".join(["1", *(f"l{at}" for at in range(len(labels)))])
    found = tables.rows(
        f"SELECT {grouped}, bool_or(rated) FILTER (valued), {drops} FROM ("
        f"SELECT {is_rated(reading)} AS rated, missing IS NULL AS valued, {stops}, "
        f"{utility_at('last')} AS reference{names} "
        f"FROM cells WHERE NOT baseline) GROUP BY {grouped}"
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
