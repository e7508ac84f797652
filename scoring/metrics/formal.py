"""The ``formal`` convention: the paper's formulas (section 3) to the letter.

With N sessions i, K_i the last round of session i, k'_i its first round with an update, and U_k^(i) the
utility after round k (U_0 = 0, carried forward):

    overall   U    = 1/N Σ_i max_k U_k^(i)
    first          = 1/N Σ_i U_k'_i^(i)
    final          = 1/N Σ_i U_K_i^(i)
    gain      G    = 1/N Σ_i (max_k U_k^(i) - U_k'_i^(i))            relative: G / first
    drop      D@τ  = 1/N Σ_i (U_k_i,τ^(i) - U_K_i^(i))               relative: D@τ / final

Every evaluated session that began is in every mean, whether an agent acted in it or not. If a
session poses an output and no agent updated it, its first is 0. A session without an output has
neither a first nor a gain.

Missing is missing: a session that was not evaluated, or whose every score failed, is in none of
these means. If the score of the first update is missing, so are the session's first and gain. D@τ
is missing in these cases:

- The session lacks ratings, unless it has at most τ rounds: then nothing is lost in any case.
- Its human left, or it was stopped, before τ could be reached.
- It poses no output and was evaluated only in its last round, so only its result is known.
- For a group: none of its sessions has a rating.

Sessions that are left out of a mean are counted.

Choices that the formulas leave open:

- A round with an update is one in which the agent submitted an output that is not blank and
  differs from the one before, whether or not its score is known. A stale point keeps the utility
  before it.
- A round is unproductive if its rating is below 3. A missing rating counts as productive,
  and so ends a run of unproductive ones.
- k_τ is the round at which τ unproductive rounds in a row are reached, and U_k_τ the utility
  when the human leaves *after* that round; if τ is never reached, k_τ = K, so the session
  contributes 0. Stopping in round 1 counts as stopping in any other.
- Tolerance waits for a pending rating: later rounds do not count until it is recorded.
- A session in which the user never spoke has one round, worth its final performance.
- A closing round, a last one after the first that holds messages of humans only, counts for none of
  these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .values import USUAL, Facts, Reading, Values

__all__ = ("formal_values", "read_as")


def formal_values(facts: Facts, taus: Sequence[int], reading: Reading = USUAL) -> Values:
    """The numbers of all sessions under ``formal``.

    Args:
        facts: the facts of the sessions.
        taus: the tolerances.
        reading: what counts as an unproductive round.
    """
    valued, last, only = facts.valued, facts.last, facts.result_only
    final = np.where(valued, facts.final, np.nan)
    overall = np.where(valued, facts.overall, np.nan)
    whole = facts.rounds == 0  # one pseudo-round, in which the output came
    first_round = np.where(whole, last, facts.update_at)
    stale = facts.flag_at(facts.columns.rounds.stale, facts.update_at)
    first = np.where(first_round > 0, facts.at(first_round), 0.0)
    first = np.where(valued & facts.columns.output & ~stale, first, np.nan)
    values = Values(
        valued=valued,
        walked=valued & ~only,
        last=last,
        first=first,
        first_round=first_round,
        final=final,
        overall=overall,
        gain=overall - first,
        kept=last,
        reference=final,
        reached={},
        stops={},
    )
    return read_as(facts, values, taus, reading)


def read_as(facts: Facts, values: Values, taus: Sequence[int], reading: Reading) -> Values:
    """The same numbers with the stops of another reading of the ratings."""
    reached = facts.reached(taus, reading)
    rated = facts.rated(reading)
    stops = {}
    for tau, at in reached.items():
        # A human who left might have reached τ later: it is unknown.
        stays = ~facts.left & (rated | (values.last <= tau))
        stop = np.where(at > 0, facts.at(at), np.where(stays, values.final, np.nan))
        # If events were lost, their rounds are unknown.
        stops[tau] = np.where(values.walked & ~(facts.columns.lost > 0), stop, np.nan)
    return values._replace(reached=reached, stops=stops)
