"""The report, held to the reference: the same numbers from the same records, by a program that shares no code."""

from __future__ import annotations

import json
import math
import random
import re
import runpy
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from duolog.cli import main
from duolog.engine.log.exchange.jsonl_export import to_jsonl
from duolog.engine.records import Record
from duolog.scoring.metrics import Convention
from duolog.scoring.metrics.forks import without_forks
from duolog.scoring.report import make_report, report_data
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.testing import reference, reference_effort
from duolog.testing.records import RecordWriter
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import made_up

GOLDEN = Path(__file__).parents[1] / "golden"
SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
TASKS = (
    *(pytest.param(task, marks=pytest.mark.slow) for task in ("data", "proof", "tutoring")),
    "finance",
    "travel",
)
TAUS = (1, 2, 3)


def differences(expected: object, found: object, where: str = "") -> Iterator[str]:
    """Where numbers of the reference differ from those of the report, by more than 1e-9."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            one = found.get(key) if isinstance(found, dict) else None
            yield from differences(value, one, f"{where}/{key}")
    elif isinstance(expected, float) and isinstance(found, float):
        if not math.isclose(expected, found, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{where}: {expected!r} and {found!r}"
    elif expected != found:
        yield f"{where}: {expected!r} and {found!r}"


def compared(groups: Sequence[object], rows: Sequence[dict[str, object]]) -> list[str]:
    """The differences between a report's groups and the rows of the reference."""
    known = {json.dumps([g["baseline"], g["group"]], sort_keys=True): g for g in groups}  # type: ignore[index]
    found = []
    for row in rows:
        key = json.dumps([row["baseline"], row["group"]], sort_keys=True)
        group = dict(known.pop(key))  # type: ignore[call-overload]
        group["all_rounds"] = group["effort"]["all_rounds"]
        found += list(differences(row, group, key))
    return found + [f"{key}: not in the reference" for key in known]


def rows_of(
    lines: Iterable[reference.Json], convention: Convention, utility: str | None = None
) -> list[reference.Json]:
    """The rows of both references; by ``formal`` with the effort."""
    lines = list(lines)
    rows = reference.report(lines, convention, TAUS, utility)
    if convention == "formal":
        efforts = reference_effort.report_effort(lines)
        assert [row["group"] for row in efforts] == [row["group"] for row in rows]
        for row, effort in zip(rows, efforts, strict=True):
            row["effort"] = effort["effort"]
    return rows


def held(records: Iterable[Record], convention: Convention, utility: str | None) -> list[str]:
    """The differences for some records, read by the fold and by the reference."""
    records = list(records)
    rows = rows_of((json.loads(to_jsonl(record)) for record in records), convention, utility)
    options = Options(rounds="handoff" if convention == "formal" else "human-turn", utility=utility)
    folds: dict[str, TrajectoryFold] = {}
    for record in records:
        fold = folds.setdefault(record.session, TrajectoryFold(record.session, options, emit=False))
        fold.feed(record)
    sessions = without_forks([fold.trajectory() for fold in folds.values()])
    report = make_report(sessions, convention=convention, taus=TAUS, bootstrap=0)
    return compared(json.loads(json.dumps(report_data(report)["groups"])), rows)


@given(
    seeds=st.lists(st.integers(0, 1 << 32), min_size=1, max_size=6),
    utility=st.sampled_from([None, "u", "v@1"]),
)
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("convention", ["formal", "paper"])
def test_the_report_of_random_logs_is_that_of_the_reference(
    convention: Convention, seeds: list[int], utility: str | None
) -> None:
    records = [
        record
        for number, seed in enumerate(seeds)
        for record in made_up(
            random.Random(seed),
            f"s{number}",
            named=("", "j") if convention == "formal" else ("", "k"),
            reasons=("ended", "abandoned"),
        )
    ]
    assert held(records, convention, utility) == []


def of_file(
    log: Path, capsys: pytest.CaptureFixture[str], convention: Convention = "formal"
) -> list[str]:
    """The differences for a log between the output of ``duolog report`` and the reference."""
    assert main(["export", str(log), "--output", f"{log}.jsonl", "--force"]) == 0
    capsys.readouterr()
    assert main(["report", str(log), "--json", "--bootstrap", "0", "--convention", convention]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    lines = Path(f"{log}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = rows_of(map(json.loads, lines), convention)
    assert rows
    return compared(groups, rows)


@pytest.mark.parametrize("task", TASKS)
def test_the_report_of_a_task_is_that_of_the_reference(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.db"
    run = ("run", task, "--agents", "auto,one-stage,two-stage", "--users", "lazy")
    assert main([*run, "--sessions", "1", "--seed", "3", "--patience", "2", "--log", str(log)]) == 0
    assert of_file(log, capsys) == []
    assert of_file(log, capsys, "paper") == []


@pytest.mark.parametrize("source", ["logs/tau.json", "logs/chat.json", "logs/codex.jsonl", "cogym"])
def test_the_report_of_an_import_is_that_of_the_reference(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.db"
    assert main(["import", str(SAMPLES / source), "--log", str(log)]) == 0
    assert main(["score", str(log), "--scorers", "resolution"]) in (0, 2)
    assert of_file(log, capsys) == []


@pytest.mark.parametrize("name", sorted(one.stem for one in GOLDEN.glob("*.jsonl")))
def test_golden_logs_have_the_numbers_beside_them(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    lines = (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    assert rows_of(map(json.loads, lines), "formal") == expected
    log = tmp_path / "log.db"
    assert main(["import", str(GOLDEN / f"{name}.jsonl"), "--log", str(log)]) == 0
    assert of_file(log, capsys) == []


@pytest.mark.parametrize("module", [reference, reference_effort])
def test_it_is_a_program_of_the_standard_library_in_400_lines(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path(str(module.__file__))
    text = source.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    modules = re.findall(r"^(?:from|import) (\.*\w*)", text, re.MULTILINE)
    assert {*modules} <= {*sys.stdlib_module_names}
    monkeypatch.setattr("sys.argv", [str(source), str(GOLDEN / "sessions.jsonl")])
    runpy.run_path(str(source), run_name="__main__")
    expected = json.loads((GOLDEN / "sessions.json").read_text(encoding="utf-8"))
    found = json.loads(capsys.readouterr().out)
    assert [
        {name: whole[name] for name in row} for row, whole in zip(found, expected, strict=True)
    ] == found


def test_a_wrong_number_is_found() -> None:
    script = RecordWriter("s")
    script.opened(config={"utility": "u"})
    script.human("go")
    script.scored(0.5, snapshot=script.output("draft"), scorer="u@1")
    script.closed()
    lines = [json.loads(to_jsonl(record)) for record in script.records]
    [row] = reference.report(lines)
    assert row["utility"] == {"first": 0.5, "final": 0.5, "overall": 0.5}
    group = {**row, "effort": {"all_rounds": 1.0}, "utility": {"first": 0.4, "final": 0.5}}
    assert len(compared([group], [row])) == 2
