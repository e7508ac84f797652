"""The screen of ``duolog watch``, driven by Textual's pilot: its contents and its keys."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from duolog.cli.watch.app import WatchApp, watch_log
from duolog.cli.watch.panes import SessionsPane, TranscriptPane
from duolog.cli.watch.state import WatchedLog
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.logger import get_logger
from duolog.scoring.trajectory.options import Options
from duolog.testing.sessions import put_records
from scripted_logs import script_of
from textual.widgets import Static
from watch_screen import LARGE, SMALL, screen

pytestmark = pytest.mark.slow

DINNER = "menu-1-two-stage-ab12"

WRITE = """
import sys, anyio
from duolog.engine.log.open import open_log
from duolog.testing.sessions import put_records
from scripted_logs import script_of

async def main():
    async with open_log(sys.argv[1]) as log:
        for line in sys.stdin:
            session, _, moves = line.strip().partition(" ")
            written = [record.position async for record in log.read_all(session=session)]
            await put_records(log, script_of(moves.split(), session).records[len(written):])
            print("written", flush=True)

anyio.run(main)
"""


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_it_shows_the_list_and_a_transcript(size: tuple[int, int], dinner: Path) -> None:
    async with (
        open_log(str(dinner), create=False) as log,
        screen(log, size, session=DINNER) as shown,
    ):
        assert "▸ menu-1" in shown.sessions
        assert "finished" in shown.sessions
        assert "τ=1" in shown.sessions
        assert "■ ends the session: full" in shown.transcript
        assert "● following  event 28 of 28 · round 4" in shown.moment
        await shown.press("tab", "g")
        assert shown.transcript.startswith(DINNER)
        assert "ann (human, rules, persona proactive)" in shown.transcript
        assert "── Round 1 · initial" in shown.transcript


def test_nothing_is_logged_onto_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    async def draw(app: WatchApp) -> None:
        get_logger("log").error("while it is shown")

    async def watch() -> None:
        async with MemoryLog() as log:
            await watch_log(WatchedLog(log, Options()), "the.db", "seconds")

    monkeypatch.setattr(WatchApp, "run_async", draw)
    logger, (reading, writing) = logging.getLogger("duolog"), os.openpty()
    with open(reading, "rb") as seen, open(writing, "w", encoding="utf-8") as terminal:
        handler = logging.StreamHandler(terminal)
        logger.addHandler(handler)
        try:
            anyio.run(watch)
            logger.error("afterwards")
        finally:
            logger.removeHandler(handler)
        assert seen.readline() == b"afterwards\r\n"


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_a_session_without_utility_says_why(size: tuple[int, int], dinner: Path) -> None:
    async with (
        open_log(str(dinner), create=False) as log,
        screen(log, size, session="chat-7") as shown,
    ):
        outcome = shown.app.query_one(TranscriptPane).border_subtitle
        assert outcome == "open · 2 rounds · no utility, not evaluated: no utility scorer ran"


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_no_line_is_wider_than_the_screen(size: tuple[int, int], dinner: Path) -> None:
    async with (
        open_log(str(dinner), create=False) as log,
        screen(log, size, session=DINNER) as shown,
    ):
        for pane in (SessionsPane, TranscriptPane):
            found = shown.app.query_one(pane)
            for y in range(found.size.height):
                assert found.render_line(y).cell_length == found.size.width
            assert found.region.right <= size[0]


async def test_advice_to_stop_stands_out_without_colours() -> None:
    moves = ["human", "agent", "human", "bad", "agent"]
    async with MemoryLog() as log:
        await put_records(log, script_of(moves, "a").records)
        async with screen(log, SMALL) as shown:
            assert "■ stop advised: tolerance τ = 1 is used up in round 1" in shown.transcript
            await shown.press("tab", "g")
            assert "■ stop advised: after this round τ = 1 is used up" in shown.transcript


async def test_keys_go_back_and_on_in_time(dinner: Path) -> None:
    async with (
        open_log(str(dinner), create=False) as log,
        screen(log, LARGE, session=DINNER) as shown,
    ):
        await shown.press("left")
        assert "◀ looking back  event 27 of 28" in shown.moment
        await shown.press("left_square_bracket", "left_square_bracket")
        back = shown.moment
        assert "round 3" in back
        assert "ends the session" not in shown.transcript
        await shown.press("right_square_bracket")
        assert "round 4" in shown.moment
        await shown.press("home")
        assert "event 1 of 28 · round 1" in shown.moment
        assert "1 session" in str(shown.app.query_one("#title", Static).render())
        assert "▸ menu-1" in shown.sessions
        assert "open" in shown.sessions
        await shown.press("right")
        assert "Plan [bold]five[/bold] dinners, please." in shown.transcript
        await shown.press("f")
        assert "● following" in shown.moment
        assert "■ ends the session: full" in shown.transcript


async def test_the_arrows_choose_a_session(dinner: Path) -> None:
    async with open_log(str(dinner), create=False) as log, screen(log, SMALL) as shown:
        assert shown.watched.selected == "chat-7"
        await shown.press("down")
        assert "✗ fails" in shown.transcript
        await shown.press("G")
        assert shown.watched.selected == DINNER
        await shown.press("up", "pageup")
        assert shown.watched.selected == "chat-7"
        assert "Hello ␛[31m�evil" in shown.transcript


async def test_a_click_chooses_a_session(dinner: Path) -> None:
    async with open_log(str(dinner), create=False) as log, screen(log, LARGE) as shown:
        await shown.pilot.click(SessionsPane, offset=(6, 5))
        await shown.shows(lambda: shown.watched.selected == DINNER)


async def test_help_opens_and_closes(dinner: Path) -> None:
    async with open_log(str(dinner), create=False) as log, screen(log, SMALL) as shown:
        await shown.press("question_mark")
        assert "back and on by one event" in str(
            shown.app.screen.query_one("#help", Static).render()
        )
        await shown.press("escape")
        assert shown.app.screen.query("#sessions")


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_it_grows_with_what_another_process_writes(
    size: tuple[int, int], tmp_path: Path, root: Path
) -> None:
    path = tmp_path / "log.db"
    paths = [str(root / "tests" / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = await anyio.open_process(
        [sys.executable, "-P", "-c", WRITE, str(path)],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    async with process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None
        answers = BufferedByteReceiveStream(stdout)

        async def write(line: str) -> None:
            await stdin.send(f"{line}\n".encode())
            assert await answers.receive_until(b"\n", 100) == b"written"

        await write("first human agent")
        async with open_log(str(path), create=False) as log, screen(log, size) as shown:
            assert "answer 1" in shown.transcript
            await write("first human agent draft human")
            await shown.shows(lambda: "word 3" in shown.transcript)
            assert "Round 2" in shown.transcript
            await write("second human")
            await shown.shows(lambda: "second" in shown.sessions)
            assert shown.watched.selected == "first"
            await shown.press("left")
            await write("first human agent draft human agent")
            await shown.shows(lambda: "of 6" in shown.moment)
            assert "answer 4" not in shown.transcript
            await shown.press("end")
            assert "answer 4" in shown.transcript
        await stdin.aclose()
        assert await process.wait() == 0


@pytest.mark.slow
async def test_who_reads_further_up_is_not_disturbed_by_what_comes() -> None:
    script = script_of(["human", "agent"] * 40, "a")
    async with MemoryLog() as log:
        await put_records(log, script.records[:70])
        async with screen(log, SMALL) as shown:
            await shown.press("tab", "pageup", "pageup")
            before = shown.transcript
            await put_records(log, script.records[70:])
            await shown.shows(lambda: "of 81" in shown.moment)
            assert shown.transcript == before
            await shown.press("pagedown", "pagedown", "pagedown", *["pagedown"] * 8)
            assert "answer 79" in shown.transcript


async def test_an_empty_log_says_so() -> None:
    async with MemoryLog() as log, screen(log, SMALL) as shown:
        assert "no sessions yet" in shown.sessions
        await shown.press("left", "right", "up", "down", "home", "f", "pageup")
        assert "no session selected" in shown.transcript


async def test_a_log_that_goes_away_is_reported_and_what_was_read_stays(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with open_log(str(path)) as log:
        await put_records(log, script_of(["human", "agent"], "a").records)
        async with screen(log, SMALL, file=path) as shown:
            path.unlink()
            await shown.shows(lambda: "is gone" in shown.moment)
            assert "answer 1" in shown.transcript


async def test_a_name_is_shown_as_it_is() -> None:
    name = "[[red]x[/] 漢字"
    async with MemoryLog() as log:
        await put_records(log, script_of(["human"], name).records)
        async with screen(log, LARGE) as shown:
            assert f"▸ {name}  " in shown.sessions
            assert shown.transcript.startswith(name)
            title = shown.app.query_one(TranscriptPane)._border_title
            assert title is not None
            assert title.plain == name


@pytest.mark.parametrize("size", [(20, 6), (40, 10), (300, 80)])
async def test_it_lives_with_any_size(size: tuple[int, int], dinner: Path) -> None:
    async with open_log(str(dinner), create=False) as log, screen(log, SMALL) as shown:
        await shown.pilot.resize_terminal(*size)
        await shown.press("down", "tab", "pageup", "left")
        assert shown.watched.failure is None


async def test_slash_searches_while_it_is_typed_and_escape_restores(dinner: Path) -> None:
    async with open_log(str(dinner), create=False) as log, screen(log, SMALL) as shown:
        await shown.press("slash", *"state=f", "q")
        await shown.shows(lambda: "unknown state 'fq'" in shown.search)
        await shown.press("backspace", *"ailed")
        await shown.shows(lambda: "1 of 4 sessions" in shown.search)
        assert "chat-7" not in shown.sessions
        await shown.press("escape")
        assert "chat-7" in shown.sessions
        await shown.press("slash", *"two-stage", "enter")
        assert "two-stage" in str(shown.app.query_one(SessionsPane).border_title)
        assert "chat-7" not in shown.sessions
        assert shown.watched.selected == "menu-2-two-stage-ef56"
        await shown.press("s", "s")
        assert "by utility ↑" in str(shown.app.query_one(SessionsPane).border_title)
        assert "▸" in shown.lines(SessionsPane)[2]
        await shown.press("escape")
        assert "chat-7" in shown.sessions


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
async def test_no_two_sessions_look_the_same_and_nothing_is_cut_off(columns: int) -> None:
    names = [f"travel-planning-{n:04}-two-stage-proactive-of-the-task" for n in range(9)]
    names += ["漢字の会話" * 20, "漢字の会話" * 20 + "!", "a  b", "a b", "long " * 100]
    async with MemoryLog() as log:
        for name in names:
            moves = ["human", "agent", "human", "bad", "agent"]
            await put_records(log, script_of(moves, name).records)
        async with screen(log, (columns, 60)) as shown:
            _, *lines = shown.lines(SessionsPane)
            found = [line[2:].split(" open ")[0].rstrip() for line in lines if " open " in line]
            assert len(set(found)) == len(names)
            assert all("τ=1" in line for line in lines if " open " in line)
