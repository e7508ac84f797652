"""Reports on tables: every number is that of the Python fold on the same sessions."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import Origin
from duolog.scoring.metrics import Convention
from duolog.scoring.process import Process
from duolog.scoring.tables.layout import is_tables
from duolog.scoring.tables.report import report_tables
from duolog.scoring.trajectory.effort import MEASURES
from duolog.scoring.trajectory.files import decode_trajectory
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.points import Trajectory
from hypothesis import HealthCheck, given, settings
from table_oracle import by_fold, by_tables, differences, write_tables

pytest.importorskip("duckdb")

CONVENTIONS: st.SearchStrategy[Convention] = st.sampled_from(["formal", "paper"])
STATES = ("finished", "abandoned", "tolerance", "failed", "limit", "forgotten")


def made_up(chance: random.Random, session: str) -> Trajectory:
    """Any session that a file of trajectories can hold."""

    def now_and_then(one_in: int) -> bool:
        return chance.randrange(one_in) == 0

    def utility() -> float | None:
        return chance.choice([None, None, 0.0, 0.5, 1.0, chance.random()])

    count = chance.randrange(8)
    rounds = []
    spent = chance.choice([0.5, 1.0, None])
    for number in range(1, count + 1):
        rating = chance.choice([None, 1, 1, 2, 2, 3, 4, 5])
        closing = number == count and now_and_then(4)
        rounds.append(
            {
                "utility": None if closing else utility(),
                "updated": not closing and now_and_then(2),
                "rating": rating,
                "pending": rating is None and now_and_then(4),
                "closing": closing,
                "effort": dict.fromkeys(MEASURES, spent and spent * number),
            }
        )
    labels = {"agent": chance.choice(["one", 'it\'s "two"'])}
    if now_and_then(2):
        labels["model"] = chance.choice(["m", "n"])
    line: dict[str, object] = {
        "session": session,
        "group": labels,
        "rounds": rounds,
        "tokens": {
            "agent": chance.choice([None, 0, 3, 700]),
            "human": chance.choice([None, 0, 2, 50]),
        },
        "silent": now_and_then(5),
        "evaluated": not now_and_then(5),
        "baseline": now_and_then(5),
        "state": chance.choice(STATES),
        "judges": chance.choice([[], ["human"], ["rule-judge@1", "human"]]),
        "faults": chance.choice([{}, {"echo": 2}, {"echo": 0, "leak": 1}]),
    }
    if now_and_then(3):
        line["final"] = utility()
    item = decode_trajectory(msgspec.json.encode(line))
    if now_and_then(2):
        process = Process(initiatives={}, halts=chance.randrange(4), initiative_entropy=0.5)
        item = msgspec.structs.replace(item, process=process)
    if now_and_then(5):
        origin = Origin(session=chance.choice(["s0", "elsewhere"]), version=3)
        item = msgspec.structs.replace(item, forked_from=origin)
    return item


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 1 << 32), st.integers(1, 60), CONVENTIONS, st.sampled_from([(1, 2), (3,)]))
def test_every_number_is_that_of_the_fold(
    seed: int, count: int, convention: Convention, taus: tuple[int, ...]
) -> None:
    chance = random.Random(seed)
    sessions = [made_up(chance, f"s{number}") for number in range(count)]
    options = Options(taus=taus)
    with TemporaryDirectory() as directory:
        write_tables(Path(directory), sessions, options)
        mine = by_tables(Path(directory), options, convention, bootstrap=20, seed=3)
    expected = by_fold(sessions, options, convention, bootstrap=20, seed=3)
    assert differences(expected, mine) == []


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    write_tables(tmp_path, [Trajectory(session="s")], Options())
    assert is_tables(tmp_path)
    with pytest.raises(InvalidInput, match="no closed session with rounds by human-turn"):
        report_tables(tmp_path, Options(rounds="human-turn"))
    with pytest.raises(InvalidInput, match="no session has a label 'room' to group by"):
        report_tables(tmp_path, Options(), group_by=["room"])
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(InvalidInput, match="is no manifest of tables"):
        report_tables(tmp_path, Options())
