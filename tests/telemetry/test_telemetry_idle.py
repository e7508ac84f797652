"""Idle sessions: closed as ended, continued in a new session, and not kept in memory."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import duolog
import pytest
from duolog.cli import main
from duolog.engine.errors import InvalidInput
from duolog.engine.log.open import MemoryLog
from duolog.engine.log.session_states import SessionStates
from duolog.telemetry.idle import close_idle

DAYS_LATER = time.time() + 30 * 86_400.0


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duolog.telemetry.idle.now", lambda: DAYS_LATER)


async def test_an_idle_session_ends_and_is_continued_in_a_new_one(later: None) -> None:
    async with duolog.open("memory://", idle_after=3600) as log:
        first = await log.session("chat", task="support", agent="v7")
        await first.human.says("Hello.")
        busy = await log.session("busy")
        await busy.human.says("Hello.", at=DAYS_LATER, durable=True)
        await first.flush()
        assert await close_idle(log, 3600, dry=True) == ["chat"]
        assert await close_idle(log, 3600) == ["chat"]
        assert await close_idle(log, 3600) == []
        assert (await log.summary("chat")).state == "ended"
        assert (await log.summary("busy")).state == "open"
        second = await log.session("chat", task="support", agent="v7")
        await second.human.says("I am back.", durable=True)
        assert second.id == "chat.2"
        opened = (await anext(log.read("chat.2"))).event
        assert isinstance(opened, duolog.SessionOpened)
        assert opened.config["continues"] == "chat"
        assert (await log.session("chat")).id == "chat.2"


@pytest.mark.parametrize(("seconds", "closed"), [(60.0, ["chat"]), (60.5, [])])
async def test_a_session_is_idle_from_the_time_on_that_was_named(
    monkeypatch: pytest.MonkeyPatch, seconds: float, closed: list[str]
) -> None:
    async with duolog.open("memory://") as log:
        session = await log.session("chat")
        await session.human.says("Hello.", at=DAYS_LATER, durable=True)
        monkeypatch.setattr("duolog.telemetry.idle.now", lambda: DAYS_LATER + 60.0)
        assert await close_idle(log, seconds) == closed


async def test_a_session_that_is_idle_again_is_continued_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with duolog.open("memory://", idle_after=3600) as log:
        ids: list[str] = []
        for times in range(3):
            session = await log.session("chat")
            await session.human.says("Hello.", durable=True)
            ids.append(session.id)
            # Only now, so that the log's own look for idle sessions does not come first.
            monkeypatch.setattr("duolog.telemetry.idle.now", lambda: DAYS_LATER)
            assert await close_idle(log, 3600) == [session.id], times
        assert ids == ["chat", "chat.2", "chat.3"]


async def test_a_log_closes_idle_sessions_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    now = (
        0.0  # so that the session is not idle before its message is there, however long that takes
    )
    monkeypatch.setattr("duolog.telemetry.idle.now", lambda: now)
    async with duolog.open("memory://", idle_after=0.01) as log:
        session = await log.session("s")
        await session.human.says("Hello.", durable=True)
        now = DAYS_LATER
        with anyio.fail_after(120):
            while (await log.summary("s")).state == "open":  # noqa: ASYNC110
                await anyio.sleep(0.01)


async def test_who_closes_a_session_ends_it_for_good() -> None:
    async with duolog.open("memory://", idle_after=3600) as log:
        session = await log.session("s")
        await session.close(durable=True)
        assert (await log.session("s")).closed


async def test_a_time_that_cannot_be() -> None:
    with pytest.raises(InvalidInput, match="above 0"):
        duolog.open("memory://", idle_after=0)
    async with MemoryLog() as log:
        with pytest.raises(InvalidInput, match="above 0"):
            await close_idle(log, -1)


def test_the_command_closes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], later: None
) -> None:
    path = tmp_path / "log.db"
    with duolog.open_sync(f"sqlite:///{path}") as log:
        log.session("old").human.says("Hello.")
        log.session("new").human.says("Hello.", at=DAYS_LATER)
    assert main(["close", str(path), "--idle", "7d", "--dry-run"]) == 0
    assert main(["close", str(path), "--idle", "7d"]) == 0
    assert main(["close", str(path), "--idle", "7d"]) == 0
    out, err = capsys.readouterr()
    assert out == "old\nold\n"
    assert "1 session would be closed" in err
    assert "0 sessions closed" in err
    assert main(["close", str(path), "--idle", "soon"]) == 2
    assert "90s, 30m, 12h, 90d or 2w, got 'soon'" in capsys.readouterr().err


def test_states_that_are_not_used_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("duolog.engine.log.session_states.time.monotonic", lambda: now)
    states: SessionStates[str] = SessionStates(100, busy=lambda state: state == "busy", idle=60)
    states.keep("a", "idle")
    states.keep("b", "used again")
    now = 50.0
    states.keep("b", "used again")
    now = 70.0
    states.keep("c", "new")
    assert list(states) == ["used again", "new"]
    states.keep("d", "busy")
    states.keep("f", "idle too")
    now = 200.0
    states.keep("e", "newest")
    assert list(states) == ["busy", "newest"]
