"""Where the order of agents by D@τ depends on what counts as a bad rating; see ``comparison.sensitivity``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..comparison.sensitivity import SensitivityRow, change_warnings, order_changes
from ..metrics.grouping import LABELS
from ..metrics.results import Estimate
from .labels import matching, named, selected
from .query import Tables, label_of
from .values import FINAL, Reading

if TYPE_CHECKING:
    from .folding import Array, Flags, FoldedRounds, Integers

__all__ = ("order_warnings",)

_SAME: Final = 12
"""Digits to which drops are compared: their parts are not added up in the order of the fold."""


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
    some = "NOT baseline AND missing IS NULL"
    groups = [
        dict(named(labels, values))
        for _, *values in tables.rows(
            f"SELECT DISTINCT 1{selected(labels)} FROM cells WHERE {some}"
        )
    ]
    sessions = [
        tables.columns(
            f"SELECT coalesce(place, -1) AS place, {FINAL} AS final, last, left_early, result_only "
            f"FROM cells WHERE {some} AND {matching(labels, mine)}"
        )
        for mine in groups
    ]
    rows: list[SensitivityRow] = []
    for least in (2, 3, 4):
        for missing in (False, True):
            reading = Reading(least, missing)
            reached, judged = tables.rounds.reached(reading, taus), tables.rounds.judged(reading)
            rows += [
                SensitivityRow(
                    judge="",
                    least=least,
                    missing="unsatisfactory" if missing else "satisfactory",
                    group=mine,
                    tau=tau,
                    drop=Estimate(value=_drop(tables.rounds, of, tau, reached[tau], judged)),
                    stopped=0,
                )
                for mine, of in zip(groups, sessions, strict=True)
                for tau in taus
            ]
    return change_warnings(order_changes(rows))


def _drop(
    rounds: FoldedRounds, sessions: Mapping[str, Array], tau: int, reached: Integers, judged: Flags
) -> float | None:
    """D@τ of some sessions; None where it is missing."""
    import numpy as np

    place, whole = sessions["place"], ~sessions["result_only"]
    at = np.append(reached, np.int32(0))[place]  # a session without rounds has the place -1
    rated = np.append(judged, False)[place]
    stops = whole & (at > 0)
    known = stops | whole & ~sessions["left_early"] & (rated | (sessions["last"] <= tau))
    if not rated.any() or not known.any():
        return None
    lost = rounds.utility_at(place[stops], at[stops], math.nan) - sessions["final"][stops]
    return round(float(lost.sum() / known.sum()), _SAME)
