"""Replays rules of stopping on recorded sessions, with the minutes they save and the utility they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from ...engine.rounds import is_unproductive
from ...scoring.metrics.results import Estimate
from .diagnosis import estimated, over_problems
from .signs import CHANGE, Signs

__all__ = ("ROUNDS", "Replayed", "StopRule", "replay_stops")

StopRule: TypeAlias = Literal["unproductive", "flat"]
"""Stop after some unproductive rounds in a row, or after some rounds in a row in which utility did not rise."""

ROUNDS: Final = (1, 2, 3)
"""The numbers of rounds that are tried."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a rule of stopping on recorded sessions. Each ends with the round in which the rule
    holds, and what came after is cut off; a session in which it never holds stays as it is.

    Attributes:
        rule: which rule.
        rounds: its number of rounds.
        sessions: how many were replayed.
        stopped: how many of them it would have ended early.
        utility: mean change of final utility.
        minutes: mean change of the human's minutes.
        net: mean change of utility less the price of the minutes.
    """

    rule: StopRule
    rounds: int
    sessions: int
    stopped: int
    utility: Estimate
    minutes: Estimate
    net: Estimate

    @property
    def pays(self) -> bool:
        """Whether the sessions would have been worth more with it."""
        return self.net.value is not None and self.net.value > 0


def replay_stops(
    signs: Sequence[Signs], rule: StopRule, *, price: float, resamples: int, seed: int
) -> Replayed | None:
    """The replay of a rule with the number of rounds by which sessions would be worth most; None without sessions.

    Args:
        signs: the signs of the sessions; those that failed, or lack a human or an agent, are left
            out.
        rule: which rule.
        price: utility that a minute of the human's time is worth.
        resamples: how often the problems are resampled.
        seed: the seed of the draws.
    """
    used = [one for one in signs if not one.baseline and not one.failed and one.utilities]
    if not used:
        return None
    found = [_replayed(used, rule, rounds, price, resamples, seed) for rounds in ROUNDS]
    return max(found, key=lambda one: (one.net.value or 0.0, one.rounds))


def _replayed(
    used: Sequence[Signs], rule: StopRule, rounds: int, price: float, resamples: int, seed: int
) -> Replayed:
    ends = [_end(one, rule, rounds) for one in used]
    utility = [one.utilities[end - 1] - one.final for one, end in zip(used, ends, strict=True)]
    minutes = [
        one.until[end - 1] - one.minutes if end < len(one.utilities) else 0.0
        for one, end in zip(used, ends, strict=True)
    ]
    means = over_problems(
        [f"{one.task}/{one.problem}" for one in used],
        {"utility": utility, "minutes": minutes},
        resamples,
        seed,
    )
    return Replayed(
        rule=rule,
        rounds=rounds,
        sessions=len(used),
        stopped=sum(end < len(one.utilities) for one, end in zip(used, ends, strict=True)),
        utility=estimated(means["utility"], len(used)),
        minutes=estimated(means["minutes"], len(used)),
        net=estimated(means["utility"] - price * means["minutes"], len(used)),
    )


def _end(one: Signs, rule: StopRule, rounds: int) -> int:
    """The round in which a rule ends the session; its last round if none does."""
    best, row = 0.0, 0
    for number, (utility, rating) in enumerate(
        zip(one.utilities, one.ratings, strict=True), start=1
    ):
        if rule == "unproductive":
            idle = is_unproductive(rating)
        else:  # before there is any output, nothing can have stopped to rise
            idle = best > 0 and utility < best + CHANGE
        best = max(best, utility)
        row = row + 1 if idle else 0
        if row == rounds:
            return number
    return len(one.utilities)
