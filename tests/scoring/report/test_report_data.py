"""A report as JSON, CSV and data frame."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from types import ModuleType
from typing import Any

import msgspec
import pytest
from duolog.engine.errors import InvalidInput, MissingExtra
from duolog.engine.installation import install_command
from duolog.scoring.metrics import aggregate
from duolog.scoring.process import Process
from duolog.scoring.report import (
    Numbers,
    document_csv,
    document_json,
    report_data,
    report_document,
    report_rows,
    to_dataframe,
)
from duolog.scoring.trajectory.files import decode_trajectory
from duolog.scoring.trajectory.points import Point, Trajectory


def report_json(report: Numbers, *, indent: int = 2) -> str:
    return document_json(report_document(report), indent=indent)


def report_csv(report: Numbers) -> str:
    return document_csv(report_document(report))


def made(number: int, agent: str, *utilities: float) -> Trajectory:
    points = tuple(
        Point(
            round=k,
            value=utility,
            utility=utility,
            updated=True,
            rating=2,
            effort={"rounds": float(k)},
        )
        for k, utility in enumerate(utilities, start=1)
    )
    return Trajectory(
        session=f"s{number}",
        group={"agent": agent, "model": "m"},
        points=points,
        agent_tokens=100 * number,
        human_tokens=50,
        baseline=agent == "auto",
    )


SESSIONS = [
    made(1, "one", 0.25, 0.5, 0.75),
    made(2, "one", 0.5),
    made(3, "auto", 0.5),
    made(4, "one", 0.75, 0.25),
]


def test_json_has_the_documented_shape() -> None:
    data: dict[str, Any] = json.loads(report_json(aggregate(SESSIONS, bootstrap=20)))
    assert next(iter(data)) == "convention"
    assert data["convention"] == "formal"
    row, auto = data["groups"]
    shape = ["group", "sessions", "baseline", "utility", "gain", "drop", "curve", "effort"]
    assert list(row)[:8] == shape
    assert row["group"] == {"agent": "one", "model": "m"}
    assert (row["sessions"], row["baseline"]) == (3, False)
    assert row["utility"] == {"first": 0.5, "final": 0.5, "overall": 2 / 3}
    assert row["gain"] == {"abs": pytest.approx(1 / 6), "rel": pytest.approx(1 / 3)}
    assert list(row["drop"]) == ["1", "2", "3"]
    assert row["drop"]["1"] == {"abs": 0.0, "rel": 0.0, "sessions": 3}
    assert row["curve"][0] == {
        "round": 1,
        "mean": 0.5,
        "sem": pytest.approx(0.25 / 3**0.5),
        "sessions": 3,
        "reached": 3,
    }
    assert [point["reached"] for point in row["curve"]] == [3, 2, 1]
    assert row["effort"]["ratio"] == pytest.approx(700 / 150)
    assert row["effort"]["measures"] == {"human_led_rounds": 2.0}
    assert row["intervals"]["utility"]["first"]["sessions"] == 3
    assert row["intervals"]["utility"]["first"]["low"] <= 0.5
    assert row["counts"]["stopped"] == {"1": 3, "2": 2, "3": 1}
    assert auto["baseline"] is True
    assert auto["utility"] == {"first": None, "final": 0.5, "overall": None}
    assert auto["drop"]["1"] == {"abs": None, "rel": None, "sessions": 0}
    assert auto["reasons"]["gain.abs"].startswith("automated runs")
    [buckets] = data["buckets"]
    assert buckets["group"] == {"model": "m"}
    assert buckets["edges"] == [0.0, 2.8, 3.6, 4.8, 6.4, None]
    assert buckets["stats"][0] == {"low": 0.0, "high": 2.8, "mean": 0.75, "count": 1}
    assert buckets["stats"][1] == {"low": 2.8, "high": 3.6, "mean": None, "count": 0}
    assert buckets["stats"][4]["high"] is None


def test_absent_numbers_are_null_with_a_reason() -> None:
    alone = decode_trajectory('{"session": "s", "rounds": [{"utility": 0}]}')
    report = aggregate([alone], convention="paper", bootstrap=20)
    data: dict[str, Any] = report_data(report)
    [group], [buckets] = data["groups"], data["buckets"]
    assert group["utility"] == {"first": None, "final": None, "overall": None}
    assert group["gain"] == {"abs": None, "rel": None}
    assert group["drop"]["2"] == {"abs": None, "rel": None, "sessions": 0}
    assert group["curve"] == []
    tokens = {"agent_tokens": None, "human_tokens": None, "ratio": None}
    assert group["effort"] == {**tokens, "all_rounds": 1.0}
    assert "fewer than two" in group["reasons"]["drop.2.abs"]
    assert buckets["edges"] is None
    assert buckets["stats"] is None
    assert buckets["reason"] == "no session has a token ratio"
    assert "NaN" not in report_json(report)


def test_json_may_be_one_line_and_without_drops() -> None:
    text = report_json(aggregate(SESSIONS, taus=(), bootstrap=0), indent=0)
    assert text.count("\n") == 1
    assert json.loads(text)["groups"][0]["drop"] == {}


def test_faults_of_simulated_users_are_counted_per_group() -> None:
    faulty = [
        msgspec.structs.replace(SESSIONS[0], faults={"leak": 2, "invention": 1}),
        msgspec.structs.replace(SESSIONS[1], faults={"leak": 1}),
        msgspec.structs.replace(made(5, "two", 0.5), faults={"leak": 0}),
        *SESSIONS[2:],
    ]
    report = aggregate(faulty, bootstrap=0)
    data: dict[str, Any] = report_data(report)
    one, two, auto = data["groups"]
    assert one["counts"]["faults"] == {"invention": 1, "leak": 3}
    assert one["counts"]["faulty_sessions"] == 2
    assert two["counts"]["faulty_sessions"] == 0
    assert auto["counts"]["faults"] == {}
    rows = csv.DictReader(io.StringIO(report_csv(report)))
    assert [(row["faults"], row["faulty_sessions"]) for row in rows] == [
        ("4", "2"),
        ("0", "0"),
        ("0", "0"),
    ]


def worked(trajectory: Trajectory, halts: int | None, entropy: float | None) -> Trajectory:
    process = Process(initiatives={}, halts=halts, initiative_entropy=entropy)
    return msgspec.structs.replace(trajectory, process=process)


def test_process_measures_are_means_over_the_sessions_that_have_them() -> None:
    sessions = [
        worked(SESSIONS[0], 3, None),
        worked(SESSIONS[1], 0, 0.5),
        SESSIONS[2],  # an automated run
        SESSIONS[3],  # not measured
    ]
    report = aggregate(sessions, bootstrap=20)
    data: dict[str, Any] = report_data(report)
    row, auto = data["groups"]
    assert (row["process"]["halts"], row["process"]["sessions"]["halts"]) == (1.5, 2)
    assert row["process"]["initiative_entropy"] == 0.5
    assert row["process"]["sessions"]["initiative_entropy"] == 1
    assert row["process"]["approved"] is None
    assert row["reasons"]["process.approved"].startswith("no session has messages")
    assert auto["process"]["halts"] is None
    [flat, baseline] = report_rows(report)
    assert (flat["process_halts"], flat["process_halts_sessions"]) == (1.5, 2)
    assert (flat["process_approved"], flat["process_approved_sessions"]) == (None, 0)
    assert baseline["process_halts"] is None


def test_csv_has_a_row_per_group_and_empty_fields_for_what_is_absent() -> None:
    text = report_csv(aggregate(SESSIONS, bootstrap=20))
    row, auto = csv.DictReader(io.StringIO(text))
    assert (row["agent"], row["model"], row["sessions"]) == ("one", "m", "3")
    assert float(row["utility_first"]) == 0.5
    assert float(row["utility_first_low"]) <= 0.5 <= float(row["utility_first_high"])
    assert float(row["drop_2_abs"]) == pytest.approx(-0.25 / 3)
    assert row["drop_2_stopped"] == "2"
    assert float(row["effort_measures_human_led_rounds"]) == 2.0
    assert auto["baseline"] == "True"
    assert auto["utility_overall"] == ""
    assert report_csv(aggregate([])) == ""


def test_each_quantity_of_effort_has_one_name() -> None:
    effort = {"rounds": 1.0, "acts": 2.0, "agent_tokens": 30.0, "token_ratio": 3.0}
    points = (Point(round=1, value=0.5, utility=0.5), Point(round=2, utility=0.5, effort=effort))
    item = Trajectory(session="s", points=points, agent_tokens=30, human_tokens=10)
    report = aggregate([item], bootstrap=0)
    [row] = report_rows(report)
    assert [name for name in row if "ratio" in name and not name.endswith(("low", "high"))] == [
        "effort_ratio"
    ]
    assert {name: row[name] for name in row if name.endswith("rounds")} == {
        "effort_all_rounds": 2.0,
        "effort_measures_human_led_rounds": 1.0,
        "total_rounds": 2,
        "closing_rounds": 0,
    }
    assert list(report.groups[0].effort.measures) == ["acts", "human_led_rounds"]
    assert report_rows(report, "sessions")[0]["all_rounds"] == 2


def test_tables_have_a_row_per_thing() -> None:
    report = aggregate(SESSIONS, bootstrap=20)
    assert len(report_rows(report)) == 2
    assert [row["round"] for row in report_rows(report, "curves")] == [1, 2, 3]
    assert len(report_rows(report, "buckets")) == 5
    assert [row["session"] for row in report_rows(report, "sessions")] == ["s1", "s2", "s4", "s3"]
    for table in ("groups", "curves", "buckets", "sessions"):
        rows = report_rows(report, table)
        assert len({tuple(row) for row in rows}) == 1
    with pytest.raises(InvalidInput, match="unknown table 'rounds'; choose from groups, curves"):
        report_rows(report, "rounds")  # type: ignore[arg-type]


def test_a_label_called_like_a_number_keeps_apart() -> None:
    odd = Trajectory(session="s", group={"sessions": "many"}, final=0.5)
    [row] = report_rows(aggregate([odd], group_by=["sessions"], bootstrap=0))
    assert row["group_sessions"] == "many"
    assert row["sessions"] == 1


class Frame:
    """Takes the place of a library's data frame."""

    def __init__(self, rows: list[dict[str, object]]) -> None:
        self.rows = rows


def test_data_frames_come_from_the_library_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    polars = ModuleType("polars")
    polars.DataFrame = Frame  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", polars)
    report = aggregate(SESSIONS, bootstrap=0)
    frame = to_dataframe(report, "curves")
    assert isinstance(frame, Frame)
    assert frame.rows == report_rows(report, "curves")
    assert isinstance(to_dataframe(report, library="polars"), Frame)
    with pytest.raises(MissingExtra, match="analytics"):
        to_dataframe(report, library="pandas")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtra, match=re.escape(install_command("analytics"))):
        to_dataframe(report)
    with pytest.raises(InvalidInput, match="unknown library 'arrow'"):
        to_dataframe(report, library="arrow")  # type: ignore[arg-type]


def test_a_real_data_frame_holds_the_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    frame = to_dataframe(aggregate(SESSIONS, bootstrap=0), library="pandas")
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["agent"]) == ["one", "auto"]
    assert frame["utility_first"].isna().tolist() == [False, True]
