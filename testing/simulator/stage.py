"""Where runs take place: a process prepared for them, and the ways to open the logs of each store."""

from __future__ import annotations

import gc
import logging
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import final

from ...engine.log.contract import EventLog
from ...engine.log.memory import MemoryLog
from ...engine.log.sqlite.file import parse
from ...engine.log.sqlite.log import sqlite_log
from ...engine.records import Redact
from .execution import Execution, Machine, OpenLog
from .loop import SimulatedLoop, no_worker_threads
from .machine.clock import Wall, simulated_clock
from .machine.disk import SimulatedDisk
from .product import run_product_scenario
from .scenario import Outcome, Scenario
from .sessions import run_session_scenario
from .watchdog import Watch, watchdog

__all__ = ("Stage", "prepared")


@final
class Stage:
    """Runs scenarios, one after the other.

    Args:
        directory: for the files of the runs.
        disk: gets the disk of the run that is under way.
        open_log: opens logs of another store, which then has scenarios for logs in memory.
        walls: gets the clock of the run that is under way.

    Attributes:
        watch: watches over its runs, where somebody looks at it.
    """

    def __init__(
        self,
        directory: Path,
        disk: list[SimulatedDisk],
        open_log: OpenLog | None = None,
        walls: list[Wall] | None = None,
    ) -> None:
        self._walls = walls
        self._open_log = open_log
        self._directory = directory
        self._disk = disk
        self._runs = 0
        self.watch = Watch()

    def run(self, scenario: Scenario) -> Outcome:
        """Runs a scenario."""
        self._runs += 1
        directory = self._directory / str(self._runs)
        if self._open_log is not None:
            return Execution(scenario, directory, self._open_log, _no_threads, self._walls).run()
        if scenario.store == "session":
            return run_session_scenario(scenario)
        if scenario.store == "product":
            return run_product_scenario(scenario)
        if scenario.store == "network":
            from .network.exchange import run_network_scenario

            return run_network_scenario(scenario)
        if scenario.store == "memory":
            run = Execution(scenario, directory, _memory, _no_threads, self._walls, drills=True)
            return run.run()
        chained = scenario.seed % 4 == 0
        opening = partial(_sqlite, chained)
        return Execution(scenario, directory, opening, self._begin, self._walls, drills=True).run()

    def _begin(self, loop: SimulatedLoop, disk: SimulatedDisk, random: Random) -> Machine:
        from .machine.threads import Threads, wait_here

        self._disk[:] = [disk]
        threads = Threads(loop, random)
        threads.use()
        return Machine(threads.kill, threads.pause, wait_here)


def _memory(_path: Path, redact: Redact) -> EventLog:
    return MemoryLog(redact=redact)


def _sqlite(chained: bool, path: Path, redact: Redact) -> EventLog:
    options = "?chain=yes" if chained else ""
    return sqlite_log(parse(f"sqlite:///{path}{options}"), redact=redact)


def _no_threads(_loop: SimulatedLoop, _disk: SimulatedDisk, _random: Random) -> Machine:
    return Machine()


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences warnings of unfinished coroutines and open logs, which killed processes leave behind,
    and reports of failing plug-ins, which are expected here.
    """
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    # Imported modules stay; the little that a run leaves is collected before the next.
    gc.collect()
    frozen = gc.get_freeze_count() > 0
    gc.freeze()
    own, server = logging.getLogger("duolog"), logging.getLogger("uvicorn.error")
    level, disabled = own.level, server.disabled
    own.setLevel(logging.CRITICAL + 1)
    server.disabled = True  # its level is set by whoever starts a server
    try:
        yield
    finally:
        if (
            not frozen
        ):  # what the process froze stays so: each later collection would look through it
            gc.unfreeze()
        gc.collect()
        own.setLevel(level)
        server.disabled = disabled
        sys.unraisablehook = before


@contextmanager
def prepared() -> Iterator[Stage]:
    """A stage in this process, whose own work with SQLite logs has to wait meanwhile.

    Raises:
        UnsupportedSqlite: this Python's SQLite cannot be reached.
        ImportError: greenlet is not installed.
    """
    from .limits import small_limits
    from .machine.threads import simulated_threads
    from .machine.vfs import intercepted

    disk: list[SimulatedDisk] = []
    memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="duolog-", dir=memory if memory.is_dir() else None))
    try:
        with (
            _quiet(),
            small_limits(),
            simulated_clock() as walls,
            no_worker_threads(),
            simulated_threads(),
            intercepted(lambda: disk[0] if disk else None),
            watchdog() as watch,
        ):
            stage = Stage(directory, disk, walls=walls)
            stage.watch = watch
            yield stage
    finally:
        shutil.rmtree(directory, ignore_errors=True)
