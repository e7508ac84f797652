"""``duolog run`` by several programs into one log, of which some are killed at any instant."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import anyio
import pytest
from duolog.engine.log.leases import Leasing
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from forked import Forked

PROGRAM = Path(__file__).parent / "scripts" / "duolog_elsewhere.py"

LONG = 5400
"""Seconds that a busy machine may take for all sessions of a long run."""

Content = dict[tuple[str, str], list[tuple[object, ...]]]


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shared.db?durability=normal"
    found: str = request.getfixturevalue("postgres").url(durability="normal")
    return found


class Machine:
    """A program that runs sessions, and is restarted if it was killed.

    Args:
        arguments: after ``duolog``.
        errors: file for its standard error.
        skew: by how many seconds its clock is wrong.
        lasts: for how many seconds its leases last.
    """

    def __init__(self, arguments: Sequence[str], errors: Path, skew: float, lasts: float) -> None:
        times = (str(skew), str(lasts))
        self._command = ["-P", "-m", PROGRAM.stem, *times, *arguments]
        self._errors = errors
        self.kills = 0
        self.start()

    def start(self) -> None:
        """Starts it."""
        with self._errors.open("ab") as errors:
            environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parent)}
            self.process = Forked(self._command, environment=environment, stderr=errors.fileno())

    def kill(self) -> None:
        """Kills it, as a loss of power does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    @property
    def said(self) -> str:
        """Its standard error so far."""
        return self._errors.read_text()


@contextmanager
def machines(
    count: int, log: str, tmp_path: Path, *, sessions: int, lasts: float
) -> Iterator[list[Machine]]:
    """Programs that run the same sessions; every second one's clock is an hour ahead."""
    run = ["run", "travel", "--agents", "two-stage", "--concurrency", "4", "--log", log]
    started = [
        Machine(
            [*run, "--sessions", str(sessions)],
            tmp_path / f"errors-{number}",
            3600.0 * (number % 2),
            lasts,
        )
        for number in range(count)
    ]
    try:
        yield started
    finally:
        for machine in started:
            machine.process.kill()
            machine.process.wait()


def content(where: str) -> Content:
    """The contents of a log by stream, without the positions."""

    async def read() -> Content:
        found: Content = {}
        async with open_log(where, create=False) as log:
            async for record in log.read_all():
                found.setdefault((record.session, record.stream), []).append(row(record))
            assert not (await log.verify()).problems
            assert all([summary.state != "open" async for summary in log.sessions()])
        return found

    return anyio.run(read)


def row(record: Record) -> tuple[object, ...]:
    envelope = (record.version, record.id, record.kind, record.schema, record.time, record.actor)
    return (*envelope, record.role, record.cause, record.seen, record.body)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Content]:
    """The records of one undisturbed program, by the number of sessions."""
    path = tmp_path_factory.mktemp("alone")

    @cache
    def run(sessions: int) -> Content:
        log = f"{path}/{sessions}.db"
        with machines(1, log, path, sessions=sessions, lasts=30.0) as [machine]:
            assert machine.process.wait(LONG) == 0, machine.said
        return content(log)

    return run


@pytest.mark.slow
def test_programs_share_the_work_and_one_that_is_killed_leaves_no_trace(
    shared: str, tmp_path: Path, undisturbed: Callable[[int], Content]
) -> None:
    """The clock of every second one is an hour ahead, which changes nothing."""
    sessions = 12
    with machines(2, shared, tmp_path, sessions=sessions, lasts=2.0) as started:
        wait_until_at_work(started[0], shared)
        started[0].kill()
        for machine in started[1:]:
            assert machine.process.wait(LONG) == 0, machine.said
    assert content(shared) == undisturbed(sessions)
    for machine in started[1:]:
        assert f"{sessions} sessions: " in machine.said


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_a_thousand_sessions_on_four_machines_of_which_one_is_killed_every_two_seconds(
    shared: str, tmp_path: Path, undisturbed: Callable[[int], Content]
) -> None:
    chance = random.Random(7)
    sessions = 1000
    with machines(4, shared, tmp_path, sessions=sessions, lasts=30.0) as started:
        until = time.monotonic() + 120.0
        while time.monotonic() < until and any(m.process.poll() is None for m in started):
            time.sleep(2.0)
            machine = chance.choice(started)
            if machine.process.poll() is None:
                machine.kill()
                machine.start()
        for machine in started:
            assert machine.process.wait(LONG) == 0, machine.said
    kills = sum(machine.kills for machine in started)
    print(f"{kills} kills", *(machine.said for machine in started), sep="\n")  # noqa: T201
    assert content(shared) == undisturbed(sessions)
    for machine in started:  # none returned before all was done
        assert machine.said.splitlines()[-1].startswith(f"{sessions:,} sessions: ")


def wait_until_at_work(machine: Machine, where: str) -> None:
    """Waits until a program has a session under way, or has ended: others may have been faster."""
    ours = f"/{machine.process.pid}/"

    async def wait() -> None:
        with anyio.fail_after(300):
            async with open_log(where) as log:
                assert isinstance(log, Leasing)
                leases = log.leases()
                while machine.process.poll() is None and not any(  # noqa: ASYNC110
                    ours in who for who in (await leases.holders()).values()
                ):
                    await anyio.sleep(0.01)

    anyio.run(wait)
