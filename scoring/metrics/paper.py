"""The ``paper`` convention: as the published analysis of the paper's experiments computes.

It differs from the formulas of section 3 (see ``formal``) in these choices:

- k' is the first *evaluated* round, or round 1 if none was evaluated.
- The drop is taken on trajectories cut to ``max_step`` rounds: the greatest of the sorted lengths
  [int(0.05 n) : int(0.95 n)] of the group's n sessions in which the user spoke. Utility and gain
  are taken on whole trajectories.
- A human who stops at the τ-th unproductive round in a row is left with the row *before* that
  round. A session of which no row is left (τ = 1, first round unproductive) is absent from the
  mean at that τ, and yet present in the mean of those who never stop:

      D@τ = mean_τ - mean_∞                           relative: D@τ / mean_∞

- "Never" is a tolerance of 100 rounds.
- A session whose every score failed is worth 0 throughout.
- A missing rating is 5, one still pending likewise. A session in which the user never spoke, or
  took no turn after the request, has one round without a rating, worth its final performance.
- If fewer than two sessions have user interaction, the slice of lengths is empty and the published
  analysis stops with an error. Here the numbers of that group are missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..columns.table import Flags, Integers
from .values import Facts, Values

__all__ = ("NEVER", "TOO_FEW", "cut_length", "is_silent", "paper_values")

NEVER = 100
"""The tolerance, in rounds, of a human who never stops."""

TOO_FEW = "fewer than two sessions with user interaction, so no length to cut trajectories to"


def is_silent(facts: Facts) -> Flags:
    """The sessions in which the published analysis finds no rounds."""
    silent: Flags = facts.columns.silent | (facts.rounds == 0)
    return silent


def cut_length(facts: Facts, rows: Integers) -> int | None:
    """The length to which the trajectories of a group are cut; None if it has none.

    Args:
        facts: the facts of all sessions.
        rows: the sessions of the group.
    """
    lengths = np.sort(facts.rounds[rows[~is_silent(facts)[rows]]])
    n = len(lengths)
    middle = lengths[int(n * 0.05) : int(n * 0.95)]
    return int(middle[-1]) if len(middle) else None


def paper_values(facts: Facts, taus: Sequence[int], cuts: Integers) -> Values:
    """The numbers of all sessions under ``paper``.

    Args:
        facts: the facts of the sessions.
        taus: the tolerances.
        cuts: the length to which the trajectory of each session is cut; 0 if its group has none, so
            its numbers are missing.
    """
    last, silent = facts.last, is_silent(facts)
    valued = (last > 0) & (cuts > 0)
    final = np.where(valued, facts.final, np.nan)
    overall = np.where(valued, facts.overall, np.nan)
    evaluated = facts.first(~np.isnan(facts.columns.rounds.value))
    first_round = np.where(silent, 1, np.maximum(evaluated, 1))
    first = np.where(valued, facts.at(first_round), np.nan)
    runs = facts.runs(closing=True)
    reached, rows = {}, {}
    for tau in {*taus, NEVER}:
        at = facts.first(runs == tau)
        reached[tau] = np.where(silent | (at > cuts), 0, at)
        rows[tau] = np.where(reached[tau] > 0, reached[tau] - 1, np.minimum(last, cuts))
    stops = {tau: np.where(valued, facts.at(rows[tau]), np.nan) for tau in taus}
    return Values(
        valued=valued,
        walked=valued,
        last=last,
        first=first,
        first_round=first_round,
        final=final,
        overall=overall,
        gain=overall - first,
        kept=rows[NEVER],
        reference=np.where(valued, facts.at(rows[NEVER]), np.nan),
        reached={tau: reached[tau] for tau in taus},
        stops=stops,
    )
