"""Runs ``duolog score --follow`` until it is interrupted: workers, metrics, and what is shown of them."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import final

import anyio
import msgspec
from rich.console import Console

from ...engine.session.cast import first_error
from ...engine.text import quantity
from ...scoring.following import FollowingStatistics
from ..output import print_json, say
from ..runtime import run
from .metrics import metrics_text, parse_address, serve_metrics
from .options import FollowOptions
from .process import follow
from .worker import STOPPED
from .workers import Workers

__all__ = ("run_following",)


def run_following(
    options: FollowOptions, *, workers: int, metrics: str | None, as_json: bool
) -> int:
    """Scores a log as it grows until it is interrupted.

    Args:
        options: what is scored, and how.
        workers: how many processes work here.
        metrics: where to serve metrics; None for nowhere.
        as_json: print how they stand as it changes, an object a line.

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
    options: FollowOptions, count: int, address: tuple[str, int] | None, display: _Display
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
                workers = Workers(options, count, display.show)
                await workers.run(until)
                code = workers.code
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise first_error(group) from None
    return code


async def _end_on_signal(until: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            until.set()


@final
class _Display:
    """What is shown of the workers, on the standard error; or printed, for programs.

    Args:
        as_json: print it instead, as an object a line.

    Attributes:
        workers: how each stands, by number.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self.workers: dict[int, FollowingStatistics] = {}
        console = Console(stderr=True)
        self._status = console.status("starting") if console.is_terminal and not as_json else None
        self._measured = 0
        if self._status is not None:
            self._status.start()

    def show(self, workers: Mapping[int, FollowingStatistics]) -> None:
        """Shows how the workers stand."""
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


def _sum_up(workers: Mapping[int, FollowingStatistics]) -> FollowingStatistics:
    """The workers of this machine as one."""
    each = list(workers.values())
    return FollowingStatistics(
        position=min([one.position for one in each], default=0),
        lag=max([one.lag for one in each], default=0),
        waiting=sum(one.waiting for one in each),
        working=sum(one.working for one in each),
        measured=sum(one.measured for one in each),
        shards=sum(one.shards for one in each),
        processes=max([one.processes for one in each], default=0),
    )


def _line(whole: FollowingStatistics) -> str:
    parts = [
        f"measured up to position {whole.position:,}",
        f"{quantity(whole.lag, 'position')} behind",
        f"{quantity(whole.waiting, 'session')} waiting",
    ]
    if whole.processes > 1:
        parts.append(f"{whole.processes} processes")
    return ", ".join(parts)
