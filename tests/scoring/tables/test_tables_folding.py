"""Rounds folded on arrays, beside what the definitions say of each session."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.scoring.comparison.sensitivity import ratings_as
from duolog.scoring.metrics.formal import formal_ratings, is_rated
from duolog.scoring.metrics.survival import hazard_by_stall
from duolog.scoring.tables.layout import load_manifest, view_of
from duolog.scoring.tables.query import Tables
from duolog.scoring.tables.report import report_tables
from duolog.scoring.tables.values import Reading
from duolog.scoring.trajectory.effort import MEASURES
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.points import Point, Trajectory, counted
from duolog.scoring.trajectory.tolerance import SATISFACTORY, stop_rounds
from table_oracle import by_fold, by_tables, differences, write_tables

pytest.importorskip("duckdb")
np = pytest.importorskip("numpy")


def rated(name: str, ratings: Sequence[int | str | None], closing: bool) -> Trajectory:
    points = [
        Point(
            round=number,
            utility=number % 10 / 10,
            rating=rating if isinstance(rating, int) else None,
            pending=rating == "pending",
            closing=closing and number == len(ratings),
            effort=dict.fromkeys(MEASURES, float(number)),
        )
        for number, rating in enumerate(ratings, start=1)
    ]
    return Trajectory(session=name, points=tuple(points), final=None if points else 0.5)


def test_tolerances_and_runs_are_those_of_the_definitions(tmp_path: Path) -> None:
    chance = random.Random(5)
    ratings: tuple[int | str | None, ...] = (None, "pending", 1, 1, 2, 2, 3, 5)
    sessions = [
        rated(f"s{at}", chance.choices(ratings, k=chance.randrange(9)), chance.random() < 0.3)
        for at in range(300)
    ]
    write_tables(tmp_path, sessions, Options())
    view = load_manifest(tmp_path).find(view_of(Options()))
    assert view is not None
    tables = Tables(tmp_path, view, (1,), formal=True)
    rounds = tables.rounds
    some = [item for item in sessions if item.points]
    for least in (2, SATISFACTORY, 4):
        for missing in (False, True):
            reading = Reading(least, missing)
            as_read = [
                ratings_as(item, least, "unsatisfactory" if missing else "satisfactory")
                for item in some
            ]
            stops = [stop_rounds(formal_ratings(counted(item)), (1, 2, 3)) for item in as_read]
            for tau, found in rounds.reached(reading, (1, 2, 3)).items():
                assert found.tolist() == [stop[tau] or 0 for stop in stops]
            assert rounds.judged(reading).tolist() == [is_rated(item) for item in as_read]
    runs, _ = rounds.stalls(tables.columns("SELECT place FROM cells WHERE k > 0")["place"])
    tables.close()
    expected = hazard_by_stall(some, least=SATISFACTORY)
    assert [one.rounds for one in expected] == np.bincount(runs).tolist()


@pytest.mark.parametrize("convention", ["formal", "paper"])
def test_agents_of_many_rounds_are_reported_as_the_fold_does(
    tmp_path: Path, convention: str
) -> None:
    chance = random.Random(convention)
    sessions = [
        msgspec.structs.replace(
            rated(
                f"s{at}",
                [
                    chance.choice([None, 1, 1, 2, 3, 4, 5])
                    for _ in range(chance.choice([0, 1, 130]))
                ],
                chance.random() < 0.2,
            ),
            group={"agent": "abc"[at % 3]},
            state=chance.choice(["finished", "abandoned"]),
        )
        for at in range(60)
    ]
    options = Options(taus=(1, 2, 5, 120))
    write_tables(tmp_path, sessions, options)
    mine = by_tables(tmp_path, options, convention, bootstrap=10)  # type: ignore[arg-type]
    expected = by_fold(sessions, options, convention, bootstrap=10)  # type: ignore[arg-type]
    assert differences(expected, mine) == []


def test_rounds_that_do_not_stand_together_are_refused(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_tables(tmp_path, [rated("a", [1, 2], False), rated("b", [1], False)], Options())
    (file,) = tmp_path.glob("rounds/**/*.parquet")
    rows = parquet.ParquetFile(file).read()
    parquet.write_table(rows.take([0, 2, 1]), file)
    with pytest.raises(InvalidInput, match="rounds of a session do not stand together"):
        report_tables(tmp_path, Options())


def test_damaged_rounds_are_refused_by_one_line(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_tables(tmp_path, [rated("a", [1, 2], False)], Options())
    (file,) = tmp_path.glob("rounds/**/*.parquet")
    rows = parquet.ParquetFile(file).read().take(np.repeat([0, 1], 100_000))
    parquet.write_table(rows, file, row_group_size=10_000)
    last = parquet.ParquetFile(file).metadata.row_group(19).column(0)
    data = bytearray(file.read_bytes())
    begin = last.dictionary_page_offset or last.data_page_offset
    data[begin : begin + 20] = bytes(20)
    file.write_bytes(data)
    with pytest.raises(InvalidInput, match=r"^the tables cannot be read: [^\n]+$"):
        report_tables(tmp_path, Options())
