"""The one place that knows aiosqlite's insides: a function run whole in a connection's thread.

aiosqlite's public interface costs one switch of threads for each statement. A group of appends,
or a batch of records, is many statements that belong together; its private ``_execute`` runs them
in one switch. The range of aiosqlite versions is pinned for that, and a test holds it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar, cast

import aiosqlite
import anyio
import anyio.to_thread

__all__ = ("connect", "run_in_thread")

P = ParamSpec("P")
T = TypeVar("T")


async def connect(connector: Callable[[], sqlite3.Connection]) -> aiosqlite.Connection:
    """Opens a connection in its own thread; closes it if the caller is cancelled meanwhile.

    The thread is a daemon, so a connection that was never closed cannot keep the interpreter from
    ending. SQLite recovers from that as from any crash.
    """
    connection = aiosqlite.Connection(connector, 64)
    connection._thread.daemon = True
    with anyio.CancelScope(shield=True):
        try:
            await connection
        except BaseException:
            # The thread notifies the loop as it ends: the loop has to be there still.
            await anyio.to_thread.run_sync(connection._thread.join)
            raise
    return connection


async def run_in_thread(
    connection: aiosqlite.Connection,
    function: Callable[P, T],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Runs a function in a connection's thread; it runs to its end even if the caller goes."""
    run = cast(Callable[..., Awaitable[T]], connection._execute)
    return await run(function, *args, **kwargs)
