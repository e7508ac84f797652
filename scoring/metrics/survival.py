"""Survival of sessions by round (Kaplan and Meier 1958), and the hazard of being abandoned.

A session that the human finishes, satisfied, can no longer be abandoned: finishing competes with leaving. 1 - S takes
such sessions for ones that might still be abandoned later, and overstates how many are. The cumulative incidence
(Aalen and Johansen 1978) does not.

The event is that the human leaves: the session was closed as ``abandoned`` or ``tolerance``. Every
other end, and sessions that are still open, are censored: they say that the human stayed so long,
and nothing of what would have come. It runs on the standard library; tests hold it to scipy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import NormalDist
from typing import Final, final

import msgspec

__all__ = (
    "LEFT",
    "Hazard",
    "SurvivalPoint",
    "hazards",
    "survival_curve",
    "survival_of_counts",
    "wilson",
)

LEFT = frozenset({"abandoned", "tolerance"})
"""Close reasons that say that the human left before the end."""


_WIDEST: Final = 700.0  # beyond that the interval is all of 0 to 1, and its ends overflow
_Z: Final = NormalDist().inv_cdf(0.975)  # intervals cover 95 %


class SurvivalPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The survival function after one round.

    Attributes:
        round: k.
        survival: S(k), the estimated share of sessions whose human stays beyond round k.
        low: lower end of the pointwise interval (log-log transform of Greenwood's variance); None
            if it is undefined: before the first human left, or once S is 0.
        high: upper end of it.
        at_risk: sessions that were still going on when round k began.
        left: sessions whose human left in round k.
        censored: sessions that ended otherwise in round k, or are open there.
        finished: those of these that the human finished, satisfied.
        incidence: the share of sessions that are abandoned by the end of round k (Aalen-Johansen).
        incidence_low: lower end of its pointwise interval (log-log transform of the delta-method variance,
            Marubini and Valsecchi 1995); None before the first human left, and if the incidence is 1.
        incidence_high: upper end of it.
    """

    round: int
    survival: float
    low: float | None = None
    high: float | None = None
    at_risk: int
    left: int
    censored: int
    finished: int = 0
    incidence: float = 0.0
    incidence_low: float | None = None
    incidence_high: float | None = None


class Hazard(msgspec.Struct, frozen=True, kw_only=True):
    """How often the human leaves after a number of unproductive rounds in a row.

    Attributes:
        stalled: unproductive rounds in a row, up to and including the current round; a round whose
            rating is missing neither lengthens nor ends the run. (For the tolerance it ends it.)
        rounds: rounds at whose end the run was that long.
        left: those of them in which the human left.
        hazard: ``left / rounds``.
        low: lower end of the Wilson interval.
        high: upper end of it.
    """

    stalled: int
    rounds: int
    left: int
    hazard: float
    low: float
    high: float


def survival_curve(
    sessions: Iterable[tuple[int, bool]],
    *,
    finished: Mapping[int, int] = {},
) -> tuple[SurvivalPoint, ...]:
    """The product-limit estimate: S(k) = Π_{j ≤ k} (1 - d_j / n_j).

    Args:
        sessions: per session its last round K, and whether its human left there (else it is
            censored at K). Sessions without a round are no one's to leave, and are left out.
        finished: how many of those that were not left the human finished, by their last round.

    Returns:
        A point per round, from 1 to the longest session; none if there is no session.
    """
    return survival_of_counts(Counter(sessions), finished=finished)


def survival_of_counts(
    sessions: Mapping[tuple[int, bool], int],
    *,
    finished: Mapping[int, int] = {},
) -> tuple[SurvivalPoint, ...]:
    """The same from how many sessions there are by their last round, and whether their human left there."""
    at_risk = sum(count for (k, _), count in sessions.items() if k > 0)
    survival, greenwood = 1.0, 0.0
    going, incidence = 1.0, 0.0  # neither left nor finished; left
    variance = _IncidenceVariance()
    points: list[SurvivalPoint] = []
    for k in range(1, max((k for k, _ in sessions), default=0) + 1):
        left, censored = sessions.get((k, True), 0), sessions.get((k, False), 0)
        if left:
            survival *= 1 - left / at_risk
            stayed = at_risk - left
            greenwood = greenwood + left / (at_risk * stayed) if stayed else math.inf
        done = finished.get(k, 0)
        if left or done:
            incidence += going * left / at_risk
            variance.add(incidence, going, at_risk, left, done)
            going *= 1 - (left + done) / at_risk
        low, high = _log_log(survival, greenwood)
        lowest, highest = _log_log(incidence, variance.relative(incidence))
        points.append(
            SurvivalPoint(
                round=k,
                survival=survival,
                low=low,
                high=high,
                at_risk=at_risk,
                left=left,
                censored=censored,
                finished=done,
                incidence=incidence,
                incidence_low=lowest,
                incidence_high=highest,
            )
        )
        at_risk -= left + censored
    return tuple(points)


@final
class _IncidenceVariance:
    """Variance of the Aalen-Johansen estimate by the delta method, round by round."""

    def __init__(self) -> None:
        self._ended = self._ended_at = self._ended_squared = 0.0
        self._own = 0.0
        self._both = self._both_at = 0.0

    def add(self, incidence: float, going: float, at_risk: int, left: int, finished: int) -> None:
        """Takes a round in which sessions ended.

        Args:
            incidence: F(k), after it.
            going: the share that was going on when it began.
            at_risk: sessions that were.
            left: sessions whose human left in it.
            finished: sessions that the human finished in it.
        """
        over = left + finished
        if over < at_risk:  # else no round follows
            ended = over / (at_risk * (at_risk - over))
            self._ended += ended
            self._ended_at += incidence * ended
            self._ended_squared += incidence * incidence * ended
        self._own += going * going * (at_risk - left) * left / at_risk**3
        both = going * left / at_risk**2
        self._both += both
        self._both_at += incidence * both

    def relative(self, incidence: float) -> float:
        """The variance over the squared incidence, as of the last round that was taken."""
        found = (
            incidence * incidence * self._ended
            - 2.0 * incidence * self._ended_at
            + self._ended_squared
            + self._own
            - 2.0 * incidence * self._both
            + 2.0 * self._both_at
        )
        return max(found, 0.0) / incidence**2 if incidence else 0.0


def _log_log(share: float, variance: float) -> tuple[float, float] | tuple[None, None]:
    """The interval exp(-exp(log(-log p) ± z σ)), which stays within 0 and 1.

    Args:
        share: p.
        variance: that of log p.
    """
    if not 0 < share < 1:
        return None, None
    log = math.log(share)
    width = min(_Z * math.sqrt(variance) / abs(log), _WIDEST)
    return math.exp(log * math.exp(width)), math.exp(log * math.exp(-width))


def hazards(rounds: Mapping[int, int], left: Mapping[int, int]) -> tuple[Hazard, ...]:
    """How often the human leaves, by the number of unproductive rounds in a row.

    Args:
        rounds: how many rounds there are by the number of unproductive rounds in a row by then.
        left: in how many of them the human left.
    """
    return tuple([_hazard(run, rounds[run], left.get(run, 0)) for run in sorted(rounds)])


def _hazard(run: int, rounds: int, left: int) -> Hazard:
    low, high = wilson(left, rounds)
    return Hazard(stalled=run, rounds=rounds, left=left, hazard=left / rounds, low=low, high=high)


def wilson(count: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a proportion (Wilson 1927).

    Raises:
        ValueError: ``total`` is 0.
    """
    if not total:
        raise ValueError("no trials, so no proportion")
    z = _Z
    share = count / total
    scale = 1 + z * z / total
    centre = (share + z * z / (2 * total)) / scale
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / scale
    return max(0.0, centre - half), min(1.0, centre + half)
