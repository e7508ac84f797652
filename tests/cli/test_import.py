"""``duolog import`` of other programs' logs, and the other commands on the result."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from duolog.cli import main
from duolog.engine.events import MessageSent, SessionOpened
from duolog.engine.log.open import open_log
from foreign_logs import collaboration, log_line, write_lines, write_run

pytestmark = pytest.mark.usefixtures("plain")

Json = dict[str, Any]
Capture = pytest.CaptureFixture[str]

CHAT = [
    {"role": "user", "content": "Where is it?"},
    {"role": "assistant", "content": "There."},
]
TAU = {"task_id": 1, "trial": 0, "reward": 1.0, "info": {"reward_info": {}}, "traj": CHAT}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Three results of Collaborative Gym in two experiments."""
    directory = tmp_path / "results"
    for arm, name in (("one", "env_trip_1"), ("one", "env_trip_2"), ("two", "env_trip_1")):
        write_run(directory / arm / name, collaboration(), {"performance_rating": 0.5})
    return directory


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def run(capsys: Capture, *arguments: str | Path) -> tuple[str, str]:
    """Runs a command that succeeds; gives what it printed."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 0
    out, err = capsys.readouterr()
    return out, err


def refused(capsys: Capture, *arguments: str | Path) -> str:
    """Runs a command that is refused; returns the last line of its messages."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()[-1]


def test_a_note_names_the_file_of_several_places_once(tmp_path: Path, capsys: Capture) -> None:
    image = {"role": "user", "content": [{"type": "image_url"}]}
    source = write_lines(tmp_path / "chat.jsonl", [image] * 5)
    _, err = run(capsys, "import", source, "--log", tmp_path / "log.db")
    assert err.splitlines()[0] == (
        "note: left out: content of type image_url, for which a mark stands in the text "
        f"({source}, message 1, message 2, message 3, and 2 more)"
    )


def test_results_come_in_once(results: Path, tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "log.db"
    out, err = run(capsys, "import", results, "--log", log)
    *notes, last = err.splitlines()
    assert out == ""
    assert last == "imported 69 records; 3 sessions read as cogym"
    assert all(note.startswith("note: the published analysis ") for note in notes)
    _, err = run(capsys, "import", results / "one", "--log", log)
    assert err.splitlines()[-1] == (
        "imported 0 records, 46 records there already; 2 sessions read as cogym"
    )
    out, _ = run(capsys, "import", results, "--log", log, "--json")
    done = json.loads(out)
    assert (done["format"], done["sessions"], done["records"], done["known"]) == ("cogym", 3, 0, 69)
    assert done["problems"] == []
    assert all(one["what"] and len(one["where"]) == 3 for one in done["differences"])


def test_what_came_in_can_be_looked_at(results: Path, tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "log.db"
    run(capsys, "import", results, "--log", log)
    out, _ = run(capsys, "report", log, "--json")
    report = json.loads(out)
    assert {one["group"]["agent"]: one["sessions"] for one in report["groups"]} == {
        "an_agent (one)": 2,
        "an_agent (two)": 1,
    }
    out, _ = run(capsys, "show", log, "env_trip_2", "--rounds", "human-turn", "--json")
    rounds = json.loads(out)["rounds"]
    assert [(one["updated"], one["last_update"]) for one in rounds] == [
        (False, None),
        (True, "Day 1:\nBonn"),
        (True, "Day 2"),
        (True, "Day 2, by train"),
    ]
    assert rounds[-1]["utility"] == 0.5
    out, _ = run(capsys, "show", log, "env_trip_2")
    assert "request: Plan a trip." in out
    assert "EDITOR_UPDATE(Day 1) → failed: 'Day 1' invalid." in out
    assert "m-1 to act (all calls): 900 + 40 tokens" in out
    out, _ = run(capsys, "verify", log)
    assert "nothing is wrong" in out


@pytest.mark.parametrize(
    ("value", "form", "sessions"),
    [
        (CHAT, "chat", 1),
        ([{"messages": CHAT}, {"messages": CHAT}], "chat", 2),
        ([TAU], "tau", 1),
        ({"info": {}, "tasks": [], "simulations": [{"task_id": 1, "messages": CHAT}]}, "tau", 1),
        ([log_line("user", "GO()")], "cogym", 1),
    ],
)
def test_formats_are_recognised(
    value: object, form: str, sessions: int, tmp_path: Path, capsys: Capture
) -> None:
    path = write(tmp_path / "file.json", value)
    for number, chosen in enumerate(("auto", form)):
        log = tmp_path / f"{number}.db"
        out, _ = run(capsys, "import", path, "--log", log, "--format", chosen, "--json")
        done = json.loads(out)
        assert (done["format"], done["sessions"]) == (form, sessions)


def test_our_own_lines_are_recognised(results: Path, tmp_path: Path, capsys: Capture) -> None:
    log, lines, copy = tmp_path / "log.db", tmp_path / "log.jsonl", tmp_path / "copy.db"
    run(capsys, "import", results, "--log", log)
    run(capsys, "export", log, "--output", lines)
    assert run(capsys, "import", lines, "--log", copy)[1] == "imported 69 records\n"
    first, _ = run(capsys, "export", log)
    second, _ = run(capsys, "export", copy)
    assert first == second


def test_the_zone_of_local_times(results: Path, tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "log.db"
    run(capsys, "import", results / "two", "--log", log, "--zone", "Europe/Berlin")
    out, _ = run(capsys, "sessions", log)
    assert "2026-03-01 11:00:00" in out
    message = refused(capsys, "import", results / "two", "--log", log)
    assert "the log has another SessionOpened at version 1" in message
    assert "import it into another log" in message


def test_a_wrong_guess_is_a_clear_error(results: Path, tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "log.db"
    chat = write(tmp_path / "chat.json", CHAT)
    tau = write(tmp_path / "tau.json", [TAU])
    other = write(tmp_path / "other.json", {"a": 1})
    messages = {
        (chat, "cogym"): f"{chat}, record 1: invalid record of Collaborative Gym: Object missing",
        (tau, "cogym"): f"{tau}, record 1: invalid record of Collaborative Gym: Object missing",
        (chat, "tau"): f"{chat} is a result of neither τ-bench",
        (results, "tau"): f"{results}/",
        (tau, "chat"): f"{tau}, message 1: invalid message: its role is null",
        (
            other,
            "chat",
        ): f"{other}: invalid conversation: it has neither messages nor input and output",
        (chat, "jsonl"): f"{chat}, line 1: invalid record",
        (other, "auto"): f"{other} looks like none of the formats that can be imported (jsonl, ",
        (tmp_path, "cogym"): "",
    }
    for (path, form), message in messages.items():
        if message:
            told = refused(capsys, "import", path, "--log", log, "--format", form)
            assert told.startswith(f"duolog: {message}")
            assert not log.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tmp}/none", "--log", "{log}"], "cannot read {tmp}/none: No such file or directory"),
        (["{empty}", "--log", "{log}"], "{empty} looks like none of the formats"),
        (
            ["{chat}", "--log", "{log}", "--format", "csv"],
            "--format: unknown value 'csv'; choose from",
        ),
        (["{chat}", "--log", "{log}", "--zone", "Mars"], "unknown time zone 'Mars'"),
        (["-", "--log", "{log}", "--format", "chat"], "a pipe is read as jsonl only"),
        (["{chat}", "--log", "memory://"], "memory:// would be gone"),
        (["{chat}", "--log", "{tmp}"], "{tmp} is a directory; name a file for the log"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: Capture
) -> None:
    names = {"tmp": tmp_path, "log": tmp_path / "log.db", "chat": tmp_path / "chat.json"}
    write(names["chat"], CHAT)
    names["empty"] = tmp_path / "empty"
    names["empty"].mkdir()
    told = refused(capsys, "import", *(one.format(**names) for one in arguments))
    assert told.startswith(f"duolog: {message.format(**names)}")
    assert not names["log"].exists()


def test_broken_lines_are_refused_or_left_out(
    results: Path, tmp_path: Path, capsys: Capture
) -> None:
    log = tmp_path / "log.db"
    for name in ("env_trip_1", "env_trip_2"):
        source = results / "one" / name / "event_log.jsonl"
        text = source.read_text(encoding="utf-8").splitlines()
        text[3] = text[3][:40]
        source.write_text("\n".join(text), encoding="utf-8")
    first = results / "one" / "env_trip_1" / "event_log.jsonl"
    told = refused(capsys, "import", results, "--log", log)
    assert told.startswith(f"duolog: {first}, line 4: invalid record of Collaborative Gym: JSON is")
    assert told.endswith("; nothing was imported (--keep-going imports the rest)")
    assert not log.exists()
    _, err = run(capsys, "import", results, "--log", log, "--keep-going")
    assert err.startswith(f"{first}, line 4: invalid record of Collaborative Gym: ")
    assert "2 problems; 3 sessions read as cogym" in err.splitlines()[-1]


def test_many_problems_are_not_all_told(tmp_path: Path, capsys: Capture) -> None:
    talks: list[Json] = [{"messages": 1}] * 30
    path = write_lines(tmp_path / "talks.jsonl", [{"messages": CHAT}, *talks])
    _, err = run(capsys, "import", path, "--log", tmp_path / "log.db", "--keep-going")
    lines = err.splitlines()
    assert len(lines) == 22
    assert lines[-2:] == [
        "... and 10 more problems",
        "imported 3 records, 30 problems; 1 session read as chat",
    ]


@pytest.mark.slow
def test_real_results_agree_with_the_published_rounds(
    test_data: Callable[[str], Path], tmp_path: Path, capsys: Capture
) -> None:
    """Same rounds as the published analysis finds: as many, updated alike, with the same texts."""
    log = tmp_path / "log.db"
    runs = test_data("cogym/runs")
    run(capsys, "import", runs, "--log", log)
    out, _ = run(capsys, "sessions", log, "--json")
    sessions = [one["session"] for one in json.loads(out)]
    compared = 0
    for path in sorted(runs.glob("*/*/rounds.expected.json")):
        expected = json.loads(path.read_text(encoding="utf-8"))
        [session] = [one for one in sessions if one.startswith(f"{path.parent.name}-")]
        out, _ = run(capsys, "show", log, session, "--rounds", "human-turn", "--json")
        rounds = json.loads(out)["rounds"]
        assert len(rounds) == (len(expected) or 1)
        for ours, theirs in zip(rounds, expected, strict=False):
            assert ours["updated"] is theirs["has_result_updates"]
            typed = theirs["last_result_update_content"]
            if typed is not None:
                text = typed["text"].strip().strip("\"'").strip().replace("\\n", "\n")
                assert ours["last_update"] == text
                compared += 1
    assert compared > 10


def test_a_mapping_is_tried_before_anything_is_written(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("jsonpath_rfc9535")
    mapping = tmp_path / "my.toml"
    mapping.write_text(
        '[message]\neach = "$.turns[*]"\nrole = "$.by"\ntext = "$.said"\n'
        '[roles]\nann = "human"\nbot = "agent"\n',
        encoding="utf-8",
    )
    turns = [{"by": "ann", "said": "Hello"}, {"by": "bot", "said": "Hi."}]
    source = write(tmp_path / "in.json", {"turns": turns})
    assert main(["import", str(source), "--mapping", str(mapping), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "my: 1 message of people, 1 of agents, 0 calls" in shown
    assert "1 session and 0 problems as my; nothing was written" in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.json", "my.toml"]
    log = tmp_path / "log.db"
    assert main(["import", str(source), "--mapping", str(mapping), "--log", str(log)]) == 0
    assert "imported 3 records; 1 session read as my" in capsys.readouterr().err
    assert main(["import", str(source), "--mapping", str(mapping)]) == 2
    assert "--log" in capsys.readouterr().err


def test_a_mapping_reads_every_file_of_a_directory(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("jsonpath_rfc9535")
    mapping = tmp_path / "my.toml"
    mapping.write_text(
        '[message]\neach = "$.turns[*]"\nrole = "$.by"\ntext = "$.says"\n\n[roles]\nme = "human"\n',
        encoding="utf-8",
    )
    (tmp_path / "logs").mkdir()
    for name in ("a", "b"):
        write(tmp_path / "logs" / f"{name}.json", {"turns": [{"by": "me", "says": name}]})
    out, _ = run(capsys, "import", tmp_path / "logs", "--mapping", mapping, "--dry-run")
    assert "2 sessions and 0 problems" in out


def test_an_empty_file_that_is_followed_needs_its_format(tmp_path: Path, capsys: Capture) -> None:
    source, log = tmp_path / "s.jsonl", tmp_path / "log.db"
    source.touch()
    said = refused(capsys, "import", source, "--log", log, "--follow")
    assert "is empty so far: say which format it will have, with --format" in said
    assert not log.exists()


@pytest.mark.slow
async def test_a_directory_is_followed_from_before_its_first_file(tmp_path: Path) -> None:
    source, log = tmp_path / "projects", tmp_path / "log.db"
    source.mkdir()
    command = ["import", str(source), "--log", str(log), "--follow", "--label", "team=a"]
    process = await anyio.open_process([sys.executable, "-P", "-m", "duolog", *command])

    def said(number: int, text: str) -> str:
        held = {"type": "user", "uuid": f"u{number}", "sessionId": "s"}
        parent = f"u{number - 1}" if number else None
        return json.dumps({**held, "parentUuid": parent, "message": {"content": text}}) + "\n"

    async with process:
        with anyio.fail_after(120):
            assert process.stderr is not None
            heard = await BufferedByteReceiveStream(process.stderr).receive_until(b"\n", 1000)
            assert heard.decode() == f"following {source}; Ctrl-C ends it"
            async with open_log(str(log), create=False) as opened, opened.subscribe() as records:
                for number, text in enumerate(("Hello", "Again")):
                    with (source / "s.jsonl").open("a", encoding="utf-8") as file:
                        file.write(said(number, text))
                    async for record in records:
                        if isinstance(record.event, SessionOpened):
                            assert record.event.config["group"] == {"team": "a"}
                        if isinstance(record.event, MessageSent):
                            assert record.event.text == text
                            break
            process.send_signal(signal.SIGINT)
            assert await process.wait() in (0, 130)
