"""The utility of a plan for a household: whether it is feasible, and whether it suits.

    U = feasible * (holds + needs) / 2

*feasible* is the share of the constraints of `constraints` that the plan passes; it multiplies, because
an impossible plan is of no use. *holds* is how well the plan suits the client's wishes at the time.
*needs* is how well it suits the wishes they will have once they know what a plan means to them. Each is
the mean of `suits` over the topics that the client has a wish about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from .plan import Plan
from .world import market
from .world.household import Budget, Topic, Wishes
from .world.places import retirement_pot

__all__ = ("ENOUGH", "STUDY_AGE", "Judged", "chances", "constraints", "judge", "suits")

ENOUGH: Final = 0.75
"""The chance at which a goal counts as reached."""

STUDY_AGE: Final = 18


class Judged(NamedTuple):
    """The worth of a plan.

    Attributes:
        value: in [0, 1].
        parts: by name; see the module.
    """

    value: float
    parts: Mapping[str, float]


def judge(plan: Plan, budget: Budget, holds: Wishes, needs: Wishes) -> Judged:
    """Judges a plan.

    Args:
        plan: the plan to judge.
        budget: the sums of the household.
        holds: the client's current wishes.
        needs: their wishes once they have seen all that matters.
    """
    passed = constraints(plan, budget, needs)
    feasible = sum(passed.values()) / len(passed)
    now = suits(plan, budget, holds)
    real = now if needs == holds else suits(plan, budget, needs)
    held, needed = _mean(now), _mean(real)
    parts = {"feasible": feasible, "holds": held, "needs": needed}
    parts.update({f"needs_{topic}": part for topic, part in real.items()})
    return Judged(feasible * (held + needed) / 2, parts)


def constraints(plan: Plan, budget: Budget, needs: Wishes) -> Mapping[str, bool]:
    """Which of the things that make a plan possible it passes.

    Whether the monthly sums can be paid depends on what the client gives to relatives, which the
    file does not say.
    """
    household = budget.household
    spent = plan.monthly + budget.premium(plan.cover) + needs.support
    return {
        "savings": plan.at_once <= household.savings,
        "monthly": spent <= budget.surplus,
        "cards": plan.cards_monthly >= budget.card_monthly(plan.cards),
        "a month at hand": plan.emergency >= budget.spending,
        "bank": plan.cover >= household.cover_asked,
        "insurer": plan.cover <= budget.cover_limit,
        "allowance": plan.retirement <= budget.retirement_limit,
        "contract": plan.prepay <= budget.prepay_limit,
    }


def chances(plan: Plan, budget: Budget, wishes: Wishes) -> tuple[float, float]:
    """The chances that retirement and studies can be paid as wished; 1 without such a wish."""
    household, place = budget.household, budget.place
    years = max(0, wishes.age - household.age)
    pot = retirement_pot(place, budget.gross, wishes.age, wishes.income)
    retired = market.chance(plan.stocks, years, plan.invested, plan.retirement, pot)
    if not wishes.study:
        return retired, 1.0
    cost = place.study * wishes.study / 100
    studied = market.chance(plan.stocks, STUDY_AGE - household.child, 0, plan.study, cost)
    return retired, studied


def suits(plan: Plan, budget: Budget, wishes: Wishes) -> Mapping[Topic, float]:
    """How far a plan meets each wish, from 0 to 1.

    - ``loss``: 1 if a bad year costs no more than can be borne, falling to 0 at twice that.
    - ``income`` (with ``age``) and ``study``: the chance of the goal; 1 from `ENOUGH` on.
    - all else: what the plan has of it, as a share of what is wished.
    """
    retired, studied = chances(plan, budget, wishes)
    lost = 100 * market.bad_year(plan.stocks)
    suited: dict[Topic, float] = {
        "loss": _within(2 - lost / wishes.loss),
        "cushion": _within(plan.emergency / (wishes.cushion * budget.spending)),
        "income": _within(retired / ENOUGH),
    }
    if wishes.study:
        suited["study"] = _within(studied / ENOUGH)
    if wishes.project:
        suited["project"] = _within(plan.project / wishes.project)
    if wishes.cover:
        suited["cover"] = _within(plan.cover / (wishes.cover * budget.household.salaries[0]))
    if wishes.prepay:
        suited["prepay"] = _within(plan.prepay / wishes.prepay)
    return suited


def _within(value: float) -> float:
    return max(0.0, min(1.0, value))


def _mean(parts: Mapping[Topic, float]) -> float:
    return sum(parts.values()) / len(parts)
