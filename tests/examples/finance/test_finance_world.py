"""The world of the finance task: instances that a plan can meet in full, and a plan's utility."""

from __future__ import annotations

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.finance.judging import constraints, judge, suits
from duolog.examples.finance.plan import Plan, parse_plan, render_plan
from duolog.examples.finance.world import market
from duolog.examples.finance.world.generator import Instance, make_instance
from duolog.examples.finance.world.household import Budget
from duolog.examples.finance.world.places import make_place, monthly_income, retirement_pot


@pytest.fixture(scope="module")
def instances() -> list[Instance]:
    return [make_instance(seed, index) for seed in (1, 8) for index in range(15)]


def budget_of(instance: Instance) -> Budget:
    return Budget(instance.household, instance.place)


def test_each_instance_has_a_plan_that_meets_all_that_is_needed(instances: list[Instance]) -> None:
    for one in instances:
        assert judge(one.solution, budget_of(one), one.needs, one.needs).value == 1.0


def test_a_seed_and_a_number_make_one_instance_and_others_make_others(
    instances: list[Instance],
) -> None:
    assert make_instance(1, 3) == make_instance(1, 3)
    assert len({repr(one.solution) for one in instances}) == len(instances)
    assert make_place("Larkspur", 1) != make_place("Larkspur", 2)


def test_every_client_is_wrong_about_the_loss_that_they_can_bear(instances: list[Instance]) -> None:
    assert all("loss" in one.moves for one in instances)
    bold = [one.holds.loss > one.needs.loss for one in instances]
    assert True in bold
    assert False in bold


def test_a_plan_for_what_is_first_held_is_worth_less_than_one_for_what_is_needed(
    instances: list[Instance],
) -> None:
    for one in instances:
        budget = budget_of(one)
        judged = judge(one.solution, budget, one.holds, one.needs)
        bold = msgspec.structs.replace(one.solution, stocks=100, emergency=0)
        assert judged.parts["needs"] == 1.0
        assert judge(bold, budget, one.holds, one.needs).value < judged.value


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({"invested": 10_000_000}, "savings"),
        ({"retirement": 90_000}, "monthly"),
        ({"emergency": 0}, "a month at hand"),
        ({"cover": 90_000_000}, "insurer"),
        ({"prepay": 90_000}, "contract"),
    ],
)
def test_what_cannot_be_done_breaks_the_constraint_that_says_so(
    change: dict[str, int], broken: str, instances: list[Instance]
) -> None:
    one = instances[0]
    passed = constraints(msgspec.structs.replace(one.solution, **change), budget_of(one), one.needs)
    assert not passed[broken]
    assert all(constraints(one.solution, budget_of(one), one.needs).values())


def test_cards_that_nobody_pays_break_a_constraint(instances: list[Instance]) -> None:
    one = next(one for one in instances if one.household.card)
    unpaid = msgspec.structs.replace(one.solution, cards=0)
    assert not constraints(unpaid, budget_of(one), one.needs)["cards"]
    owed = budget_of(one).card_monthly(0)
    paid = msgspec.structs.replace(unpaid, cards_monthly=owed)
    assert constraints(paid, budget_of(one), one.needs)["cards"]


def test_a_loss_suits_up_to_what_can_be_borne_and_not_at_all_from_twice_that(
    instances: list[Instance],
) -> None:
    one = instances[0]
    within = msgspec.structs.replace(one.needs, loss=24)
    beyond = msgspec.structs.replace(one.needs, loss=11)
    bold = msgspec.structs.replace(one.solution, stocks=100)
    assert suits(bold, budget_of(one), within)["loss"] == 1.0
    assert suits(bold, budget_of(one), beyond)["loss"] < 0.1


def test_more_text_is_worth_no_more(instances: list[Instance]) -> None:
    plan = instances[0].solution
    told = f"Dear all,\n{render_plan(plan)}\nThis is a very good plan: trust me.\n" + "Well. " * 500
    assert parse_plan(told) == plan


def test_projections_have_fixed_draws_and_grow_with_what_is_saved() -> None:
    assert market.outcome(50, 20, 1000, 300) == market.outcome(50, 20, 1000, 300)
    assert len(market.outcome(50, 20, 1000, 300)) == market.PATHS
    assert market.chance(50, 20, 0, 600, 200_000) > market.chance(50, 20, 0, 300, 200_000)
    assert market.bad_year(100) > market.bad_year(50) > market.bad_year(20) > 0


@pytest.mark.parametrize("stocks", [0, 40, 100])
def test_what_has_to_be_saved_reaches_the_target_as_surely_as_was_asked(stocks: int) -> None:
    monthly = market.needed(stocks, 15, 0, 60_000, 80)
    assert market.chance(stocks, 15, 0, monthly, 60_000) == pytest.approx(0.8, abs=0.01)


def test_a_pot_and_the_income_that_it_lasts_for_are_two_sides_of_one_sum() -> None:
    place = make_place("Dunmoor", 3)
    pot = retirement_pot(place, 90_000, 63, 3500)
    assert monthly_income(place, 90_000, 63, pot) == pytest.approx(3500, abs=1)


def test_a_plan_reads_back_as_it_was_written(instances: list[Instance]) -> None:
    for one in instances:
        assert parse_plan(render_plan(one.solution)) == one.solution
    assert parse_plan("- **Stocks**: 40 %\n* Emergency fund: $1,200.") == Plan(
        stocks=40, emergency=1200
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("buy low, sell high", "contains no plan"),
        ("Stocks: many", "one number"),
        ("Stocks: 140%", "more than"),
        ("Stocks: 40%\nStocks: 50%", "twice"),
    ],
)
def test_what_is_no_plan_is_refused_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse_plan(text)
