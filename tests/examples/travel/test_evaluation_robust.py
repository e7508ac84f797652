"""Whatever a plan is, an evaluation comes of it."""

from __future__ import annotations

import json

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.travel.data.tables import (
    Accommodation,
    Attraction,
    Constraints,
    Flight,
    Restaurant,
    Route,
    Sandbox,
    Trip,
)
from duolog.examples.travel.evaluation import COMMONSENSE, HARD, VARIANTS, Variant, evaluate
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

TRIP = Trip(
    origin="A",
    destination="B",
    days=3,
    cities=1,
    dates=("2022-03-01", "2022-03-02", "2022-03-03"),
    people=2,
    budget=100,
    constraints=Constraints(
        house_rule="pets", cuisine=("Thai",), room_type="entire room", transportation="no flight"
    ),
)
SANDBOX = Sandbox(
    flights=[Flight("F1", 5, "08:00", "09:00", "1 hour", "2022-03-01", "A", "B", 10)],
    restaurants=[Restaurant("r", 3, "Thai", 4, "B")],
    accommodations=[Accommodation("h", 7, "Entire home/apt", "No pets", 2, 1, None, "B")],
    attractions=[Attraction("s", 0, 0, "", "", "", "B")],
    routes=[
        Route("A", "B", "taxi", "1 hour", "9 km", 9),
        Route("B", "A", "taxi", None, None, None),
    ],
    states={"A": "X", "B": "Y"},
)

SCRAPS = st.sampled_from(
    ["", "-", "from A to B", "from B to A", "from", "B", "r, B", "s, B;", "s, B;s, B;", "h, B", ";"]
    + [
        "Taxi, from A to B",
        "taxi",
        "Flight Number: F1, from A to B",
        "flight number",
        "self-driving",
    ]
    + ["Flight Number: ", ",", ", B", "(", "a\n,", "from (x) to (y)", "Self-driving from B to A"]
)
KEYS = st.sampled_from(
    ["days", "day", "current_city", "transportation", "breakfast", "lunch", "dinner"]
    + ["attraction", "accommodation", "other"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | SCRAPS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | KEYS, inner),
    max_leaves=12,
)
DAYS = st.dictionaries(KEYS, SCRAPS | JSON, max_size=9)
PLANS = JSON | st.lists(DAYS, max_size=5) | st.lists(DAYS | JSON, max_size=4)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=examples(300))
@given(plan=PLANS)
def test_no_json_value_crashes_the_evaluation(variant: Variant, plan: object) -> None:
    found = evaluate(plan, TRIP, SANDBOX, variant)
    for verdicts, error, names in (
        (found.commonsense, found.commonsense_error, COMMONSENSE),
        (found.hard, found.hard_error, HARD),
    ):
        assert (verdicts is None) == (error is not None)
        if verdicts is not None:
            assert tuple(verdicts) == names
            assert all((v.reason is not None) == (v.passed is False) for v in verdicts.values())
    assert 0 <= found.performance <= 1
    assert json.loads(json.dumps(found.to_json(4)))["row_index"] == 4


@pytest.mark.slow
@given(plan=PLANS)
@settings(max_examples=examples(200))
def test_the_strict_variant_has_no_errors(plan: object) -> None:
    found = evaluate(plan, TRIP, SANDBOX, "strict")
    assert found.commonsense_error is None
    assert found.hard_error is None


def test_values_that_python_itself_refuses_to_convert() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, "9" * 5000, 10**5000):
        plan = [{"days": value, "current_city": "B", "lunch": value, "dinner": value}]
        for variant in VARIANTS:
            found = evaluate(plan, TRIP, SANDBOX, variant)
            assert found.performance < 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_results_can_be_written_down_whatever_they_quote(variant: Variant) -> None:
    odd = "\ud800, \udfff" + "x" * 10_000
    for field in ("current_city", "transportation", "lunch", "accommodation"):
        day: dict[str, object] = {"current_city": "B", "transportation": "Taxi"}
        for value in (odd, f"from {odd} to {odd}", f"Flight Number: {odd}"):
            found = evaluate([day | {field: value}] * 3, TRIP, SANDBOX, variant).to_json(0)
            assert len(msgspec.json.encode(found)) < 10_000


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(InvalidInput, match="unknown variant 'lenient'; choose from published"):
        evaluate([], TRIP, SANDBOX, "lenient")  # type: ignore[arg-type]
