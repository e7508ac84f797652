"""The screen of ``duolog watch`` in a test: an app that runs without a terminal, and its contents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from duolog.cli.watch.app import WatchApp
from duolog.cli.watch.panes import SessionsPane, TranscriptPane
from duolog.cli.watch.state import WatchedLog
from duolog.engine.log.contract import EventLog
from duolog.scoring.trajectory.options import Options
from textual.pilot import Pilot
from textual.widgets import Static

__all__ = ("LARGE", "SMALL", "Screen", "screen")

SMALL, LARGE = (80, 24), (140, 40)


class Screen:
    """An app that runs, and what can be read on it."""

    def __init__(self, app: WatchApp, pilot: Pilot[None], watched: WatchedLog) -> None:
        self.app = app
        self.pilot = pilot
        self.watched = watched

    def lines(self, pane: type[SessionsPane | TranscriptPane]) -> list[str]:
        found = self.app.query_one(pane)
        return [found.render_line(y).text.rstrip() for y in range(found.size.height)]

    @property
    def sessions(self) -> str:
        return "\n".join(self.lines(SessionsPane))

    @property
    def transcript(self) -> str:
        return "\n".join(self.lines(TranscriptPane))

    @property
    def search(self) -> str:
        return str(self.app.screen.query_one("#outcome", Static).render())

    @property
    def moment(self) -> str:
        return str(self.app.query_one("#moment", Static).render())

    async def shows(self, holds: Callable[[], object]) -> None:
        """Waits until it does."""
        with anyio.fail_after(120):
            while not holds():
                await self.pilot.pause(0.01)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.shows(lambda: self.watched.settled)
        await self.pilot.pause()


@asynccontextmanager
async def screen(
    log: EventLog, size: tuple[int, int], session: str | None = None, file: Path | None = None
) -> AsyncIterator[Screen]:
    watched = WatchedLog(log, Options(), session=session, file=file)
    app = WatchApp(watched, "the.db", "seconds")
    async with app.run_test(size=size) as pilot, anyio.create_task_group() as tasks:
        tasks.start_soon(watched.run)
        shown = Screen(app, pilot, watched)
        await shown.shows(lambda: watched.settled)
        await pilot.pause()
        yield shown
        tasks.cancel_scope.cancel()
