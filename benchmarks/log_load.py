"""A log under load: how soon others see appended events, the cost of an idle follower, memory."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import anyio
from duolog.benchmarks.measuring import peak_memory
from duolog.benchmarks.workloads.typical_events import draft
from duolog.engine.log.sqlite.file import parse
from duolog.engine.log.sqlite.log import sqlite_log

__all__ = ("bench_idle", "bench_latency", "bench_memory", "write_and_read")


def fresh(directory: Path) -> Path:
    """A path without a log."""
    for old in directory.glob("load.db*"):
        old.unlink()
    return directory / "load.db"


def show(name: str, value: str, target: str = "") -> None:
    """Prints a line of the result."""
    print(f"  {name:<58} {value:>16}   {target}", flush=True)


async def latencies(path: Path, rate: int, subscribers: int, seconds: float) -> list[float]:
    """From an append's acknowledgement to each subscriber, in seconds."""
    writers = 50
    acknowledged: dict[int, float] = {}
    received: list[tuple[int, float]] = []
    total = int(rate * seconds) // writers * writers

    async def write(number: int) -> None:
        begin = time.perf_counter()
        for index in range(total // writers):
            due = begin + (index + number / writers) * writers / rate
            await anyio.sleep(max(0.0, due - time.perf_counter()))
            [record] = await log.append(f"session-{number}", [draft(index)])
            acknowledged[record.position] = time.perf_counter()

    async def follow() -> None:
        left = total
        async with log.subscribe() as subscription:
            async for record in subscription:
                received.append((record.position, time.perf_counter()))
                left -= 1
                if not left:
                    return

    async with sqlite_log(parse(str(path))) as log, anyio.create_task_group() as tasks:
        for _ in range(subscribers):
            tasks.start_soon(follow)
        await anyio.sleep(0.05)
        for number in range(writers):
            tasks.start_soon(write, number)
    return [max(0.0, at - acknowledged[position]) for position, at in received]


def bench_latency(directory: Path, scale: float) -> None:
    """From acknowledged to subscriber, in the same process."""
    print("from append acknowledged to subscriber, 5,000 events/s, 10 subscribers")
    runs = []
    for _ in range(3):
        gc.collect()
        runs.append(sorted(asyncio.run(latencies(fresh(directory), 5000, 10, 10 * scale))))
    for name, share, target in (("p50", 0.5, "under 1 ms"), ("p99", 0.99, "under 10 ms")):
        value = statistics.median(run[int(len(run) * share)] for run in runs)
        show(name, f"{value * 1000:.2f} ms", target)


async def write_and_read(path: Path, count: int) -> dict[str, float]:
    """Writes and reads many events; gives memory in MB as it goes, and the size of the bodies."""
    marks = {"start": peak_memory()}
    written = 0
    async with sqlite_log(parse(f"sqlite:///{path}?durability=normal")) as log:

        async def write(number: int) -> None:
            nonlocal written
            for turn in range(count // 100 // 50):
                await log.append(f"session-{number}-{turn // 10}", [draft(i) for i in range(50)])
                written += 50
                if written == count // 4:
                    marks["a quarter written"] = peak_memory()

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(write, number)
        marks["all written"] = peak_memory()
        body = 0
        async for record in log.read_all():
            body += len(record.body or b"")
        marks["all read"] = peak_memory()
    marks["bodies"] = body
    return marks


def bench_memory(directory: Path, scale: float) -> None:
    """Peak memory over many events, in a separate process, and the size of the file."""
    count = int(2_000_000 * scale)
    path = fresh(directory)
    print(f"memory and size, {count:,} events written and read")
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "duolog.benchmarks.log",
            "--inner-memory",
            str(path),
            str(count),
        ],
        stdout=subprocess.PIPE,
        check=True,
    )
    marks = json.loads(done.stdout)
    bodies = marks.pop("bodies")
    size = path.stat().st_size / bodies
    for name, value in marks.items():
        show(f"peak memory, {name}", f"{value:.0f} MB")
    show("file size : encoded bodies", f"{size:.2f}", "at most 1.3")


async def idle(path: Path, seconds: float) -> tuple[float, list[float]]:
    """Share of a core that an idle follower takes, and how soon it sees events that another process
    appends (here another connection: the follower cannot tell the two apart).
    """
    async with sqlite_log(parse(str(path))) as log, sqlite_log(parse(str(path))) as other:
        await log.append("s", [draft(0)])
        async with log.subscribe() as subscription:
            await anext(subscription)
            cpu, wall = time.process_time(), time.perf_counter()
            await anyio.sleep(seconds)
            share = (time.process_time() - cpu) / (time.perf_counter() - wall)
            delays = []
            for number in range(100):
                await anyio.sleep(0.003 * (number % 7))
                await other.append("s", [draft(number)])
                done = time.perf_counter()
                await anext(subscription)
                delays.append(time.perf_counter() - done)
    return share, delays


def bench_idle(directory: Path, scale: float) -> None:
    """Measures how much it costs to notice other processes, and how long it takes."""
    print("other processes on the same file")
    share, delays = asyncio.run(idle(fresh(directory), max(2.0, 10 * scale)))
    show("processor of an idle follower", f"{share * 100:.2f} %", "under 1 % of a core")
    show("seen after, median", f"{statistics.median(delays) * 1000:.0f} ms")
    show("seen after, at most", f"{max(delays) * 1000:.0f} ms", "under 50 ms")
