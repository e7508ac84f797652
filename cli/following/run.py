"""Runs ``duolog score --follow`` until it is interrupted: workers, metrics, and their display."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Final, final

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from rich.console import Console

from ...engine.errors import first_error
from ...engine.scorers.driver import ScorerStatistics
from ...engine.text import quantity
from ..output import print_json, say
from ..runtime import requests_to_end, run
from ..scoring import ScoreOptions
from .metrics import metrics_text, parse_address, serve_metrics
from .worker import FAILED, STOPPED, follow

__all__ = ("run_following",)

_AGAIN: Final = 1.0  # seconds until a worker that died is replaced


def run_following(
    options: ScoreOptions, *, workers: int, metrics: str | None, as_json: bool
) -> int:
    """Scores a log as it grows until it is interrupted.

    Args:
        options: what is scored, and how.
        workers: how many processes work here.
        metrics: where to serve metrics; None for nowhere.
        as_json: print their statistics as they change, an object a line.

    Returns:
        The exit code.

    Raises:
        InvalidInput: an option is wrong.
        LogError: the log failed.
    """
    address = None if metrics is None else parse_address(metrics)
    say(f"scoring {options.log} as it grows (end it with Ctrl+C)")
    with ExitStack() as stack:
        display = _Display(as_json=as_json)
        stack.callback(display.close)
        return run(partial(_run, options, workers, address, display))


async def _run(
    options: ScoreOptions, count: int, address: tuple[str, int] | None, display: _Display
) -> int:
    until = anyio.Event()
    code = 0

    def text() -> str:
        return metrics_text(display.workers)

    def on_bound(url: str) -> None:
        say(f"metrics at {url}")

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_on_signal, until)
            if address is not None:
                tasks.start_soon(serve_metrics, address, text, on_bound)
            if count == 1:
                why = await follow(options, lambda one: display.show({0: one}), until=until)
                if why is not None:
                    say(f"duolog: {why}; the same command continues from here")
                    code = STOPPED
            else:
                workers = _Workers(options, count, display.show)
                await workers.run(until)
                code = workers.code
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise first_error(group) from None
    return code


async def _end_on_signal(until: anyio.Event) -> None:
    with requests_to_end() as requests:
        async for _ in requests:
            until.set()


@final
class _Display:
    """Shows the workers on standard error, or prints them for programs.

    Args:
        as_json: print it instead, as an object a line.

    Attributes:
        workers: the statistics of each, by number.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self.workers: dict[int, ScorerStatistics] = {}
        console = Console(stderr=True)
        self._status = console.status("starting") if console.is_terminal and not as_json else None
        self._measured = 0
        if self._status is not None:
            self._status.start()

    def show(self, workers: Mapping[int, ScorerStatistics]) -> None:
        """Shows the statistics of the workers."""
        self.workers = dict(workers)
        whole = _sum_up(self.workers)
        self._measured = max(self._measured, whole.measured)
        if self._as_json:
            print_json({**msgspec.structs.asdict(whole), "workers": len(workers)})
        elif self._status is not None:
            self._status.update(_line(whole))

    def close(self) -> None:
        """Shows no more; says what was done."""
        if self._status is not None:
            self._status.stop()
        say(f"{quantity(self._measured, 'record')} looked at")


def _sum_up(workers: Mapping[int, ScorerStatistics]) -> ScorerStatistics:
    """The workers of this machine as one."""
    each = list(workers.values())
    return ScorerStatistics(
        scorer=each[0].scorer if each else "",
        position=min([one.position for one in each], default=0),
        lag=max([one.lag for one in each], default=0),
        waiting=sum(one.waiting for one in each),
        working=sum(one.working for one in each),
        measured=sum(one.measured for one in each),
        quarantined=sum(one.quarantined for one in each),
        held=sum(one.held for one in each),
        processes=max([one.processes for one in each], default=0),
    )


def _line(whole: ScorerStatistics) -> str:
    parts = [
        f"measured up to position {whole.position:,}",
        f"{quantity(whole.lag, 'position')} behind",
        f"{quantity(whole.waiting, 'session')} waiting",
    ]
    if whole.processes > 1:
        parts.append(f"{whole.processes} processes")
    return ", ".join(parts)


@final
class _Workers:
    """Keeps a number of workers alive.

    Args:
        options: what they score, and how.
        count: how many.
        report: called with the statistics of each, by number, whenever one reports.

    Attributes:
        code: exit code for all, if a worker ended on its own.
    """

    def __init__(
        self,
        options: ScoreOptions,
        count: int,
        report: Callable[[dict[int, ScorerStatistics]], None],
    ) -> None:
        worker = "duolog.cli.following.worker"
        self._command = [sys.executable, "-P", "-m", worker, msgspec.json.encode(options).decode()]
        self._count = count
        self._report = report
        self._standing: dict[int, ScorerStatistics] = {}
        self._ending = anyio.Event()
        self.code = 0

    async def run(self, until: anyio.Event) -> None:
        """Keeps them alive until an event is set; ends them then, and waits for each."""
        async with anyio.create_task_group() as tasks:
            for number in range(self._count):
                tasks.start_soon(self._keep, number)
            tasks.start_soon(self._pass_on, until)
            await self._ending.wait()
            until.set()

    async def _pass_on(self, until: anyio.Event) -> None:
        await until.wait()
        self._ending.set()

    async def _keep(self, number: int) -> None:
        while not self._ending.is_set():
            code = await self._run(number)
            if self._ending.is_set():
                return
            if code in (0, FAILED, STOPPED):  # another one would end likewise
                self.code = code
                self._ending.set()
                return
            say(f"duolog: worker {number} has ended ({_how(code)}); another one takes its place")
            with anyio.move_on_after(_AGAIN):
                await self._ending.wait()

    async def _run(self, number: int) -> int:
        """Runs one worker to its end; its exit code."""
        with anyio.CancelScope(shield=True):  # else nothing would end one that has just begun
            process = await anyio.open_process(
                self._command,
                stdin=subprocess.PIPE,
                stderr=None,
                start_new_session=True,  # an interrupt is for the parent, which then ends it
            )
        async with process, anyio.create_task_group() as tasks:
            tasks.start_soon(self._end, process)
            await self._read(number, process)
            code = await process.wait()
            self._standing.pop(number, None)
            tasks.cancel_scope.cancel()
        return code

    async def _end(self, process: Process) -> None:
        await self._ending.wait()
        if process.stdin is not None:
            await process.stdin.aclose()

    async def _read(self, number: int, process: Process) -> None:
        assert process.stdout is not None
        rest = ""
        async for text in TextReceiveStream(process.stdout):
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                self._standing[number] = msgspec.json.decode(line, type=ScorerStatistics)
                self._report(self._standing)


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
