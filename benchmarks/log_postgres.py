"""Measures the cost of a log on PostgreSQL against ``asyncpg`` alone on the same server.

    python -P -m duolog.benchmarks.log_postgres                 # all parts
    python -P -m duolog.benchmarks.log_postgres append --quick  # one of them, a third of the events

It starts a server in a temporary directory, for which it needs the programs of PostgreSQL; ``--url``
measures on another one. Ours and its floor (``floors.postgres``) take turns in one run. Appends name the
version that they expect, and are durable on both sides.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from uuid import uuid4

import anyio
from duolog.benchmarks.floors.postgres import (
    Write,
    append_floor,
    copy_rows,
    insert_rows,
    read_floor,
)
from duolog.benchmarks.measuring import (
    Row,
    Timing,
    add_arguments,
    alternately,
    compare,
    timed,
    write_rows,
)
from duolog.benchmarks.workloads.typical_events import draft, fill
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from duolog.testing.postgres_server import missing, running_postgres

__all__ = ("main",)

_GOAL = 0.6

NewUrl = Callable[[], str]
"""The URL of a log that is not there yet."""


async def append_ours(url: str, writers: int, count: int) -> float:
    """Has tasks append one event at a time, each to its session at the version that it knows; gives the
    mean group size.
    """

    async def write(number: int) -> None:
        session = f"session-{number}"
        for version in range(count // writers):
            await log.append(session, [draft(number + version)], expected_version=version)

    async with open_log(url) as log:
        async with anyio.create_task_group() as tasks:
            for number in range(writers):
                tasks.start_soon(write, number)
        done = log.statistics()
        return done.events / done.groups


def append_rows(new_url: NewUrl, scale: float, repeat: int) -> list[Row]:
    """Durable appends, of bare COPY and of a bare INSERT of many rows, all in groups of the same size.

    The floors get groups as large as ours were in the run before them.
    """
    rows: list[Row] = []
    for writers in (100, 1000):
        count = max(writers, int(20_000 * scale) // writers * writers)
        found: dict[str, list[Timing]] = {"ours": [], "COPY": [], "INSERT": []}
        groups: list[float] = []

        def run_ours(
            writers: int = writers, count: int = count, groups: list[float] = groups
        ) -> int:
            groups.append(asyncio.run(append_ours(new_url(), writers, count)))
            return count

        def run_floor(
            write: Write, writers: int = writers, count: int = count, groups: list[float] = groups
        ) -> int:
            return asyncio.run(append_floor(new_url(), writers, round(groups[-1]), count, write))

        for turn in range(repeat + 1):
            for name, run in (
                ("ours", run_ours),
                ("COPY", partial(run_floor, copy_rows)),
                ("INSERT", partial(run_floor, insert_rows)),
            ):
                timing = timed(run)
                if turn:
                    found[name].append(timing)
        ours = found.pop("ours")
        for name, floor in found.items():
            cpu = statistics.median(b.cpu / a.cpu for a, b in zip(ours, floor, strict=True))
            rows.append(
                compare(
                    f"append to PostgreSQL, {writers} writers : bare {name}",
                    [timing.wall for timing in ours],
                    [timing.wall for timing in floor],
                    goal=_GOAL,
                    about=f"{1 / statistics.median(t.wall for t in ours):,.0f}/s of "
                    f"{1 / statistics.median(t.wall for t in floor):,.0f}/s in groups of "
                    f"{statistics.median(groups):.0f}; CPU of the client alone {cpu:.2f}",
                )
            )
    return rows


async def scan_ours(url: str) -> int:
    """Reads and decodes a whole log, a batch at a time; gives how many records."""
    count = 0

    def consume(records: Sequence[Record]) -> None:
        nonlocal count
        for record in records:
            count += record.event is not None

    async with open_log(url, create=False) as log:
        await log.scan(consume)
    return count


async def iterate_ours(url: str) -> int:
    """The same one record at a time, on the event loop."""
    count = 0
    async with open_log(url, create=False) as log:
        async for record in log.read_all():
            count += record.event is not None
    return count


def read_rows(new_url: NewUrl, scale: float, repeat: int) -> list[Row]:
    """Reading in order and decoding, of a bare cursor and decoding."""
    url = new_url()
    asyncio.run(fill(open_log(url), 1000, int(100_000 * scale)))
    found = alternately(
        {
            "in batches": lambda: asyncio.run(scan_ours(url)),
            "one by one": lambda: asyncio.run(iterate_ours(url)),
            "floor": lambda: asyncio.run(read_floor(url)),
        },
        repeat,
    )
    floor = found["floor"]
    rows = []
    for name in ("in batches", "one by one"):
        cpu = statistics.median(b.cpu / a.cpu for a, b in zip(found[name], floor, strict=True))
        rows.append(
            compare(
                f"read from PostgreSQL {name} : bare cursor",
                [timing.wall for timing in found[name]],
                [timing.wall for timing in floor],
                goal=_GOAL,
                about=f"{1 / statistics.median(t.wall for t in found[name]):,.0f}/s of "
                f"{1 / statistics.median(t.wall for t in floor):,.0f}/s; "
                f"CPU of the client alone {cpu:.2f}",
            )
        )
    return rows


ROWS: dict[str, Callable[[NewUrl, float, int], list[Row]]] = {
    "append": append_rows,
    "read": read_rows,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(ROWS))
    parser.add_argument("--url", help="a database, in which new schemas are made and left")
    add_arguments(parser)
    options = parser.parse_args(arguments)
    for part in options.parts:
        if part not in ROWS:
            parser.error(f"unknown part {part!r}; choose from {', '.join(ROWS)}")
    rows: list[Row] = []
    with ExitStack() as stack:
        if not options.url and (why := missing()):
            rows.append(Row(name="log on PostgreSQL", skipped=why))
        else:
            if options.url:
                new_url: NewUrl = partial(_elsewhere, options.url)
            else:
                new_url = stack.enter_context(running_postgres()).url
            for part in options.parts or ROWS:
                rows += ROWS[part](new_url, 0.3 if options.quick else 1.0, options.repeat)
    write_rows(options.rows, rows)


def _elsewhere(url: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}schema=bench_{uuid4().hex[:12]}"


if __name__ == "__main__":
    main()
