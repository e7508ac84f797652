"""``duolog chat``: a person at a terminal, or at a pipe, works with an agent, and leaves, and comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from duolog.cli import main
from duolog.engine.events import MessageSent, ProgressRated, SessionClosed, SnapshotTaken
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from forked import run_forked
from installed_tasks import TASKS
from openai_server import OpenAIServer
from terminal import Terminal, at_terminal
from travel_model import play

CHAT = ["travel", "--agent", "two-stage", "--log", "chats.db"]
QUESTION = "How many people"
NEXT_QUESTION = "What is your budget"


def duolog(*arguments: str) -> list[str]:
    return ["-P", "-m", "duolog", *arguments]


def trace(path: Path) -> list[Record]:
    """The trace of the only session of a log."""

    async def read() -> list[Record]:
        async with open_log(str(path), create=False) as log:
            return [record async for record in log.read_all() if record.stream == TRACE]

    records = anyio.run(read)
    assert len({record.session for record in records}) == 1
    return records


def by_person(path: Path) -> Sequence[object]:
    """The person's acts, except the request, which is part of the task."""
    return [record.event for record in trace(path) if record.actor == "user"][1:]


@contextmanager
def chatting(
    where: Path, *arguments: str, editor: str = "", models: bool = False
) -> Iterator[Terminal]:
    # The rest of a key is waited for, however late it comes: Textual's 100 ms are too few on a busy machine.
    environment = {"EDITOR": editor, "VISUAL": "", "ESCDELAY": "60000"}
    command = duolog("chat", *arguments)
    with at_terminal(
        command, where=where, environment=environment, screen=not models, models=models
    ) as terminal:
        yield terminal


# --- at a terminal ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_whole_conversation(tmp_path: Path) -> None:
    """Answers, takes a plan, changes it in an editor, rates, and finishes."""
    with chatting(tmp_path, *CHAT, editor="sed -i s/Day/DAY/") as terminal:
        terminal.until("What you want, which only you know")
        terminal.until(QUESTION)
        terminal.type("\x1b[A\x1b[5~There will be 2 of us.\r")
        terminal.until(NEXT_QUESTION)
        terminal.type("We can spend $1,400.\r")
        terminal.until("utility 0.")
        terminal.type("/edit\r")
        terminal.until("DAY 1")
        terminal.type("/rate 4 a good start\r")
        terminal.until("4/5")
        terminal.type("/nothing\r")
        terminal.until("unknown command /nothing")
        terminal.type("/finish that will do\r")
        assert terminal.end() == 0
        terminal.until("The session is finished after ")
        terminal.until("duolog show chats.db travel-0-two-stage-person-")
        assert terminal.is_usual

    did = by_person(tmp_path / "chats.db")
    said = [event.text for event in did if isinstance(event, MessageSent)]
    assert said == ["There will be 2 of us.", "We can spend $1,400."]
    [edited] = [event for event in did if isinstance(event, SnapshotTaken)]
    assert str(edited.content).count("DAY") == 3
    [rated] = [event for event in did if isinstance(event, ProgressRated)]
    assert (rated.rating, rated.explanation) == (4, "a good start")
    assert did[-1] == SessionClosed(reason="finished", by="user", detail="that will do")


@pytest.mark.slow
def test_ctrl_c_leaves_the_session_open_and_tells_how_to_go_on(tmp_path: Path) -> None:
    with chatting(tmp_path, *CHAT, "--log-level", "debug") as terminal:
        terminal.until(QUESTION)
        terminal.type("\x03")
        assert terminal.end() == 130
        assert "session opened" not in terminal.shown, "it was logged under the screen"
        terminal.until("The session stays open: duolog chat travel --log chats.db --resume ")
        terminal.until("duolog: interrupted")
        assert "Traceback" not in terminal.shown
        assert terminal.is_usual
    session = trace(tmp_path / "chats.db")[0].session
    assert session in terminal.shown

    with chatting(tmp_path, "travel", "--log", "chats.db", "--resume", session) as terminal:
        terminal.until(QUESTION)  # earlier messages are shown again
        terminal.type("There are 2 of us.\r")
        terminal.until(NEXT_QUESTION)
        terminal.type("\x04")  # the end of input
        assert terminal.end() == 0
        terminal.until("The session stays open")
        assert terminal.is_usual
    assert trace(tmp_path / "chats.db")[-1].kind != "SessionClosed"


@pytest.mark.slow
def test_with_an_agent_on_a_model(
    tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.answer = play
    model = ("--model", "openai/gpt-4o", "--api-base", openai_server.url)
    with chatting(tmp_path, *CHAT, *model, models=True) as terminal:
        terminal.until(QUESTION)
        terminal.type("There will be 2 of us.\r")
        terminal.until(NEXT_QUESTION)
        terminal.type("/quit\r")
        assert terminal.end() == 0
        terminal.until(f"duolog chat travel --api-base {openai_server.url} --log chats.db --resume")
    key = os.environ["OPENAI_API_KEY"]
    assert key not in terminal.shown
    assert all(key.encode() not in file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.slow
def test_keys_in_any_pieces_make_the_lines_that_were_typed(tmp_path: Path) -> None:
    """However a terminal cuts what it sends: an arrow, or a letter of two bytes, in the middle."""
    typed: list[tuple[list[bytes], str]] = [
        ([b"\x1b[Ahello\r"], "hello"),  # nothing was sent before
        ([b"hel", b"lo two\r"], "hello two"),
        ([b"\x1b[A, and more\r"], "hello two, and more"),
        ([b"hel\x1b[1;5Dlo\x1bOP\r"], "lohel"),
        ([b"\x1b[", b"Dleft\r"], "left"),
        ([b"\x1b[5", b"~page\r"], "page"),
        (["caf\u00e9".encode()[:4], "\u00e9".encode()[1:] + b"\r"], "caf\u00e9"),
        ([b"helx\x7flo back\r"], "hello back"),
        ([b"what\x15hello again\r"], "hello again"),
        ([b"hello there\x17you\r"], "hello you"),
        ([b"one\ntwo\r"], "one\ntwo"),
        ([b"\x1b[200~pasted\rin two\x1b[201~\r"], "pasted\nin two"),
        ([b"hel\x04lo middle\r"], "hello middle"),  # an end of input in a line is none
    ]
    with chatting(tmp_path, *CHAT) as terminal:
        terminal.until(QUESTION)
        for chunks, text in typed:
            for chunk in chunks:
                terminal.send(chunk)
                terminal.until_read()
            terminal.until(f"you: {text.split()[0]}")
        terminal.send(b"bye\r\x04")
        assert terminal.end() == 0
    said = [
        event.text for event in by_person(tmp_path / "chats.db") if isinstance(event, MessageSent)
    ]
    assert said == [*(text for _, text in typed), "bye"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_leaves_the_session_open_and_the_terminal_usual(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with chatting(tmp_path, *CHAT) as terminal:
        terminal.until(QUESTION)
        terminal.type("half a sentence")
        terminal.until("half a sentence")
        terminal.process.send_signal(number)
        assert terminal.end() == code
        terminal.until("You had typed this, and not sent it:")
        terminal.until("half a sentence")
        terminal.until("The session stays open: duolog chat travel --log chats.db --resume ")
        assert "Traceback" not in terminal.shown
        assert terminal.is_usual
    assert trace(tmp_path / "chats.db")[-1].kind != "SessionClosed"


@pytest.mark.slow
def test_it_ends_when_its_terminal_is_closed(tmp_path: Path) -> None:
    """Even without a signal: the terminal is not its controlling terminal."""
    master, slave = os.openpty()
    with subprocess.Popen(
        [sys.executable, *duolog("chat", *CHAT)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    ) as process:
        os.close(slave)
        shown = b""
        while QUESTION.encode() not in shown:
            shown += os.read(master, 65536)
        os.close(master)
        assert process.wait(300) == 128 + signal.SIGHUP
    assert trace(tmp_path / "chats.db")[-1].kind != "SessionClosed"


@pytest.mark.slow
def test_without_textual_it_says_what_to_install_and_goes_on_in_lines(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['textual'] = None\n"
        "from duolog.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = ["-P", "-c", code, "chat", *CHAT]
    with at_terminal(command, where=tmp_path) as terminal:
        terminal.until("chatting on the whole screen needs an extra: ")
        terminal.until("[tui]'")
        terminal.until(QUESTION)
        terminal.type("/quit\n")
        assert terminal.end() == 0
    assert "\x1b[?1049h" not in terminal.sent


# --- at a pipe -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_lines_from_a_pipe_and_the_end_of_them(tmp_path: Path) -> None:
    left = pipe(tmp_path, "/wishes\nThere are 2 of us.", *CHAT)
    assert left.returncode == 0, left.stderr
    assert "What you want, which only you know" in left.stdout
    assert "The session stays open: duolog chat travel --log chats.db --resume" in left.stderr
    path = tmp_path / "chats.db"
    assert by_person(path) == [MessageSent(text="There are 2 of us.")]

    session = trace(path)[0].session
    ended = pipe(tmp_path, "/finish\n", "travel", "--log", "chats.db", "--resume", session[:12])
    assert ended.returncode == 0, ended.stderr
    assert "The session is finished after" in ended.stderr

    again = pipe(tmp_path, "/finish\n", "travel", "--log", "chats.db", "--resume", session)
    assert again.returncode == 2
    assert again.stderr == f"duolog: session {session} is finished\n"


def pipe(where: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_forked(duolog("chat", *arguments), where, os.environ, text=text)


# --- what makes no sense ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["sailing"], f"unknown task 'sailing'; choose from {TASKS}"),
        (["travel", "--agent", "three-stage"], "unknown agent 'three-stage'"),
        (["travel", "--agent", "auto"], "agent 'auto' works alone"),
        (["travel", "--instance", "x"], "unknown instance 'x'"),
        (["travel", "--dataset", "/nowhere"], "/nowhere"),
        (["travel", "--seed", "x"], "--seed"),
        (["travel", "--model", ""], "model"),
        (["travel", "--resume", "travel-0"], "no log at"),
        ([], "task"),
    ],
)
def test_bad_input_is_one_clear_line_and_leaves_no_log(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chats.db"
    assert main(["chat", *arguments, "--log", str(path)]) == 2
    out, err = capsys.readouterr()
    assert complaint in err
    assert err.count("\n") == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_session_that_was_no_chat_cannot_be_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.db"
    run = ["run", "travel", "--agents", "auto", "--sessions", "1", "--log", str(path)]
    assert main(run) == 0
    capsys.readouterr()
    assert main(["chat", "travel", "--log", str(path), "--resume", "travel"]) == 2
    assert "is finished" in capsys.readouterr().err
