"""Processes killed in the middle of writing, and acknowledgements that wait for the disk."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from duolog.engine.events import MessageSent
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from duolog.testing.postgres_server import PostgresServer
from forked import Forked

pytestmark = pytest.mark.slow  # these tests start programs

WORKER = Path(__file__).parent / "scripts" / "log_worker.py"
LEAST = 20
"""Appends that each writer may finish before it is killed."""


class Acknowledged(NamedTuple):
    name: str
    position: int
    version: int
    size: int


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A log that is not there yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/a.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.url(chain="yes", partition="1000")


def kill_while_writing(url: str, seed: str, random: Random) -> list[Acknowledged]:
    """Runs a writer, kills it at a random instant after some appends, and gives what it had acknowledged."""
    process = Forked(
        ["-P", "-m", WORKER.stem, "write_for_ever", url, seed],
        environment={**os.environ, "PYTHONPATH": str(WORKER.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    out = process.stdout.fileno()
    told = os.read(out, 65536)  # it has begun to write; or it failed, and told is empty
    while told.count(b"\n") < LEAST and (more := os.read(out, 65536)):  # however slow the machine
        told += more
    end = time.monotonic() + random.random() * 0.12
    while (left := end - time.monotonic()) > 0:  # keeps reading, or a full pipe would stop it
        if select.select([out], [], [], left)[0]:
            told += os.read(out, 65536)
    process.send_signal(signal.SIGKILL)
    told += process.stdout.read()
    errors = process.stderr.read().decode()
    process.stdout.close()
    process.stderr.close()
    assert process.wait() == -signal.SIGKILL, errors
    assert told, errors
    lines = told.decode().splitlines()
    if not told.endswith(b"\n"):
        lines.pop()
    acknowledged = []
    for line in lines:
        name, *numbers = line.split()
        acknowledged.append(Acknowledged(name, *map(int, numbers)))
    return acknowledged


def text(record: Record) -> str:
    assert isinstance(record.event, MessageSent)
    return record.event.text


async def check_after_crash(
    log: Store, acknowledged: list[Acknowledged], before: int
) -> tuple[int, int]:
    """Checks what a killed process has left behind a position; gives the new end, and how many
    appends were in the log though nobody was told."""
    records = [record async for record in log.read_all(after_position=before)]
    positions = [record.position for record in records]
    assert positions == list(range(before + 1, before + 1 + len(records)))
    appends: dict[str, list[Record]] = {}
    for record in records:
        if record.stream == "trace":
            appends.setdefault(text(record).split()[0], []).append(record)
    for name, events in appends.items():  # nothing is half there
        size = int(text(events[0]).split()[1].split("/")[1])
        assert [text(event).split()[1] for event in events] == [
            f"{number}/{size}" for number in range(1, size + 1)
        ], name
        first = events[0]
        assert [e.position for e in events] == list(range(first.position, first.position + size))
        assert [e.version for e in events] == list(range(first.version, first.version + size))
    for told in acknowledged:  # acknowledged events are there, unchanged
        events = appends[told.name]
        assert (events[0].position, events[-1].version, len(events)) == told[1:]
    return positions[-1] if positions else before, len(appends) - len(acknowledged)


async def check_consumer(log: Store) -> None:
    """The consumer has recorded each message up to its checkpoint once, and none beyond."""
    at = await log.checkpoint("copier", "1")
    messages = [record.position async for record in log.read_all() if record.stream == "trace"]
    notes = [int(text(record)) async for record in log.read("notes", stream="copier@1")]
    assert notes == [position for position in messages if position <= at]


async def crash_again_and_again(url: str, rounds: int, seed: int) -> Counter[str]:
    random = Random(seed)
    seen: Counter[str] = Counter()
    end = 0
    for number in range(rounds):
        acknowledged = kill_while_writing(url, f"r{number}", random)
        async with open_log(url, create=False) as log:
            end, untold = await check_after_crash(log, acknowledged, end)
            if number % 10 == 9 or number == rounds - 1:
                await check_consumer(log)
        seen["rounds"] += 1
        seen["acknowledged"] += len(acknowledged)
        seen["untold"] += untold
    async with open_log(url, create=False) as log:
        assert (await log.verify()).problems == ()
    return seen


async def test_killed_a_few_times(url: str, seed: int) -> None:
    rounds = 12 if url.startswith("sqlite") else 4
    seen = await crash_again_and_again(url, rounds, seed)
    assert seen["rounds"] == rounds
    assert seen["acknowledged"] >= LEAST * rounds


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_killed_two_hundred_times(url: str, seed: int) -> None:
    seen = await crash_again_and_again(url, 200, seed)
    assert seen["rounds"] == 200
    assert seen["acknowledged"] > (10_000 if url.startswith("sqlite") else 2_000)
    assert seen["untold"] > 0  # some were killed between the commit and the acknowledgement


def traced(path: Path, durability: str, count: int) -> list[str]:
    """The system calls of a process that appends and acknowledges, in order: ``write`` (to
    the write-ahead log), ``sync`` (of it, completed) and ``ack``."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace")
    trace = path.with_suffix(".trace")
    url = f"sqlite:///{path}?durability={durability}"
    calls = "trace=write,pwrite64,fsync,fdatasync"
    command = [strace, "-f", "-y", "-e", calls, "-o", str(trace)]
    done = subprocess.run(
        [*command, sys.executable, str(WORKER), "acknowledge", url, str(count)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "ptrace" in done.stderr.lower() and done.returncode:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    lines = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    steps: list[str] = []
    unfinished: dict[str, str] = {}
    for line in lines:
        pid, call = line.split(maxsplit=1)
        if call.endswith("<unfinished ...>"):
            unfinished[pid] = call
            call = call if call.startswith("pwrite64") else ""  # a sync counts when it is over
        elif "resumed>" in call:
            call = unfinished.pop(pid, "")
            call = "" if call.startswith("pwrite64") else call
        if re.match(r"pwrite64\(\d+<[^>]*-wal>", call):
            steps.append("write")
        elif re.match(r"(fsync|fdatasync)\(\d+<[^>]*-wal>", call):
            steps.append("sync")
        elif re.match(r'write\(1<[^>]*>, "ACK', call):
            steps.append("ack")
    return steps


def test_an_acknowledgement_waits_for_the_disk(tmp_path: Path) -> None:
    """Killing a process cannot show that: its writes are safe with the system at once."""
    steps = traced(tmp_path / "full.db", "full", 20)
    assert steps.count("ack") == 20
    written = False
    for step in steps:
        if step == "write":
            written = True
        elif step == "sync":
            written = False
        else:
            assert not written, "acknowledged, and not yet on the disk"


def test_normal_durability_does_not_wait(tmp_path: Path) -> None:
    """So the test above would notice: here the acknowledgements come before any sync."""
    steps = traced(tmp_path / "normal.db", "normal", 20)
    assert steps.count("ack") == 20
    first = steps.index("ack")
    assert "sync" not in steps[first : first + 10]
