"""Tidy tables of trajectories: the cells of a row, and the meaning of an empty one."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from duolog.engine.errors import MissingExtra
from duolog.scoring.report import tidy
from duolog.scoring.report.tidy import tidy_rows, write_csv, write_parquet
from duolog.scoring.trajectory.files import decode_trajectory
from duolog.scoring.trajectory.points import Trajectory

EVALUATED = decode_trajectory(
    """{"session": "a", "group": {"agent": "one", "round": "x"}, "instance": "7", "rounds": [
        {"utility": 0.25, "rating": 2, "effort": {"acts": 1, "seconds": null}},
        {"utility": null, "updated": true, "rating": null, "effort": {"acts": 2}},
        {"utility": 0.75, "rating": 5, "effort": {"acts": 4}}]}"""
)
NOT_EVALUATED = decode_trajectory(
    '{"session": "b", "group": {"model": "m"}, "rounds": [{"utility": null}], "evaluated": false,'
    ' "state": "open"}'
)
ERASED = decode_trajectory('{"session": "c", "rounds": [], "state": "forgotten"}')
ALL = [EVALUATED, NOT_EVALUATED, ERASED]


def as_csv(*trajectories: Trajectory, table: tidy.TidyTable) -> list[dict[str, str]]:
    file = io.BytesIO()
    write_csv(tidy_rows(trajectories, table, seeds={"a": 11}), file)
    return list(csv.DictReader(io.StringIO(file.getvalue().decode())))


def test_a_row_per_round() -> None:
    rows = as_csv(*ALL, table="rounds")
    assert [(row["session"], row["round"]) for row in rows] == [
        ("a", "1"),
        ("a", "2"),
        ("a", "3"),
        ("b", "1"),
    ]
    assert [row["utility"] for row in rows] == ["0.25", "0.25", "0.75", ""]
    assert [row["value"] for row in rows] == ["0.25", "", "0.75", ""]
    assert [row["stale"] for row in rows] == ["false", "true", "false", "false"]
    assert [row["rating"] for row in rows] == ["2", "", "5", ""]
    assert [row["effort_acts"] for row in rows] == ["1.0", "2.0", "4.0", ""]
    assert rows[0]["effort_seconds"] == ""
    assert [row["stage"] for row in rows[:3]] == ["initial", "refinement", "refinement"]


def test_a_row_per_session() -> None:
    first, second = as_csv(*ALL, table="sessions")
    numbers = ("rounds", "first", "final", "overall", "gain", "stale_rounds", "mean_rating")
    assert [first[name] for name in numbers] == ["3", "0.25", "0.75", "0.75", "0.5", "1", "3.5"]
    assert (first["ratings"], first["effort_acts"], first["seed"]) == ("2", "4.0", "11")
    assert [second[name] for name in numbers] == ["1", "", "", "", "", "0", ""]
    assert (second["evaluated"], second["state"], second["seed"]) == ("false", "open", "")


def test_labels_are_columns() -> None:
    first, second = as_csv(*ALL, table="sessions")
    assert (first["agent"], first["model"], first["instance"]) == ("one", "", "7")
    assert (second["agent"], second["model"], second["instance"]) == ("", "m", "")
    assert first["group_round"] == "x"  # since another column is called so


def test_parquet_holds_the_same() -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    for table in ("rounds", "sessions"):
        rows = tidy_rows(ALL, table, seeds={"a": 11})
        file = io.BytesIO()
        write_parquet(rows, file)
        file.seek(0)
        frame = pandas.read_parquet(file).astype(object)
        held: list[dict[str, Any]] = frame.where(frame.notna(), None).to_dict("records")
        assert held == rows


def test_a_seed_of_more_than_64_bits_is_missing_in_parquet_alone() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    seed = 2**64
    rows = tidy_rows(ALL, "sessions", seeds={"a": seed, "b": -(2**63)})
    file = io.BytesIO()
    write_parquet(rows, file)
    assert parquet.read_table(file)["seed"].to_pylist() == [None, -(2**63)]
    assert rows[0]["seed"] == seed


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(tidy, "import_module", absent)
    with pytest.raises(MissingExtra, match="analytics"):
        write_parquet(tidy_rows(ALL, "rounds"), io.BytesIO())
