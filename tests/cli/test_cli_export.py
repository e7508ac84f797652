"""``duolog export`` and ``duolog import``: a round trip that loses nothing, and broken files."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from duolog.cli import main
from duolog.engine.log.open import open_log
from duolog.engine.records import Record

pytestmark = pytest.mark.usefixtures("plain")

DINNER = "menu-1-two-stage-ab12"


def records(path: Path) -> list[Record]:
    async def read() -> list[Record]:
        async with open_log(str(path), create=False) as log:
            return [record async for record in log.read_all()]

    return anyio.run(read)


@pytest.fixture
def exported(dinner: Path, tmp_path: Path) -> Path:
    path = tmp_path / "dinner.jsonl"
    assert main(["export", str(dinner), "--format", "jsonl", "--output", str(path)]) == 0
    return path


def test_the_round_trip_is_exact(
    dinner: Path, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.db"
    assert main(["import", str(exported), "--log", str(copy)]) == 0
    assert capsys.readouterr() == ("", "imported 39 records\n")
    assert records(copy) == records(dinner)
    assert main(["export", str(copy)]) == 0
    assert capsys.readouterr().out == exported.read_text(encoding="utf-8")


def test_an_import_again_takes_nothing_twice(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = str(tmp_path / "copy.db")
    assert main(["import", str(exported), "--log", copy]) == 0
    capsys.readouterr()
    assert main(["import", str(exported), "--log", copy, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["records"], found["known"], found["problems"]) == (0, 39, [])


def test_chosen_sessions(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(dinner), "--session", "chat,menu-2"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["session"] for line in lines] == ["chat-7"] * 4 + ["menu-2-two-stage-ef56"] * 3


@pytest.mark.parametrize(("form", "key"), [("chat", "messages"), ("responses", "input")])
def test_conversations_come_back_through_the_chat_importer(
    form: str, key: str, dinner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, again = tmp_path / "first.jsonl", tmp_path / "again.jsonl"
    arguments = ["export", str(dinner), "--format", form]
    assert main([*arguments, "--output", str(first)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "1 session without messages left out: menu-2-two-stage-ef56\n" in err
    assert f"--format {form} cannot express, and leaves out: " in err
    assert err.endswith(f"wrote 3 conversations to {first}\n")
    held = [json.loads(line) for line in first.read_text(encoding="utf-8").splitlines()]
    assert [one["id"] for one in held] == [DINNER, "menu-1-auto-cd34", "chat-7"]
    assert all([*one][-1] == key for one in held)
    assert {name for one in held for name in one} == {"id", "model", "usage", key}
    copy = tmp_path / "copy.db"
    assert main(["import", str(first), "--log", str(copy)]) == 0
    assert main(["export", str(copy), "--format", form, "--output", str(again)]) == 0
    assert again.read_bytes() == first.read_bytes()


def test_spans_come_back_as_sessions(
    dinner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans, copy = tmp_path / "spans.jsonl", tmp_path / "copy.db"
    assert main(["export", str(dinner), "--format", "otlp", "--output", str(spans)]) == 0
    assert "--format otlp cannot express, and leaves out: " in capsys.readouterr().err
    assert main(["import", str(spans), "--log", str(copy)]) == 0
    assert capsys.readouterr().err.endswith("3 sessions read as otlp\n")


def test_conversations_of_chosen_sessions(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(dinner), "--format", "chat", "--session", "chat,chat-7"]) == 0
    out, err = capsys.readouterr()
    [line] = out.splitlines()
    assert json.loads(line)["messages"] == [
        {"role": "user", "content": "Hello \x1b[31m\u202eevil", "name": "ann"},
        {"role": "assistant", "content": "Good day.", "name": "bot"},
        {"role": "user", "content": "Still there?", "name": "ann"},
    ]
    assert err == ""


def test_a_session_without_messages_is_refused_by_name(
    dinner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text("old", encoding="utf-8")
    arguments = ["export", str(dinner), "--format", "chat", "--session", "chat-7,menu-2"]
    assert main([*arguments, "--output", str(path), "--force"]) == 2
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    line = "session menu-2-two-stage-ef56 (failed) has nothing that --format chat can express"
    assert set(err.splitlines()) == {f"duolog: {line}"}
    assert path.read_text(encoding="utf-8") == "old"


def test_a_record_is_the_same_json_everywhere(
    dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(dinner), "--session", "menu-1-two"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["replay", str(dinner), "--session", "menu-1-two", "--json"]) == 0
    steps = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [step["record"] for step in steps] == lines
    assert main(["show", str(dinner), "menu-1-two", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [record for part in shown["rounds"] for record in part["records"]] == lines


@pytest.mark.slow
def test_through_a_pipe(dinner: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    run = [sys.executable, "-P", "-m", "duolog"]
    lines = subprocess.run([*run, "export", str(dinner)], check=True, capture_output=True).stdout
    subprocess.run(
        [*run, "import", "-", "--log", str(copy)], input=lines, check=True, capture_output=True
    )
    assert records(copy) == records(dinner)


@pytest.fixture
def broken(exported: Path) -> Path:
    lines = exported.read_bytes().splitlines(keepends=True)
    lines[4] = b'{"session": "menu-1-two\n'
    exported.write_bytes(b"".join(lines))
    return exported


@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
def test_a_broken_line_is_refused_before_there_is_a_log(
    piped: bool,
    broken: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(broken.read_bytes()), "utf-8"))
    source = "-" if piped else str(broken)
    assert main(["import", source, "--log", str(tmp_path / "copy.db")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    said = "standard input" if piped else broken
    assert err.startswith(f"duolog: {said}, line 5: invalid record: ")
    assert err.endswith("; nothing was imported\n")
    assert {path.name for path in tmp_path.iterdir()} == {broken.name}


def test_the_rest_is_kept_on_request(
    broken: Path, dinner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    copy = tmp_path / "copy.db"
    assert main(["import", str(broken), "--log", str(copy), "--keep-going"]) == 0
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("line 5: invalid record: ")
    assert second == ("imported 38 records, 1 placeholder for what is missing, 1 line not taken")
    kept = {(r.session, r.stream, r.version): r.body for r in records(copy) if r.kind != "Lost"}
    whole = {(r.session, r.stream, r.version): r.body for r in records(dinner)}
    assert len(kept) == len(whole) - 1
    assert kept.items() <= whole.items()


def test_an_export_that_fails_leaves_the_old_file(
    dinner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text("old", encoding="utf-8")
    arguments = ["export", str(dinner), "--session", "nobody", "--output", str(path), "--force"]
    assert main(arguments) == 2
    assert "no session 'nobody'" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["old.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "{tmp}/none.db"], "no log at {tmp}/none.db"),
        (["export", "{log}", "--format", "xml"], "--format expects"),
        (["export", "{log}", "--output", "{tmp}"], "cannot write {tmp}: "),
        (["export", "{log}", "--output", "{tmp}/no/file"], "cannot write {tmp}/no/file: No such"),
        (["import", "{tmp}/none", "--log", "{tmp}/new.db"], "cannot read {tmp}/none: No such file"),
        (["import", "{log}", "--log", "{tmp}/new.db"], "{log} seems to be a log; "),
        (
            ["import", "{log}", "--format", "jsonl", "--log", "{tmp}/new.db"],
            "{log}, line 1: invalid record: ",
        ),
        (["import", "{log}", "--log", "memory://"], "memory:// would be gone as soon"),
        (["import", "{log}"], "missing option --log; say where"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str],
    message: str,
    dinner: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = {"tmp": tmp_path, "log": dinner}
    assert main([argument.format(**names) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"duolog: {message.format(**names)}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_bytes_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bytes.jsonl"
    path.write_bytes(b'{"session":"\xff\xfe"}\n')
    assert main(["import", str(path), "--log", str(tmp_path / "new.db")]) == 2
    assert capsys.readouterr().err.startswith(f"duolog: {path}, line 1: invalid record: ")


def test_an_empty_file_is_an_empty_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n\n"), encoding="utf-8"))
    assert main(["import", "-", "--log", str(tmp_path / "new.db")]) == 0
    assert capsys.readouterr().err == "imported 0 records\n"
    assert records(tmp_path / "new.db") == []


# --- what scoring makes of a log -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rounds", "convention"),
    [("handoff", "formal"), ("human-turn", "formal"), ("human-turn", "paper")],
)
def test_trajectories_give_the_report_of_their_log(
    rounds: str,
    convention: str,
    dinner: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "trajectories.jsonl"
    arguments = ["export", str(dinner), "--format", "trajectories", "--rounds", rounds]
    assert main([*arguments, "--output", str(path)]) == 0
    assert capsys.readouterr() == ("", f"wrote 4 trajectories to {path}\n")
    reports = []
    for source in (dinner, path):
        more = ["--rounds", rounds] if source == dinner else []
        assert main(["report", str(source), "--convention", convention, "--json", *more]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0] == reports[1]


def test_tables_of_rounds_and_sessions(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(dinner), "--format", "sessions"]) == 0
    sessions = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["session"] for row in sessions][:1] == [DINNER]
    assert main(["export", str(dinner), "--format", "rounds", "--session", "menu-1-two"]) == 0
    rounds = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["session"] for row in rounds} == {DINNER}
    assert main(["show", str(dinner), DINNER, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["rounds"]
    assert [float(row["utility"]) for row in rounds] == [one["utility"] for one in shown]
    assert [row["agent"] for row in rounds] == [sessions[0]["agent"]] * len(rounds)


def test_a_table_as_parquet(
    dinner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "rounds.parquet"
    arguments = ["export", str(dinner), "--format", "rounds", "--to", "parquet"]
    assert main([*arguments, "--output", str(path)]) == 0
    assert DINNER in set(pandas.read_parquet(path)["session"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "csv"], "--to is for tables: --format rounds or sessions"),
        (["--rounds", "handoff"], "--rounds, --utility and --judge say how to score"),
        (["--format", "rounds", "--utility", "nobody"], "has no utility by 'nobody'"),
        (["--format", "rounds", "--session", "nobody"], "no session 'nobody'"),
    ],
)
def test_options_of_an_export_that_do_not_fit(
    options: list[str], message: str, dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(dinner), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
def test_a_refused_import_leaves_no_log(
    piped: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = (
        b'{"session":"a","stream":"trace","version":1,"kind":"MessageSent","schema":1,"time":0,'
        b'"actor":"a","role":"human","body":{"kind":"MessageSent"}}\n'
    )
    source = tmp_path / "bad.jsonl"
    source.write_bytes(bad)
    with source.open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file, encoding="utf-8"))
        arguments = ["import", "-" if piped else str(source), "--log", str(tmp_path / "new.db")]
        assert main(arguments) == 2
        assert "line 1: a body of MessageSent (schema 1) does not decode" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]
