"""``duolog forget``, ``verify`` and ``vacuum`` on logs that may be written to."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import sys
from pathlib import Path

import anyio
import duolog
import msgspec
import pytest
from duolog.cli import main
from duolog.engine.events import MessageSent, ModelCalled, SessionOpened
from duolog.engine.log.open import open_log
from duolog.engine.models import Message, ModelReply, ModelRequest, ResponseCache, request_digest
from duolog.engine.session.commands import RecordEvent
from duolog.scoring.columns.kept import kind_of
from duolog.scoring.columns.rows import FOLD_VERSION
from duolog.scoring.trajectory.options import Options
from duolog.telemetry.queue import QueuedCommand, SessionQueue
from duolog.telemetry.receipt import Receipt
from duolog.telemetry.spill import Spill, SpillFiles

pytestmark = pytest.mark.usefixtures("plain")

DINNER = "menu-1-two-stage-ab12"

UNREACHED = (
    "backups and exported files; spill files on other machines; exported spans; "
    "spill files in a directory of your own (name it with --spill); "
    "copies of the log (name them with --copy); exported tables (name them with --tables)"
)
NO_CACHE = "replies that a response cache keeps are not erased: name its directory with --cache\n"


@pytest.fixture
def log(dinner: Path, tmp_path: Path) -> Path:
    """A copy to work on; the fixture's log is closed, so that one file is all of it."""
    path = tmp_path / "log.db"
    shutil.copy(dinner, path)
    return path


def files(log: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(log.parent.iterdir()))


def test_what_is_forgotten_is_gone(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert b"dumplings" in files(log)
    assert main(["forget", str(log), DINNER, "--yes"]) == 0
    assert capsys.readouterr() == (
        f"erased: {DINNER}; rows kept of them, too\n",
        f"{NO_CACHE}not reached: {UNREACHED}\n",
    )
    assert b"dumplings" not in files(log)
    assert b"Still there?" in files(log)
    assert main(["show", str(log), DINNER]) == 0
    shown = capsys.readouterr().out
    assert "its opening is erased" in shown
    assert "(MessageSent, erased)" in shown
    assert main(["sessions", str(log), "state=forgotten", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["session"], found["task"], found["utility"]) == (DINNER, "", None)


async def with_a_cached_reply(log: Path, cache: Path) -> None:
    """Two sessions that asked a model; each of its replies is cached."""
    replies = ResponseCache(cache)
    async with duolog.open(f"sqlite:///{log}") as recorder:
        for name in ("first", "second"):
            ask = ModelRequest(model="m", messages=(Message(role="user", content=f"I am {name}"),))
            await replies.put(ask, ModelReply(text=f"Hello, {name}"))
            session = await recorder.session(name, task="chat")
            called = ModelCalled(model="m", purpose="act", request=request_digest(ask))
            await session.agent.adds(called, durable=True)


def test_forgetting_reaches_the_response_cache_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, cache = tmp_path / "models.db", tmp_path / "cache"
    anyio.run(with_a_cached_reply, log, cache)
    assert main(["forget", str(log), "second", "--yes", "--cache", str(cache)]) == 0
    assert capsys.readouterr().out.startswith("erased: second;")
    kept = [path.read_text(encoding="utf-8") for path in cache.rglob("*.json")]
    assert len(kept) == 1
    assert "first" in kept[0]
    assert main(["forget", str(log), "first", "--yes"]) == 0
    assert "a response cache keeps are not erased" in capsys.readouterr().err


def test_the_other_commands_live_with_it(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forget", str(log), DINNER, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == [DINNER]
    for command in (["report"], ["replay"], ["replay", "--json"], ["export"], ["verify"]):
        assert main([command[0], str(log), *command[1:]]) == 0
    capsys.readouterr()
    assert main(["replay", str(log), "--check"]) == 1  # no scorer of it is at hand
    out, err = capsys.readouterr()
    assert "nothing differs" in out
    assert "1 session erased: nothing to compare there\n" in err
    assert err.endswith("no measurement was checked: none of 6 can be made again here\n")


def test_a_beginning_is_not_enough_to_erase(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(log)
    assert main(["forget", str(log), DINNER[:-1]]) == 2
    assert f"did you mean {DINNER}" in capsys.readouterr().err
    assert files(log) == before


def test_sessions_of_a_filter_are_erased_in_copies_too(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copy(str(log), log.with_name("copy.db").as_posix())
    forget = ["forget", str(log), "--where", "task=menu", "--where", f"session={DINNER}"]
    assert main(forget) == 2
    assert "1 session in" in capsys.readouterr().err
    assert main([*forget, "--yes", "--copy", copy, "--copy", "nowhere.db"]) == 1
    out, err = capsys.readouterr()
    assert f"erased: {DINNER}" in out
    assert f"erased in {copy}: 1 session" in out
    assert "not erased in nowhere.db: no log at" in err
    assert b"dumplings" not in files(log)
    assert main([*forget, "--yes"]) == 0  # a second time there is nothing to erase
    assert main(["forget", str(log), "--older-than", "90d", "--yes"]) == 0
    assert "no session to erase" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ((), "name a session, or sessions by --where or --older-than"),
        ((DINNER, "--where", "task=menu"), "SESSION cannot be combined with --where"),
        (("--older-than", "soon"), "--older-than expects a duration"),
        (("--where", "utility=high"), "utility expects a number"),
        (("--where", "tusk=menu"), "unknown label or property 'tusk'"),
    ],
)
def test_what_is_to_be_erased_has_to_be_said(
    given: tuple[str, ...], what: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(log)
    assert main(["forget", str(log), *given, "--yes"]) == 2
    assert what in capsys.readouterr().err
    assert files(log) == before


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code", "erased"), [("n\n", 1, False), ("y\n", 0, True)])
def test_a_person_is_asked(
    answer: str, code: int, erased: bool, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    assert main(["forget", str(log), DINNER]) == code
    assert (b"dumplings" not in files(log)) == erased


def test_verify_finds_what_is_wrong(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(log)]) == 0
    assert capsys.readouterr() == ("39 records of 4 sessions: nothing is wrong\n", "")
    with sqlite3.connect(log) as connection:
        connection.execute("DROP TRIGGER events_stand")
        connection.execute(
            "UPDATE events SET body = CAST(replace(body, 'dumplings', 'porridge') AS BLOB) "
            "WHERE kind = ?",
            ("SnapshotTaken",),
        )
    connection.close()
    assert main(["verify", str(log)]) == 1
    checksum, digest, total = capsys.readouterr().out.splitlines()
    assert DINNER in checksum
    assert "checksum differs" in checksum
    assert DINNER in digest
    assert "digest" in digest
    assert total == "39 records of 4 sessions: 2 problems"
    assert main(["verify", str(log), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["events"], found["sessions"], len(found["problems"])) == (39, 4, 2)


def test_vacuum(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vacuum", str(log)]) == 0
    assert capsys.readouterr().out.endswith(f" bytes before, {log.stat().st_size:,} after\n")
    assert main(["vacuum", str(log), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["finished"] is True


@pytest.mark.slow
def test_another_process_can_hold_it_up(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reader = sqlite3.connect(log, isolation_level=None)
    try:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        assert main(["forget", str(log), DINNER, "--yes"]) == 0
        assert "not yet compacted" in capsys.readouterr().err
        assert main(["vacuum", str(log)]) == 1
        assert "not finished" in capsys.readouterr().err
    finally:
        reader.close()
    assert main(["vacuum", str(log)]) == 0
    assert b"dumplings" not in files(log)


@pytest.mark.parametrize("command", ["verify", "vacuum", "forget"])
def test_a_file_that_is_no_log(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello", encoding="utf-8")
    arguments = [command, str(path), *(["s"] if command == "forget" else [])]
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert str(path) in err
    assert path.read_text(encoding="utf-8") == "hello"


def test_kept_rows_that_do_not_follow_from_the_records_are_named(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(log), "--json"]) == 0  # which keeps the rows

    async def change() -> str:
        async with open_log(str(log)) as opened:
            kept = [one async for one in opened.derived(kind_of(Options()), FOLD_VERSION)]
            await opened.keep_derived([msgspec.structs.replace(kept[0], payload=kept[-1].payload)])
            return kept[0].session

    changed = anyio.run(change)
    capsys.readouterr()
    assert main(["verify", str(log)]) == 1
    assert f"the log, session {changed}: the rows kept of it differ" in capsys.readouterr().out


def test_forget_reaches_spill_files_in_a_directory_of_your_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, place = tmp_path / "chats.db", tmp_path / "spill"
    with duolog.open_sync(f"sqlite:///{log}") as opened:
        opened.session("chat-1").human.says("hello", durable=True)
    place.mkdir()
    waiting = SpillFiles(Spill(directory=place), f"sqlite:///{log}", None)
    text = MessageSent(text="my address is 1 Mill Lane")
    entry = QueuedCommand("says", RecordEvent(text), "human", "human", 1.0, Receipt("chat-1"))
    waiting.name_entry(entry)
    waiting.keep(
        [
            (
                SessionQueue(
                    "chat-1", SessionOpened(task="", instance="", participants=(), clock="utc")
                ),
                entry,
            )
        ],
        [],
    )
    waiting.leave([])
    [file] = place.iterdir()
    assert "Mill Lane" in file.read_text()
    command = ["forget", str(log), "chat-1", "--yes", "--spill", str(place)]
    assert main(command) == 0
    assert "Mill Lane" not in file.read_text()
    said = capsys.readouterr().err
    assert f"erased there too: the spill files in {place}" in said
    assert "name it with --spill" not in said
