"""The task actions: the client's file, tables of a place, sums, projections, comparison of plans.

Client and adviser have the same ones. None of them knows what the client wants: goals are arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON
from ...engine.text import suggestion
from ...tasks.actions import ActionTable, action
from .judging import chances
from .plan import Plan
from .world import market
from .world.generator import Instance
from .world.household import Budget, Wishes, annuity
from .world.places import PLACES, Place, annual_tax, make_place

__all__ = (
    "ACTIONS",
    "ComparePlans",
    "LookUpCosts",
    "LookUpMarket",
    "LookUpRules",
    "LookUpTaxes",
    "Project",
    "ReadFile",
    "SavingNeeded",
    "World",
    "projection",
)

_MOST_PLANS: Final = 4
_LATER: Final = 10
"""Years after which the loss of a bad year is put in money."""


class World(msgspec.Struct, frozen=True):
    """The data behind an instance's actions and utility.

    Attributes:
        seed: the seed of the tables.
        instance: the household, and what its client wants and will want.
    """

    seed: int
    instance: Instance

    @property
    def budget(self) -> Budget:
        """The sums of the household."""
        return Budget(self.instance.household, self.instance.place)


_PlaceName = Annotated[str, msgspec.Meta(description="Where the household lives.")]
_Salary = Annotated[int, msgspec.Meta(ge=0, le=10_000_000, description="Before tax, a year.")]
_Age = Annotated[int, msgspec.Meta(ge=18, le=100, description="In years.")]
_Retirement = Annotated[int, msgspec.Meta(ge=40, le=80, description="Age at which work ends.")]
_Monthly = Annotated[
    int, msgspec.Meta(ge=0, le=1_000_000, description="Wanted a month from then on.")
]
_Share = Annotated[
    int, msgspec.Meta(ge=0, le=100, description="Per cent of the child's studies to be paid for.")
]
_Stocks = Annotated[int, msgspec.Meta(ge=0, le=100, description="Share of stocks in per cent.")]


class ReadFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read the client's file: ages, salaries, mortgage, cards, savings, and a form on risk."""


class LookUpTaxes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Look up what a place takes of salaries, and what is left of them a month."""

    place: _PlaceName
    salaries: Annotated[
        tuple[_Salary, ...], msgspec.Meta(min_length=1, max_length=4, description="One a person.")
    ]


class LookUpCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Look up living costs in a place, a month, its property tax, and the cost of studies."""

    place: _PlaceName
    adults: Annotated[int, msgspec.Meta(ge=1, le=4)]
    child: Annotated[int, msgspec.Meta(ge=0, le=30, description="Age of the child.")]
    both_work: Annotated[bool, msgspec.Meta(description="Whether a small child needs care.")]
    home: Annotated[int, msgspec.Meta(ge=0, description="Value of the home.")]


class LookUpRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Look up the limits of retirement savings, the state pension and the price of life cover."""

    place: _PlaceName
    age: _Age
    gross: Annotated[int, msgspec.Meta(ge=0, description="Income of the household, a year.")]


class LookUpMarket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Look up what a bad year, one in twenty, takes of investments, by their share of stocks."""


class SavingNeeded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Compute what has to be saved a month to reach a sum in some years, at a confidence in per cent."""

    target: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)]
    years: Annotated[int, msgspec.Meta(ge=1, le=market.HORIZON)]
    stocks: _Stocks
    confidence: Annotated[int, msgspec.Meta(ge=50, le=95)] = 80


class Project(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Project a plan for this client over 200 courses of the market: chances, a bad year, reserves."""

    plan: Plan
    age: _Retirement
    income: _Monthly
    study: _Share = 0


class ComparePlans(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Project two to four plans on the same courses of the market, a row for each, in order."""

    plans: Annotated[tuple[Plan, ...], msgspec.Meta(min_length=2, max_length=_MOST_PLANS)]
    age: _Retirement
    income: _Monthly
    study: _Share = 0


def projection(plan: Plan, budget: Budget, age: int, income: int, study: int) -> Mapping[str, JSON]:
    """The projected outcome of a plan, as `Project` shows it.

    Args:
        plan: any plan, possible or not.
        budget: the sums of the household.
        age: at which work ends.
        income: wanted a month from then on.
        study: per cent of the studies to be paid for.
    """
    household = budget.household
    goals = Wishes(loss=1, cushion=1, age=age, income=income, study=study)
    retired, studied = chances(plan, budget, goals)
    lost = market.bad_year(plan.stocks)
    later = market.outcome(plan.stocks, _LATER, plan.invested, plan.retirement + plan.study)
    return {
        "retirement_chance": round(100 * retired),
        "study_chance": round(100 * studied),
        "bad_year": round(100 * lost),
        "bad_year_in_ten_years": round(lost * market.quantile(later, 0.5) / 100) * 100,
        "months_in_reserve": round(plan.emergency / budget.spending, 1),
        "years_of_salary": round(plan.cover / household.salaries[0], 1),
        "left_of_savings": household.savings - plan.at_once,
        "left_a_month": budget.surplus - plan.monthly - budget.premium(plan.cover),
    }


def _read_file(world: World, _: ReadFile) -> JSON:
    household = world.instance.household
    return {
        "place": household.place,
        "age": household.age,
        "salaries": list(household.salaries),
        "child": household.child,
        "home": round(household.mortgage * 1.25),
        "mortgage": household.mortgage,
        "mortgage_monthly": annuity(
            household.mortgage, household.mortgage_rate, household.mortgage_years
        ),
        "prepayment_limit_monthly": world.budget.prepay_limit,
        "life_cover_asked_by_bank": household.cover_asked,
        "cards": household.card,
        "cards_rate": household.card_rate,
        "cards_monthly_to_clear": world.budget.card_monthly(0),
        "savings": household.savings,
        "risk_form": f"ready for risk: {household.boldness} of 10",
    }


def _taxes(world: World, asked: LookUpTaxes) -> JSON:
    place = _place(world, asked.place)
    taxes = [annual_tax(place, salary) for salary in asked.salaries]
    return {"taxes": taxes, "net_monthly": round((sum(asked.salaries) - sum(taxes)) / 12)}


def _costs(world: World, asked: LookUpCosts) -> JSON:
    place = _place(world, asked.place)
    care = place.childcare if asked.child < 4 and asked.both_work else 0
    return {
        "living": asked.adults * place.adult + place.child + care,
        "property_tax": round(asked.home * place.property_tax / 12),
        "studies": place.study,
    }


def _rules(world: World, asked: LookUpRules) -> JSON:
    place = _place(world, asked.place)
    someone = msgspec.structs.replace(
        world.instance.household, age=asked.age, salaries=(asked.gross, 0)
    )
    budget = Budget(someone, place)
    return {
        "retirement_limit_monthly": budget.retirement_limit,
        "pension_monthly_from_67": round(place.pension * asked.gross / 12),
        "life_cover_per_100000_monthly": round(budget.premium(10_000_000) / 100, 2),
        "life_cover_limit": budget.cover_limit,
    }


def _market(world: World, _: LookUpMarket) -> JSON:
    return {"bad_year": {str(s): round(100 * market.bad_year(s), 1) for s in range(0, 101, 5)}}


def _needed(world: World, asked: SavingNeeded) -> JSON:
    sum_ = market.needed(asked.stocks, asked.years, 0, asked.target, asked.confidence)
    return {"monthly": round(sum_)}


def _project(world: World, asked: Project) -> JSON:
    return dict(projection(asked.plan, world.budget, asked.age, asked.income, asked.study))


def _compare(world: World, asked: ComparePlans) -> JSON:
    rows = [
        projection(plan, world.budget, asked.age, asked.income, asked.study) for plan in asked.plans
    ]
    columns = list(rows[0])
    return {"columns": columns, "rows": [[row[name] for name in columns] for row in rows]}


def _place(world: World, name: str) -> Place:
    if name not in PLACES:
        raise InvalidInput(f"unknown place {name!r}{suggestion(name, PLACES)}")
    return make_place(name, world.seed)


_PROJECTION: Final = 1.5
"""Seconds that the projection of one plan takes."""

ACTIONS: Final[ActionTable[World]] = ActionTable(
    (
        action(ReadFile, _read_file),
        action(LookUpTaxes, _taxes),
        action(LookUpCosts, _costs),
        action(LookUpRules, _rules),
        action(LookUpMarket, _market),
        action(SavingNeeded, _needed),
        action(Project, _project, seconds=_PROJECTION),
        action(ComparePlans, _compare, seconds=lambda asked: _PROJECTION * len(asked.plans)),
    )
)
"""The actions of the task."""
