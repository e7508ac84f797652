"""The diagnostic log: quiet, on standard error only, as text or JSON, and its contents."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path

import anyio
import duolog
import pytest
import structlog
from duolog.cli import main
from duolog.cli.diagnostics import (
    LogOptions,
    current_level,
    diagnostics,
    muted,
    take_log_options,
)
from duolog.engine.log.open import open_log
from duolog.engine.logger import get_logger
from duolog.engine.session.actors import playing
from duolog.engine.session.decisions import Decision
from duolog.engine.session.runner import run_session
from duolog.engine.session.view import View
from duolog.testing import a_session, agent, human

RUN = ["run", "travel", "--agents", "auto", "--sessions", "1", "--max-rounds", "2"]


def logged(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.slow
def test_a_run_says_in_json_what_was_opened_and_closed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = str(tmp_path / "log.db")
    assert main([*RUN, "--log", log]) == 0
    quiet = capfd.readouterr()
    assert "session opened" not in quiet.out + quiet.err
    assert main([*RUN, "--seed", "2", "--log", log, "--log-format", "json"]) == 0
    spoken = capfd.readouterr()
    assert [line["event"] for line in logged(spoken.err)] == ["session opened", "session closed"]
    assert {line["level"] for line in logged(spoken.err)} == {"info"}
    assert logged(spoken.err)[0]["logger"] == "duolog.session"
    assert "session opened" not in spoken.out
    assert main(["--log-level=warning", *RUN, "--seed", "3", "--log", log]) == 0
    assert "session opened" not in capfd.readouterr().err
    assert not structlog.is_configured()


@pytest.mark.parametrize(
    ("arguments", "rest", "options"),
    [
        (["run", "travel"], ["run", "travel"], LogOptions()),
        (["--log-format", "json", "serve"], ["serve"], LogOptions(None, "json")),
        (["serve", "x", "--log-level=debug"], ["serve", "x"], LogOptions("debug", None)),
        (["a", "--", "--log-level"], ["a", "--", "--log-level"], LogOptions()),
    ],
)
def test_the_options_stand_anywhere(
    arguments: Sequence[str], rest: list[str], options: LogOptions
) -> None:
    assert take_log_options(arguments) == (rest, options)


@pytest.mark.parametrize("arguments", [["--log-level", "loud"], ["serve", "--log-format"]])
def test_an_option_that_makes_no_sense_is_one_clear_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"duolog: {arguments[-1] if arguments[-1][0] == '-' else '--log-level'} ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "command", "levels"),
    [
        (LogOptions(), "run", []),
        (LogOptions(), "serve", ["warning", "error"]),
        (LogOptions(), "acp", ["warning", "error"]),
        (LogOptions("off"), "serve", []),
        (LogOptions("debug"), "run", ["info", "warning", "error"]),
        (LogOptions(None, "text"), "run", ["info", "warning", "error"]),
        (LogOptions("error", "text"), "run", ["error"]),
    ],
)
def test_as_much_is_logged_as_was_asked_for(
    options: LogOptions,
    command: str,
    levels: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with diagnostics(options, command):
        for level in ("info", "warning", "error"):
            getattr(get_logger("test"), level)("it happened", key="sk-proj-abcDEF123456", number=1)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [line.split("level=")[1].split()[0] for line in lines] == levels
    assert all('event="it happened" key=[removed] number=1' in line for line in lines)


def test_nothing_reaches_a_terminal_that_a_screen_is_drawn_on(tmp_path: Path) -> None:
    logger, file = logging.getLogger("duolog"), tmp_path / "log.txt"
    reading, writing = os.openpty()
    with open(writing, "w", encoding="utf-8") as terminal, file.open("w", encoding="utf-8") as kept:
        handlers = [logging.StreamHandler(terminal), logging.StreamHandler(kept)]
        for handler in handlers:
            logger.addHandler(handler)
        try:
            with muted():
                logger.error("under the screen")
            logger.error("behind it")
        finally:
            for handler in handlers:
                logger.removeHandler(handler)
        seen = b""
        while not seen.endswith(b"\n"):
            seen += os.read(reading, 1000)
        assert seen == b"behind it\r\n"
    os.close(reading)
    assert file.read_text(encoding="utf-8") == "under the screen\nbehind it\n"


def messages(caplog: pytest.LogCaptureFixture, part: str) -> list[tuple[str, str]]:
    """Level and text of the messages that a part of the engine has logged."""
    return [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name == f"duolog.{part}"
    ]


async def test_an_actor_that_fails_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def decide(self, view: View) -> Decision:
            await anyio.lowlevel.checkpoint()
            raise ValueError("no idea")

    caplog.set_level(logging.INFO, "duolog")
    async with open_log("memory://") as log:
        await run_session(log, a_session(human(playing(Broken())), agent(playing(Broken()))))
    levels = [(level, text.split(" session=")[0]) for level, text in messages(caplog, "session")]
    assert levels == [
        ("INFO", "event='session opened'"),
        ("ERROR", "event='an actor failed'"),
        ("INFO", "event='session closed'"),
    ]
    line = Broken.decide.__code__.co_firstlineno + 2
    where = f"test_diagnostics.py, line {line}, in decide"
    assert f"error='ValueError: no idea ({where})'" in messages(caplog, "session")[1][1]


async def test_sessions_of_a_product_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "duolog")
    async with duolog.open("memory://") as log:
        session = await log.session("s-1", task="support")
        await session.human.says("hello", durable=True)
        await session.close()
    told = [text for _, text in messages(caplog, "session")]
    assert [text.split(" task=")[0] for text in told[:1]] == [
        "event='session opened' session='s-1'"
    ]
    assert "event='session closed' session='s-1' reason='ended'" in told[1]
    assert len(told) == 2


@pytest.mark.parametrize("level", ["off", "warning", "debug"])
def test_the_level_can_be_given_to_another_program(level: str) -> None:
    with diagnostics(LogOptions(level), None):
        assert current_level() == level
