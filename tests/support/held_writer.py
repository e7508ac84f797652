"""A SQLite log whose writer is held up, so that what is appended meanwhile gathers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from duolog.engine.log.contract import Store
from duolog.engine.log.sqlite.log import SqliteFile
from duolog.engine.log.stored import StoredLog

__all__ = ("gathered",)


@asynccontextmanager
async def gathered(log: Store, appends: int) -> AsyncIterator[None]:
    """Holds up the writer from before the block until so many appends wait, which the block begins.

    Without that, how many gather depends on whether the writer's thread or the loop is faster.
    """
    assert isinstance(log, StoredLog)
    assert isinstance(log._backend, SqliteFile)
    loop, held, released = asyncio.get_running_loop(), anyio.Event(), threading.Event()

    def hold() -> None:
        loop.call_soon_threadsafe(held.set)
        released.wait()

    async def release() -> None:
        try:
            while log.statistics().waiting < appends:  # noqa: ASYNC110  (no event says so)
                await anyio.sleep(0.001)
        finally:
            released.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(log._backend.writer.call, hold)
        await held.wait()
        tasks.start_soon(release)
        yield
