"""Curves along other efforts than rounds, and deferrals after unproductive rounds."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest
from duolog.scoring.metrics import aggregate
from duolog.scoring.report import document_csv, document_json, make_report, report_document
from duolog.scoring.trajectory.points import Point, Trajectory


def session(name: str, *rounds: tuple[float, int | None, float]) -> Trajectory:
    """A session of rounds: utility, rating, and deferrals so far; a minute and ten tokens each."""
    points = [
        Point(
            round=k,
            utility=utility,
            value=utility,
            rating=rating,
            updated=True,
            effort={
                "rounds": k,
                "seconds": 60.0 * k,
                "tokens_read": 10 * k,
                "tokens_written": 5 * k,
                "deferrals": deferrals,
            },
        )
        for k, (utility, rating, deferrals) in enumerate(rounds, start=1)
    ]
    return Trajectory(session=name, group={"agent": "a"}, points=tuple(points))


ONE = session("one", (0.2, 2, 1), (0.4, 4, 2), (0.6, None, 3))
TWO = session("two", (0.0, None, 0), (1.0, None, 1))


@pytest.mark.parametrize(
    ("axis", "unit"), [("seconds", 1), ("tokens_read", 10), ("tokens_written", 5)]
)
def test_curves_go_along_the_effort_that_is_asked_for(
    axis: Literal["seconds", "tokens_read", "tokens_written"], unit: int
) -> None:
    [group] = aggregate([ONE, TWO], bootstrap=0, axis=axis).groups

    def standing(effort: float) -> float:
        return [point.mean for point in group.curve if point.x <= effort][-1]

    assert standing(0) == 0
    assert standing(1.5 * unit) == pytest.approx((0.2 + 0.0) / 2)
    assert standing(2.5 * unit) == pytest.approx((0.4 + 1.0) / 2)


def test_a_report_says_which_axis_its_curves_have() -> None:
    report = make_report([ONE, TWO], bootstrap=0, axis="seconds")
    document = report_document(report)
    data = msgspec.json.decode(document_json(document))
    assert data["axis"] == "seconds"
    assert data["groups"][0]["curve"][1]["minutes"] == 1
    assert next(figure for figure in document.figures).name == "curve-seconds"
    assert "round" not in data["groups"][0]["curve"][1]
    assert document_csv(document)


def test_the_table_has_what_sessions_cost_the_human_in_their_own_units() -> None:
    document = report_document(make_report([ONE, TWO], bootstrap=0), whole=False)
    [table] = [one for one in document.sections[0].tables if "Effort" in one.headings[0].title]
    cells = {column.title: column.cells[0].value for column in table.headings[0].columns}
    assert (cells["Minutes"], cells["Tokens read"], cells["Tokens written"]) == (2.5, 25, 12.5)


def test_deferrals_after_an_unproductive_round_are_given_apart() -> None:
    [group] = aggregate([ONE, TWO], bootstrap=0).groups
    measures = group.effort.measures
    assert measures["deferrals"].value == 2.0
    assert (
        measures["deferrals_after_unproductive"].value == 1.0
    )  # of one, in round 2; two is unrated
    [unrated] = aggregate([TWO], bootstrap=0).groups
    missing = unrated.effort.measures["deferrals_after_unproductive"]
    assert (missing.value, missing.reason) == (None, "no round of these sessions was rated")
