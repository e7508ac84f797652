"""Runs scenarios against a real PostgreSQL server, whose backends are killed, and which is killed itself.

Time is real here: a seed repeats the operations, but not the order in which the server runs them. The
checks are those of simulated logs.

    python -P -m duolog.testing.simulator.postgres --runs 20
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import final

import anyio
import anyio.to_thread

from ...engine.log.contract import EventLog
from ...engine.log.open import open_log
from ...engine.records import Draft
from ..postgres_server import PostgresServer, missing, running_postgres
from .campaign import described
from .drafts import cleaned
from .faults import failure_text
from .limits import small_limits
from .model import Model
from .scenario import Operation, Outcome, Scenario, draw
from .workload import Workload

__all__ = ("main", "run_on_postgres")

_LATEST = 120.0  # seconds after which a delivery hangs


def run_on_postgres(scenario: Scenario, server: PostgresServer) -> Outcome:
    """Runs a scenario on a new log of a server."""
    run = _Run(scenario, server)
    try:
        with small_limits():
            asyncio.run(run.main())
    except Exception as error:  # noqa: BLE001 (the find)
        return Outcome(failure_text(error), tuple(run.happened), 0)
    return Outcome("", tuple(run.happened), 0)


@final
class _Run:
    def __init__(self, scenario: Scenario, server: PostgresServer) -> None:
        self._scenario = scenario
        self._server = server
        self._url = server.url(partition="100")
        self._random = Random(f"chance {scenario.seed}")
        self._model = Model()
        self._faults = {each.at: each for each in scenario.faults}
        self._drafts = 0
        self._failing = False
        self._restarting = anyio.Lock()
        self._workload: Workload | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.happened: list[str] = []

    async def main(self) -> None:
        """Runs its operations, and at last looks at the log with a server that works."""
        life: list[Operation] = []
        for operation in self._scenario.operations:
            if operation.kind == "restart":
                await self._live(life)
                life = []
            elif operation.kind not in ("fork", "vacuum"):
                life.append(operation)
        await self._live(life)
        self._faults = {}
        await self._live(None)

    async def _live(self, operations: Sequence[Operation] | None) -> None:
        self._failing = False
        self._workload = workload = Workload(
            self._model,
            lambda: self._failing,
            lambda: not self._failing,
            self._random,
            shared=True,
            latest=_LATEST,
            virtual=False,
        )
        try:
            await workload.live(self._open, operations)
        finally:
            for task in self._tasks:
                await asyncio.wait([task])
        for task in self._tasks:
            task.result()
        self._tasks = []
        self._model.end_of_process()

    def _open(self) -> EventLog:
        return open_log(self._url, redact=self._count)

    def _count(self, draft: Draft) -> Draft:
        self._drafts += 1
        self._model.cleans = True
        fault = self._faults.pop(self._drafts, None)
        if fault is None:
            return cleaned(draft)
        self.happened.append(fault.kind)
        if fault.kind == "cancel":
            if self._workload is not None:
                self._workload.cancel(fault.draw)
            return cleaned(draft)
        self._failing = True
        work = self._kill_backends(fault.draw) if fault.kind == "backend" else self._kill_server()
        self._tasks.append(asyncio.get_running_loop().create_task(work))
        return cleaned(draft)

    async def _kill_backends(self, chance: int) -> None:
        import asyncpg  # an extra

        try:
            connection = await asyncpg.connect(self._url.partition("?")[0])
        except (OSError, asyncpg.PostgresError):
            return  # the server is away
        try:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE "
                "backend_type = 'client backend' AND pid <> pg_backend_pid() "
                f"ORDER BY pid LIMIT {1 + chance % 4}) AS backends"
            )
        except (
            OSError,
            asyncpg.PostgresError,
            asyncpg.InterfaceError,
            asyncpg.InternalClientError,
        ):
            return  # this connection was killed, too
        finally:
            connection.terminate()

    async def _kill_server(self) -> None:
        async with self._restarting:
            await anyio.to_thread.run_sync(partial(self._server.stop, "immediate"))
            await anyio.to_thread.run_sync(self._server.start)


def main() -> int:
    """Runs seeds, and prints those that fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    if why := missing():
        sys.stderr.write(f"error: {why}\n")
        return 2
    happened: Counter[str] = Counter()
    failed = 0
    # Lost connections are reported as warnings, and there are many here.
    logging.getLogger("duolog").setLevel(logging.CRITICAL)
    with running_postgres(durable=False) as server:
        for seed in range(options.first, options.first + options.runs):
            scenario = draw("postgres", seed)
            outcome = run_on_postgres(scenario, server)
            happened.update(outcome.happened)
            if outcome.failure:
                failed += 1
                sys.stdout.write(f"seed {seed}: {outcome.failure}\n{described(scenario)}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{options.runs} runs, {failed} failed; {dict(happened)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
