"""Forks that are asked for in the workbench: set up as ``duolog fork`` does, and run beside it."""

from __future__ import annotations

from typing import Final, final

import anyio
from anyio.abc import TaskGroup

from ..engine.errors import DuologError
from ..engine.log.contract import EventLog
from ..engine.logger import get_logger
from ..engine.session.runner import Session, run_session
from ..interop.workbench.session.forking import ForkRequest
from .continuation import Changes, Continuations, load_records

__all__ = ("BenchForks",)

_AT_ONCE: Final = 2


@final
class BenchForks:
    """Begins forks of the sessions of a log.

    Args:
        log: holds the origins, and takes the forks.
        tasks: the forks run in it.
    """

    def __init__(self, log: EventLog, tasks: TaskGroup) -> None:
        self._log = log
        self._tasks = tasks
        self._running = anyio.CapacityLimiter(_AT_ONCE)

    async def __call__(self, request: ForkRequest, version: int) -> str:
        """Begins a fork; see ``Forker``."""
        records = await load_records(self._log, request.session)
        changes = Changes(agent=request.agent, user=request.user, seed=request.seed)
        forked = await Continuations(self._log).make(records, version, changes)
        failures: list[DuologError] = []
        with anyio.CancelScope() as waiting:
            self._tasks.start_soon(self._run, forked, failures, waiting)
            async with self._log.subscribe(session=forked.id) as begun:
                await begun.__anext__()  # it can be looked at now
        if failures:
            raise failures[0]
        return forked.id

    async def _run(
        self, forked: Session, failures: list[DuologError], waiting: anyio.CancelScope
    ) -> None:
        """Runs a fork; whoever waits for its beginning waits no longer than that."""
        async with self._running:
            try:
                await run_session(self._log, forked)
            except DuologError as error:
                failures.append(error)
                get_logger("workbench").error(
                    "a fork failed", session=forked.id, error=f"{type(error).__name__}: {error}"
                )
            waiting.cancel()
