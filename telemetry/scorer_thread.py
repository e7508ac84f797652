"""Scorers in a thread with its own event loop, so that they take no time of the product's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import final

import anyio
from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from ..engine.log.contract import EventLog, Store
from ..engine.scorers.driver import ScorerPool

__all__ = ("ScorerThread",)

_LOOK = 0.01  # seconds between looks how far the log has come


@final
class ScorerThread:
    """Runs scorers in a thread, on their own connection to the log.

    Args:
        make_store: opens the log once more.
        make_pool: makes the scorers on it.
    """

    def __init__(
        self, make_store: Callable[[], Store], make_pool: Callable[[EventLog], ScorerPool]
    ) -> None:
        self._make_store = make_store
        self._make_pool = make_pool
        self._portal: BlockingPortal | None = None
        self._store: Store | None = None
        self._pool: ScorerPool | None = None
        self._ready = anyio.Event()

    async def run(self) -> None:
        """Measures until it is cancelled, or the log can no longer be read."""
        loop = asyncio.get_running_loop()

        async def score() -> None:
            async with self._make_store() as store:
                self._store, self._pool = store, self._make_pool(store)
                loop.call_soon_threadsafe(self._ready.set)
                await self._pool.run()

        thread: AbstractContextManager[BlockingPortal] = start_blocking_portal(
            name="duolog scorers"
        )
        self._portal = await to_thread.run_sync(thread.__enter__)
        future = await to_thread.run_sync(self._portal.start_task_soon, score)
        try:
            await asyncio.wrap_future(future)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(future.cancel)
                await to_thread.run_sync(thread.__exit__, None, None, None)

    async def settle(self, position: int) -> None:
        """Waits until the log is measured up to a position."""
        await self._ready.wait()
        pool, store = self._pool, self._store
        if self._portal is None or pool is None or store is None:
            return

        async def settle() -> None:
            # Records of other connections come when the store looks for them.
            while store.statistics().position < position:  # noqa: ASYNC110
                await anyio.sleep(_LOOK)
            await pool.settle()

        await to_thread.run_sync(self._portal.call, settle)
