"""Instances: a household on file, what its client holds and would hold, and a plan that meets it all.

An instance is made backwards. A plan is drawn first, then the wishes that it just meets, so that each
instance has a plan of worth 1 for a client who knows their own mind: the solution. Then some of the
wishes are put wrong, as the client holds them at first.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from random import Random
from typing import Final

import msgspec

from ..judging import ENOUGH, STUDY_AGE, judge
from ..plan import Plan
from . import market
from .household import Budget, Household, Topic, Wishes
from .places import PLACES, Place, make_place, monthly_income

__all__ = ("Instance", "make_instance")

_SURE: Final = round(100 * ENOUGH) + 3
"""Per cent of confidence that the goals of a solution have: a little more than is asked for."""

_EXTRAS: Final[tuple[Topic, ...]] = ("study", "project", "support", "cover", "prepay")
_MOVABLE: Final[Mapping[Topic, float]] = {"age": 0.7, "cushion": 0.65, "study": 0.6, "cover": 0.6}
"""How often a wish about these is held wrong at first; about ``loss`` always."""

_TIMID: Final = 0.25
"""Share of the clients who think that they can bear less than they can, not more."""


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """One instance.

    Attributes:
        household: the file.
        place: where it lives.
        holds: the client's first wishes.
        needs: their wishes once they have seen what matters.
        heard: the topic about which others will talk to the client, if they do.
        solution: a plan that meets all of ``needs``.
    """

    household: Household
    place: Place
    holds: Wishes
    needs: Wishes
    heard: Topic | None
    solution: Plan

    @property
    def moves(self) -> tuple[Topic, ...]:
        """The topics on which the client's mind would change."""
        held, real = msgspec.structs.asdict(self.holds), msgspec.structs.asdict(self.needs)
        return tuple(topic for topic in real if held[topic] != real[topic])  # type: ignore[misc]


def make_instance(seed: int, index: int) -> Instance:
    """The instance with this index in the world of a seed; any index from 0 has one."""
    random = Random(f"{seed}/finance/{index}")
    place = make_place(random.choice(PLACES), seed)
    while True:
        drawn = _household(random, place)
        solved = _solve(random, drawn, place) if drawn is not None else None
        if solved is not None:
            return _second_thoughts(random, place, *solved)


def _household(random: Random, place: Place) -> Household | None:
    """A household without savings yet; None if nothing is left at the end of its months."""
    first = random.randrange(40, 96) * 1000
    second = 0 if random.random() < 0.15 else random.randrange(18, max(19, first // 1000)) * 1000
    owed = round((first + second) * random.uniform(2.4, 3.8) / 5000) * 5000
    household = Household(
        place=place.name,
        age=random.randrange(27, 42),
        salaries=(first, second),
        child=random.choice((0, 0, 1, 1, 2, 3, 4, 5)),
        mortgage=owed,
        mortgage_rate=random.randrange(28, 48) / 1000,
        mortgage_years=random.choice((25, 28, 30)),
        prepayment_share=random.choice((0.02, 0.03, 0.05)),
        cover_asked=round(owed * random.choice((0, 0, 0.5, 1)) / 5000) * 5000,
        card=random.choice((0, 0, 1)) * random.randrange(20, 90) * 100,
        card_rate=random.randrange(14, 23) / 100,
        savings=0,
        boldness=5,
    )
    return household if 900 <= Budget(household, place).surplus <= 4500 else None


def _solve(
    random: Random, household: Household, place: Place
) -> tuple[Household, Wishes, Plan] | None:
    """A plan, the wishes that it meets, and the savings that it takes; None if the sums do not work out."""
    budget = Budget(household, place)
    stocks = random.randrange(20, 80, market.STEP)
    months = random.choice((3, 4, 5, 6, 6, 8, 9))
    extras = set(random.sample(_EXTRAS, random.choice((2, 3, 3, 4))))
    support = _tens(budget.surplus * random.uniform(0.06, 0.14)) if "support" in extras else 0
    years = random.randrange(4, 9) if "cover" in extras else 0
    cover = max(household.cover_asked, years * household.salaries[0])
    limit = min(budget.prepay_limit, int(budget.surplus * random.uniform(0.06, 0.14)))
    prepay = limit // 10 * 10 if "prepay" in extras else 0
    project = random.randrange(4, 19) * 1000 if "project" in extras else 0
    share = random.choice((50, 75, 100)) if "study" in extras else 0
    cost = place.study * share / 100
    studies = market.needed(stocks, STUDY_AGE - household.child, 0, cost, _SURE)
    study = ceil(studies / 10) * 10
    left = budget.surplus - support - prepay - study - budget.premium(cover)
    retirement = min(left, budget.retirement_limit) // 10 * 10
    if retirement < 200 or cover > budget.cover_limit or ("prepay" in extras and prepay < 50):
        return None
    emergency = ceil(months * budget.spending / 100) * 100
    invested = random.randrange(0, 13) * 500
    plan = Plan(
        emergency=emergency,
        cards=household.card,
        project=project,
        invested=invested,
        study=study,
        retirement=retirement,
        prepay=prepay,
        cover=cover,
        stocks=stocks,
    )
    age = random.randrange(61, 68)
    grown = market.outcome(stocks, age - household.age, invested, retirement)
    pot = market.quantile(grown, 1 - _SURE / 100)
    income = monthly_income(place, budget.gross, age, pot) // 50 * 50
    if not 0.35 * budget.net <= income <= 0.9 * budget.net:
        return None
    needs = Wishes(
        loss=ceil(100 * market.bad_year(stocks)),
        cushion=months,
        age=age,
        income=income,
        study=share,
        project=project,
        support=support,
        cover=years,
        prepay=prepay,
    )
    household = msgspec.structs.replace(household, savings=plan.at_once)
    if judge(plan, Budget(household, place), needs, needs).value < 1.0:
        return None  # the rounding of a sum cost a goal
    return household, needs, plan


def _second_thoughts(
    random: Random, place: Place, household: Household, needs: Wishes, solution: Plan
) -> Instance:
    """The instance, with the client's first wishes."""
    bold = random.random() >= _TIMID or solution.stocks < 40
    shift = (
        random.randrange(30, 46, market.STEP) if bold else -random.randrange(25, 41, market.STEP)
    )
    stocks = max(10, min(95, solution.stocks + shift))
    held: dict[str, int] = {"loss": ceil(100 * market.bad_year(stocks))}
    wrong = {topic for topic, often in _MOVABLE.items() if random.random() < often}
    if "age" in wrong:
        held["age"] = needs.age - random.randrange(4, 9)
    if "cushion" in wrong:
        held["cushion"] = max(1, needs.cushion - random.randrange(2, 5))
    for topic in ("study", "cover"):
        if topic in wrong:
            held[topic] = 0
    holds = msgspec.structs.replace(needs, **held)
    boldness = max(1, min(10, round(holds.loss / 2.4)))
    instance = Instance(
        household=msgspec.structs.replace(household, boldness=boldness),
        place=place,
        holds=holds,
        needs=needs,
        heard=None,
        solution=solution,
    )
    heard = random.choice((None, *instance.moves, *instance.moves))
    return msgspec.structs.replace(instance, heard=heard)


def _tens(value: float) -> int:
    return int(value) // 10 * 10
