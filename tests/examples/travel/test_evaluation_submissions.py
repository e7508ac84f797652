"""Files of plans judged line by line, and the leaderboard's numbers over them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.travel.data.dataset import Dataset, DatasetInstance
from duolog.examples.travel.data.tables import Constraints, Sandbox, Trip
from duolog.examples.travel.evaluation import (
    ConstraintResult,
    Evaluation,
    Scored,
    score_submissions,
    summarize,
)
from duolog.examples.travel.evaluation.results import COMMONSENSE, HARD


def instance(row: int, query: str) -> DatasetInstance:
    trip = Trip(
        origin="A",
        destination="B",
        days=3,
        cities=1,
        dates=("2022-03-01", "2022-03-02", "2022-03-03"),
        people=1,
        budget=500,
        constraints=Constraints(house_rule="pets"),
    )
    return DatasetInstance(
        row=row, trip=trip, request="", query=query, preferences=(), level="easy"
    )


DATASET = Dataset(
    instances=(
        instance(0, "first"),
        instance(1, "second"),
        instance(2, "twice"),
        instance(3, "twice"),
    ),
    sandbox=Sandbox(states={"A": "X", "B": "Y"}),
)


def rows_of(*submissions: object) -> list[int]:
    lines = [json.dumps(submission) for submission in submissions]
    return [scored.row_index for scored in score_submissions(lines, DATASET)]


def test_plans_are_judged_in_the_order_of_the_lines() -> None:
    assert rows_of({"idx": 2, "plan": []}, {"idx": 0, "plan": None}) == [2, 0]


def test_an_instance_is_found_by_row_or_query_or_idx() -> None:
    assert rows_of({"row_index": 1, "idx": 0, "query": "first", "plan": []}) == [1]
    assert rows_of({"idx": 2, "query": "second", "plan": []}) == [1]
    assert rows_of({"query": "first", "plan": []}) == [0]
    assert rows_of({"idx": 3, "query": "twice", "plan": []}) == [3]
    assert rows_of({"idx": 3, "query": "never asked", "plan": []}) == [3]


def test_results_come_one_by_one() -> None:
    def endless() -> Iterator[str]:
        while True:
            yield '{"idx": 1, "plan": []}\n'
            yield "\n"

    results = score_submissions(endless(), DATASET)
    assert [next(results).row_index for _ in range(3)] == [1, 1, 1]


def test_what_python_scripts_write_is_read() -> None:
    line = '{"idx": 0, "plan": [{"lunch": NaN, "days": 123456789012345678901234567890}]}'
    (scored,) = score_submissions([line], DATASET)
    assert scored.delivered
    assert scored.to_json()["row_index"] == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "this is not JSON"),
        ("[" * 100_000, "this is not JSON"),
        ("[]", "expected a JSON object, found a list"),
        ('{"idx": 0}', "'plan' is missing"),
        ('{"plan": []}', "does not say which instance"),
        ('{"idx": 4, "plan": []}', "idx is '4'; the instances are numbered 0 to 3"),
        ('{"idx": -1, "plan": []}', "idx is '-1'"),
        ('{"row_index": true, "plan": []}', "row_index is 'True'"),
        ('{"row_index": "0", "plan": []}', "row_index is '0'"),
        ('{"query": "third", "plan": []}', "no instances have the query 'third'"),
        ('{"query": "twice", "plan": []}', "2 instances have the query 'twice'"),
    ],
)
def test_a_bad_line_is_named(line: str, message: str) -> None:
    lines = ['{"idx": 0, "plan": []}', "", line]
    with pytest.raises(InvalidInput, match=r"my\.jsonl, line 3: ") as caught:
        list(score_submissions(lines, DATASET, source="my.jsonl"))
    assert message in str(caught.value)


def scored(
    failing: str = "", *, delivered: bool = True, missing: str = "", asked: int = 2
) -> Scored:
    """A result in which some constraints fail and a kind may be missing."""

    def verdicts(names: tuple[str, ...]) -> dict[str, ConstraintResult]:
        return {name: ConstraintResult(name not in failing.split(), None) for name in names}

    hard = verdicts(("valid_room_rule", "valid_cost")) | {
        name: ConstraintResult(None)
        for name in HARD
        if name not in ("valid_room_rule", "valid_cost")
    }
    evaluation = Evaluation(
        commonsense=None if "commonsense" in missing else verdicts(COMMONSENSE),
        hard=None if "hard" in missing else hard,
    )
    return Scored(0, delivered, asked, evaluation)


def test_the_leaderboard() -> None:
    summary = summarize(
        [
            scored(),
            scored("is_valid_restaurants"),
            scored("valid_cost"),
            # Hard constraints do not count if the plan is incomplete or not in the sandbox.
            scored("is_not_absent"),
            scored("is_valid_information_in_sandbox valid_room_rule"),
            # Not delivered; and stumbled over.
            scored(delivered=False, missing="commonsense hard"),
            scored(missing="commonsense"),
            scored(missing="hard"),
        ]
    )
    assert summary.plans == 8
    assert summary.delivery_rate == 7 / 8
    assert summary.commonsense_micro == (8 + 7 + 8 + 7 + 7 + 0 + 0 + 8) / 64
    assert summary.commonsense_macro == 3 / 8
    assert summary.hard_micro == (2 + 2 + 1) / 16
    assert summary.hard_macro == 2 / 8
    assert summary.final_pass_rate == 1 / 8
    assert (summary.commonsense_errors, summary.hard_errors) == (2, 2)
    expected = (1 + 15 / 16 + 3 / 4 + 15 / 16 + (7 / 8 + 1 / 2) / 2 + 0 + 1 / 2 + 1 / 2) / 8
    assert summary.performance == pytest.approx(expected)
    assert summary.rows()[0][0] == "Delivery Rate"


def test_no_plans_at_all() -> None:
    summary = summarize([])
    assert summary.plans == 0
    assert all(share == 0 for _, share in summary.rows())
