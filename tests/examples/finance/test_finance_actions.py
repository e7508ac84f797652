"""The actions of the finance task: their results, and their refusals."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.finance.actions import ACTIONS, World
from duolog.examples.finance.world.generator import make_instance

WORLD = World(1, make_instance(1, 0))
HOUSE = WORLD.instance.household
GOALS: dict[str, Any] = {"age": WORLD.instance.needs.age, "income": WORLD.instance.needs.income}


def do(name: str, **arguments: Any) -> Any:  # noqa: ANN401 - JSON as it is found
    return ACTIONS.perform(WORLD, name, arguments)


def test_the_file_says_what_is_on_record_and_nothing_of_what_is_wanted() -> None:
    file = do("ReadFile")
    assert file["salaries"] == list(HOUSE.salaries)
    assert file["savings"] == HOUSE.savings
    known = msgspec.json.encode(file).decode()
    assert str(WORLD.instance.needs.income) not in known
    assert not {"cushion", "study", "support", "cover", "loss"} & set(file)


def test_tables_add_up_to_the_budget_of_the_household() -> None:
    file, budget = do("ReadFile"), WORLD.budget
    taxes = do("LookUpTaxes", place=HOUSE.place, salaries=file["salaries"])
    costs = do(
        "LookUpCosts",
        place=HOUSE.place,
        adults=2,
        child=HOUSE.child,
        both_work=HOUSE.salaries[1] > 0,
        home=file["home"],
    )
    assert taxes["net_monthly"] == pytest.approx(budget.net, abs=1)
    spent = costs["living"] + costs["property_tax"] + file["mortgage_monthly"]
    assert spent == pytest.approx(budget.spending, abs=2)
    rules = do("LookUpRules", place=HOUSE.place, age=HOUSE.age, gross=sum(HOUSE.salaries))
    assert rules["retirement_limit_monthly"] == budget.retirement_limit
    assert rules["life_cover_limit"] == budget.cover_limit
    per = rules["life_cover_per_100000_monthly"]
    assert 5 * per == pytest.approx(budget.premium(500_000), abs=1)


def test_a_projection_of_the_witness_reaches_its_goals() -> None:
    plan = msgspec.to_builtins(WORLD.instance.solution)
    shown = do("Project", plan=plan, **GOALS)
    assert shown["retirement_chance"] >= 75
    assert shown["bad_year"] <= WORLD.instance.needs.loss
    assert shown["left_of_savings"] == 0
    assert shown["left_a_month"] >= 0


def test_plans_are_compared_on_the_same_courses_of_the_market() -> None:
    plan = msgspec.to_builtins(WORLD.instance.solution)
    table = do("ComparePlans", plans=[plan, {**plan, "stocks": 0}], **GOALS)
    one, other = (dict(zip(table["columns"], row, strict=True)) for row in table["rows"])
    assert one == do("Project", plan=plan, **GOALS)
    assert other["bad_year"] < one["bad_year"]


def test_what_has_to_be_saved_falls_with_the_years() -> None:
    def needed(years: int) -> int:
        found = do("SavingNeeded", target=50_000, years=years, stocks=50)
        return int(found["monthly"])

    assert needed(5) > needed(10) > needed(18)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("LookUpTaxes", {"place": "Larkspurr", "salaries": [1]}, "Larkspur"),
        ("LookUpTaxes", {"place": "Larkspur", "salaries": []}, "salaries"),
        ("SavingNeeded", {"target": 1, "years": 99, "stocks": 10}, "years"),
        ("Project", {"plan": {"shares": 3}, "age": 60, "income": 1}, "shares"),
        ("ComparePlans", {"plans": [{}], "age": 60, "income": 1}, "plans"),
        ("BuyStocks", {}, "unknown action 'BuyStocks'"),
    ],
)
def test_wrong_input_is_refused_with_what_is_wrong(
    name: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        do(name, **arguments)
