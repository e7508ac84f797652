"""Agreement with the published evaluator on real and edited plans, where its results are at hand."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from duolog.examples.travel.data.dataset import Dataset, load_dataset
from duolog.examples.travel.evaluation import Variant, evaluate
from duolog.examples.travel.plan.plan import plan_from_json
from duolog.examples.travel.plan.text import parse_plan, render_plan

DATA = Path(os.environ.get("DUOLOG_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data")
REFERENCE = DATA / "travelplanner" / "expected.jsonl"

pytestmark = pytest.mark.skipif(
    not REFERENCE.is_file(), reason=f"no reference results at {REFERENCE}; set DUOLOG_TEST_DATA"
)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load_dataset(REFERENCE.parent)


@pytest.fixture(scope="module")
def reference() -> list[dict[str, object]]:
    return [json.loads(line) for line in REFERENCE.read_text(encoding="utf-8").splitlines()]


def outcome(result: Mapping[str, object]) -> dict[str, object]:
    """The part that has to agree: everything but the words."""
    kept: dict[str, object] = {}
    for kind in ("commonsense", "hard"):
        verdicts, error = result[kind], result[f"{kind}_error"]
        assert isinstance(verdicts, dict | None)
        assert isinstance(error, str | None)
        kept[kind] = verdicts and [(name, passed) for name, (passed, _) in verdicts.items()]
        kept[f"{kind}_error"] = error and error.partition(":")[0]
    for rate in ("commonsense_pass_rate", "preference_pass_rate", "performance"):
        kept[rate] = result[rate]
    return kept


@pytest.mark.parametrize("variant", ["published", "cogym"])
def test_every_plan_agrees(
    variant: Variant, dataset: Dataset, reference: list[dict[str, object]]
) -> None:
    assert len(reference) > 800
    for case in reference:
        expected, row = case[variant], case["row_index"]
        assert isinstance(expected, dict)
        assert isinstance(row, int)
        trip = dataset.instances[row].trip
        found = evaluate(case["plan"], trip, dataset.sandbox, variant).to_json(row)
        assert outcome(found) == outcome(expected), f"plan {case['id']}, {case['kind']}"
        if "total_cost" in expected:
            assert found["total_cost"] == expected["total_cost"], f"plan {case['id']}"


def test_plans_built_to_satisfy_everything_satisfy_the_strict_variant_too(
    dataset: Dataset, reference: list[dict[str, object]]
) -> None:
    for case in reference:
        published, row = case["published"], case["row_index"]
        assert isinstance(published, dict)
        assert isinstance(row, int)
        if case["kind"] == "built_cheap" and published["performance"] == 1:
            trip = dataset.instances[row].trip
            strict = evaluate(case["plan"], trip, dataset.sandbox, "strict")
            failures = {
                name: verdict.reason
                for verdicts in (strict.commonsense, strict.hard)
                for name, verdict in (verdicts or {}).items()
                if verdict.passed is False
            }
            assert not failures, f"plan {case['id']}: {failures}"
            assert strict.total_cost == published["total_cost"]


def test_the_text_of_a_plan_that_passes_keeps_its_evaluation(
    dataset: Dataset, reference: list[dict[str, object]]
) -> None:
    seen = 0
    for case in reference:
        row = case["row_index"]
        assert isinstance(row, int)
        if case["kind"] not in ("built_cheap", "built_default"):
            continue
        trip, plan = dataset.instances[row].trip, plan_from_json(case["plan"])
        read = parse_plan(render_plan(plan))
        assert read == plan
        before = evaluate(case["plan"], trip, dataset.sandbox).to_json()
        assert evaluate(read, trip, dataset.sandbox).to_json() == before
        seen += 1
    assert seen > 50


def test_no_name_of_a_place_is_damaged_by_the_parser(dataset: Dataset) -> None:
    tables = dataset.sandbox
    for field, rows in (
        ("Lunch", tables.restaurants),
        ("Accommodation", tables.accommodations),
        ("Attraction", tables.attractions),
    ):
        for row in rows:
            written = f"{row.name}, {row.city}".replace("\n", "\\n")
            day = parse_plan(f"Day 1:\n{field}: {written}\n")[0]
            assert getattr(day, field.lower()).removesuffix(";") == f"{row.name}, {row.city}"
