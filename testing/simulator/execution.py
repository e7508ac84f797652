"""Runs a scenario against a log, and checks its promises: after each operation, and after each end of
a process, of whatever kind.
"""

from __future__ import annotations

import asyncio
import inspect
import shutil
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias, cast, final

from ...engine.errors import CodecError, NotALog
from ...engine.log.contract import EventLog, Store
from ...engine.records import Draft, Redact
from .drafts import cleaned
from .drills.all import drill_of
from .drills.ground import Ground
from .faults import Ended, WildError, failure_text
from .loop import SimulatedLoop, bury
from .machine.clock import Wall
from .machine.disk import DISK_FAULTS, SimulatedDisk
from .model import Model
from .reading import damage
from .scenario import Operation, Outcome, Scenario
from .workload import OTHER, Workload

__all__ = ("Begin", "Execution", "Machine", "OpenLog")

OpenLog: TypeAlias = Callable[[Path, Redact], EventLog]
"""Gives a log on a file, not entered yet; each call another one on the same contents."""


class Machine(NamedTuple):
    """The parts of a process other than its event loop.

    Attributes:
        end: ends its threads, by force.
        pause: stops the threads of the process of a number for some seconds; whether it has any.
        wait: lets others go on for some seconds, if it is called in a thread; whether it is.
    """

    end: Callable[[], None] = lambda: None
    pause: Callable[[int, float], bool] = lambda process, seconds: False
    wait: Callable[[float], bool] = lambda seconds: False


Begin: TypeAlias = Callable[[SimulatedLoop, SimulatedDisk, Random], Machine]
"""Called when a process begins, with its loop and its disk."""


@final
class Execution:
    """One run of a scenario.

    Args:
        scenario: what to do.
        directory: a new one, for the files of the run; removed when it is over.
        open_log: opens its log.
        begin: prepares each of its processes.
        walls: gets the clock of the run, where clocks are simulated.
        drills: whether some runs end with a drill on new logs.
    """

    def __init__(
        self,
        scenario: Scenario,
        directory: Path,
        open_log: OpenLog,
        begin: Begin,
        walls: list[Wall] | None = None,
        *,
        drills: bool = False,
    ) -> None:
        self._drills = drills
        self._scenario = scenario
        self._directory = directory
        self._open_log = open_log
        self._begin = begin
        self._random = Random(f"chance {scenario.seed}")
        self._steps = 0
        self._calls = 0
        self._happened: list[str] = []
        self._model = Model()
        self._life = 0
        self._in_files = scenario.store != "memory"
        faults = scenario.faults
        self._cancels = {each.at: each.draw for each in faults if each.kind == "cancel"}
        self._kills = {each.at for each in faults if each.kind == "kill"}
        self._hooks = {each.at: each.draw for each in faults if each.kind == "hook"}
        self._of_disk = {each.at: each.kind for each in faults if each.kind in DISK_FAULTS}
        self._pauses = {each.at: each.draw for each in faults if each.kind == "pause"}
        self._points = {*self._cancels, *self._kills, *self._pauses}
        self._machine = Machine()
        jumps = {each.at: each.draw % 9 - 4 for each in faults if each.kind == "clock"}
        self._wall = Wall(jumps, {OTHER: (scenario.seed % 7 - 3) * 1000.0})
        if walls is not None:
            walls[:] = [self._wall]
        self._disk = self._new_disk()
        self._workload: Workload | None = None

    def run(self) -> Outcome:
        """Runs it to its end, or to the first broken promise."""
        failure = ""
        try:
            for operations in self._lives():
                self._live(operations)
            self._faultless()
            self._live(None)
            self._damage()
            self._drill()
        except (Exception, WildError, asyncio.CancelledError) as error:  # noqa: BLE001 (the find)
            failure = "" if self._is_named(error) else failure_text(error)
        finally:
            self._happened += ["clock"] * self._wall.jumped
            if self._in_files:
                shutil.rmtree(self._directory, ignore_errors=True)
        return Outcome(failure, tuple(self._happened), self._steps)

    def _is_named(self, error: BaseException) -> bool:
        """Whether the damage that a lying disk has done is called so, here or by ``verify``."""
        if not self._model.lost:
            return False
        if isinstance(error, (NotALog, CodecError)):
            return True
        if not isinstance(error, AssertionError):
            return False
        self._faultless()
        named: list[str] = []

        async def verify(workload: Workload) -> None:
            log = self._open_log(self._disk.directory / "log.db", self._redact)
            try:
                named.extend(await workload.problems(log))
            except (NotALog, CodecError) as damage:
                named.append(str(damage))

        self._process(verify)
        return bool(named)

    def _lives(self) -> Iterator[list[Operation]]:
        """The operations between two restarts."""
        life: list[Operation] = []
        for operation in self._scenario.operations:
            if not self._in_files and operation.kind in ("restart", "other"):
                continue
            if operation.kind == "restart":
                yield life
                life = []
            else:
                life.append(operation)
        yield life

    def _faultless(self) -> None:
        self._cancels, self._hooks, self._of_disk, self._pauses = {}, {}, {}, {}
        self._kills, self._points = set(), set()
        self._disk.stop_failing()

    def _live(self, operations: list[Operation] | None) -> None:
        """One process: from opening a log to closing it, or to its violent end."""
        if operations is None and not self._in_files:
            return
        ended = self._process(
            lambda workload: workload.live(
                lambda: self._open_log(self._disk.directory / "log.db", self._redact), operations
            )
        )
        if ended:
            self._workload, self._machine = None, Machine()
            bury()

    def _damage(self) -> None:
        """Damages the file of some runs after the log was closed: the damage must be found."""
        if not self._in_files or self._model.lost or self._scenario.seed % 3:
            return
        path = self._disk.directory / "log.db"
        what = damage(path, self._random)
        if what:
            opening = partial(self._open_log, path, self._redact)
            self._process(lambda workload: workload.find_damage(opening(), what))

    def _drill(self) -> None:
        """Ends every second run with a drill on new logs: all of its results are known."""
        scenario = self._scenario
        drill = drill_of(scenario.store, scenario.seed) if self._drills else None
        if drill is None or self._model.lost:
            return
        directory = self._disk.directory if self._in_files else None
        ground = Ground(self._opened, directory, scenario.seed, self._disk.fail)
        self._process(lambda _: drill(ground))

    def _opened(self, name: str) -> Store:
        return cast(Store, self._open_log(self._disk.directory / f"{name}.db", cleaned))

    def _process(self, work: Callable[[Workload], Coroutine[object, object, None]]) -> bool:
        """Runs a process; whether it ended by force."""
        loop = SimulatedLoop(self._before_step)  # type: ignore[abstract]
        disk = self._disk
        self._machine = machine = self._begin(loop, disk, self._random)
        self._workload = workload = Workload(
            self._model,
            lambda: bool(disk.happened or disk.lost_power),
            lambda: not (disk.happened or disk.slowed or disk.lost_power),
            self._random,
            shared=self._in_files,
        )
        main = work(workload)
        ended = False
        try:
            loop.run_until_complete(main)
        except Ended:
            ended = True
        except BaseException:
            if not disk.lost_power:
                raise
            ended = True
        finally:
            self._steps += loop.steps
            if inspect.getcoroutinestate(main) == inspect.CORO_CREATED:
                main.close()
            loop.abandon()
            if ended:
                disk.end()
            machine.end()
            loop.close()
        if ended:
            self._model.end_of_process()
        self._happened += disk.happened + disk.slowed
        self._model.lost = self._model.lost or (disk.lied and disk.lost_power)
        if (loop.errors or workload.errors) and not ended:
            raise AssertionError(f"nobody caught this: {[*loop.errors, *workload.errors]}")
        if not self._in_files:
            return ended
        if ended:
            before, self._disk = self._disk, self._new_disk()
            before.restore(self._disk.directory)
        else:
            self._disk = disk.reopened()
        return ended

    def _new_disk(self) -> SimulatedDisk:
        self._life += 1
        directory = self._directory / str(self._life)
        if self._life == 1 and self._in_files:
            directory.mkdir(parents=True)
        return SimulatedDisk(directory, self._of_disk, self._random, self._wait)

    def _wait(self, seconds: float) -> bool:
        return self._machine.wait(seconds)

    def _before_step(self, step: int) -> None:
        step += self._steps
        if step not in self._points and not self._disk.alarm:
            return
        if self._disk.lost_power:
            raise Ended
        if self._disk.sync_failed:
            # If the process is restarted because of it, the next one finds the unsynced writes.
            self._disk.sync_failed = self._disk.alarm = False
            if self._of_disk and self._random.random() < 0.7:
                at = step + self._random.randrange(12)
                self._kills.add(at)
                self._points.add(at)
        if step in self._kills:
            self._happened.append("kill")
            raise Ended
        draw = self._pauses.get(step)
        if draw is not None and self._machine.pause(draw % 2, 10.0 ** (draw % 5 - 2)):
            # Others wait for what it holds, and may find that it does so for too long.
            self._disk.happened.append("pause")
        draw = self._cancels.get(step)
        if draw is not None and self._workload is not None and self._workload.cancel(draw):
            self._happened.append("cancel")

    def _redact(self, draft: Draft) -> Draft:
        self._calls += 1
        self._model.cleans = True
        draw = self._hooks.get(self._calls)
        if draw is None:
            return cleaned(draft)
        self._happened.append("hook")
        raise (ValueError("hook"), asyncio.CancelledError("hook"), WildError("hook"))[draw % 3]
