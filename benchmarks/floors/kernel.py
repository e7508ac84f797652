"""The floor of a simulation: two tasks that hand over through futures, encoding, group commit.

It does not check, project, score, resume or cancel anything, and it runs without a clock.
Any engine that makes the same events durable before their actors continue pays at least this.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import anyio
from duolog.benchmarks.floors.sqlite import INSERT, UPDATE, new_tables
from duolog.engine.codec import digest, encode_body
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    Event,
    MessageSent,
    NoteTaken,
    Participant,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
)

__all__ = ("TEXT", "TURNS", "GroupCommit", "simulate_bare")

TURNS = 8
TEXT = (
    "The museum opens at ten and is a short walk from the hotel; dinner by the river at eight. " * 3
)

_Rows = list[tuple[object, ...]]
_Waiting = tuple[_Rows, asyncio.Future[None]]


class GroupCommit:
    """Writes the gathered events as one transaction, in a thread that does nothing else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._ready = threading.Event()
        self._pending: list[_Waiting] = []
        self._closed = False
        self.position = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def append(self, rows: _Rows) -> asyncio.Future[None]:
        """Takes rows; the future is done once they are durable."""
        done = self._loop.create_future()
        self._pending.append((rows, done))
        self._ready.set()
        return done

    def close(self) -> None:
        """Ends the thread."""
        self._closed = True
        self._ready.set()
        self._thread.join()

    def _run(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
        while True:
            self._ready.wait()
            self._ready.clear()
            group, self._pending = self._pending, []
            if group:
                self._commit(connection, group)
            elif self._closed:
                connection.close()
                return

    def _commit(self, connection: sqlite3.Connection, group: Sequence[_Waiting]) -> None:
        rows: _Rows = []
        touched: dict[object, tuple[object, ...]] = {}
        for appended, _ in group:
            for row in appended:
                self.position += 1
                rows.append((self.position, *row))
                key, version, time = row[0], row[2], row[5]
                touched[key] = ("open", version, version, 1, 1, None, time, self.position, key)
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(INSERT, rows)
        connection.executemany(UPDATE, touched.values())
        connection.execute("COMMIT")
        self._loop.call_soon_threadsafe(_wake, [done for _, done in group])


def _wake(futures: Sequence[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)


class _Session:
    """Two actors of one session that speak in turn."""

    def __init__(self, commit: GroupCommit, key: int) -> None:
        self._commit = commit
        self._key = key
        self._version = 0
        loop = asyncio.get_running_loop()
        self._to_helper: asyncio.Future[None] = loop.create_future()
        self._to_user: asyncio.Future[None] = loop.create_future()
        self._loop = loop

    async def _emit(self, event: Event, actor: str, role: str) -> int:
        self._version += 1
        version = self._version
        row = (
            self._key,
            self._key,
            version,
            type(event).__name__,
            event.schema,
            version * 0.5,
            actor,
            role,
            None,
            version - 1,
            None,
            encode_body(event),
        )
        await self._commit.append([row])
        return version

    async def user(self) -> None:
        people = (
            Participant(name="user", role="human"),
            Participant(name="helper", role="agent"),
        )
        opened = SessionOpened(
            task="benchmark",
            instance=str(self._key),
            participants=people,
            clock="virtual",
            seed=self._key,
        )
        await self._emit(opened, "engine", "environment")
        for _ in range(TURNS):
            await self._emit(MessageSent(text=TEXT), "user", "human")
            self._to_helper.set_result(None)
            await self._to_user
            self._to_user = self._loop.create_future()
        await self._emit(SessionClosed(reason="finished", by="user"), "user", "human")

    async def helper(self) -> None:
        for turn in range(TURNS):
            await self._to_helper
            self._to_helper = self._loop.create_future()
            emit = self._emit
            action = await emit(ActionTaken(name="look", arguments={"at": turn}), "helper", "agent")
            found = {"found": ["a", "b", "c"], "text": TEXT}
            resolved = ActionResolved(action=action, outcome="ok", observation=found)
            await emit(resolved, "environment", "environment")
            await emit(NoteTaken(text=TEXT[:80]), "helper", "agent")
            content = f"Day {turn}\n{TEXT}"
            snapshot = SnapshotTaken(content=content, digest=digest(content))
            await emit(snapshot, "helper", "agent")
            await emit(MessageSent(text=TEXT[:120]), "helper", "agent")
            self._to_user.set_result(None)


async def simulate_bare(path: Path, sessions: int, at_once: int) -> int:
    """Runs sessions of two actors; gives how many events it has written.

    Args:
        path: where there is no file yet.
        sessions: how many.
        at_once: how many of them run at a time.
    """
    new_tables(path, sessions)
    commit = GroupCommit(path)
    keys = iter(range(1, sessions + 1))

    async def run_some() -> None:
        for key in keys:
            session = _Session(commit, key)
            async with anyio.create_task_group() as actors:
                actors.start_soon(session.user)
                actors.start_soon(session.helper)

    try:
        async with anyio.create_task_group() as tasks:
            for _ in range(at_once):
                tasks.start_soon(run_some)
    finally:
        commit.close()
    return commit.position
