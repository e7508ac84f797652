"""Another process at work on a log file; its first argument says what it does. Run by the tests."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import Sequence
from random import Random

import anyio.to_thread
from duolog.engine.errors import LogError, VersionConflict
from duolog.engine.events import MessageSent
from duolog.engine.log.consumer import run_consumer
from duolog.engine.log.follower import Output
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft, Record

__all__ = ()


def say(line: str) -> None:
    """Tells the test something at once; a pipe takes a short line whole."""
    os.write(1, line.encode() + b"\n")


def drafts(name: str, size: int) -> list[Draft]:
    """An append of ``size`` messages, each of which says whose it is and how many there are."""
    return [
        Draft(
            MessageSent(text=f"{name} {number}/{size} {'x' * (number * 97 % 900)}"),
            "w",
            "agent",
            1.0,
        )
        for number in range(1, size + 1)
    ]


class Copier:
    """A consumer that records, for each message, that it was seen."""

    name = "copier"
    version = "1"

    async def consume(self, records: Sequence[Record]) -> Sequence[Output]:
        """Gives one note for each message; none for its own notes."""
        seen = [record for record in records if record.stream == "trace"]
        notes = [
            Draft(MessageSent(text=f"{record.position}"), "copier", "scorer", 1.0)
            for record in seen
        ]
        return [Output("notes", "copier@1", notes)]


async def until_error(url: str) -> None:
    """Appends until that fails, says how many were acknowledged and what failed, and is gone."""
    async with open_log(url) as log:
        count = 0
        try:
            while True:
                await log.append("s", drafts("x", 1))
                count += 1
        except LogError as error:
            say(f"{count}\n{type(error).__name__}")
            os._exit(0)


async def write_for_ever(url: str, seed: str) -> None:
    """Appends in many tasks, says what was acknowledged, and copies; until it is killed."""
    random = Random(seed)

    async def write(number: int) -> None:
        count = 0
        while True:
            count += 1
            size = random.choice((1, 1, 2, 5, 13))
            name = f"{seed}-{number}-{count}"
            records = await log.append(f"s{number % 5}", drafts(name, size))
            say(f"{name} {records[0].position} {records[-1].version} {size}")

    async with open_log(url) as log, anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(write, number)
        tasks.start_soon(run_consumer, log, Copier())


async def write_some(url: str, name: str, count: str) -> None:
    """Appends to a session shared with others, at the version it sees, until it has ``count``."""
    async with open_log(url) as log:
        say("ready")
        won = 0
        version = 0
        while won < int(count):
            try:
                await log.append("shared", drafts(f"{name}-{won}", 1), expected_version=version)
            except VersionConflict as conflict:
                version = conflict.actual
                continue
            version += 1
            won += 1
            await log.append(f"own-{name}", drafts(f"{name}-{won}", 2))
    say("done")


async def acknowledge(url: str, count: str) -> None:
    """Appends one by one, and says so after each."""
    async with open_log(url) as log:
        say("BEGIN")
        for number in range(int(count)):
            await log.append("s", drafts(f"a{number}", 1))
            say(f"ACK {number}")


async def echo(url: str) -> None:
    """Appends an event for each line on its standard input."""
    async with open_log(url) as log:
        say("ready")
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            await log.append("echo", drafts(line.strip(), 1))


async def hold(url: str) -> None:
    """Holds a read transaction open until its standard input ends."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM events").fetchall()
    say("ready")
    await anyio.to_thread.run_sync(sys.stdin.read)
    connection.close()


if __name__ == "__main__":
    known = (until_error, write_for_ever, write_some, acknowledge, echo, hold)
    jobs = {job.__name__: job for job in known}
    asyncio.run(jobs[sys.argv[1]](*sys.argv[2:]))
