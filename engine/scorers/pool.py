"""Runs scorers over a log as it grows, whoever writes it: each in its own time, none in the way.

Each scorer follows the log on its own, so that a slow one holds nobody up but itself. Nothing is
dropped where a scorer does not keep up: it reads on from the log. Measurements go into the scorer's
own streams under identities that depend on nothing but what they measure. A checkpoint says how far
a scorer has come, so that one that is started again begins there; what it then measures once more
is recorded once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import anyio

from ..errors import InvalidInput
from ..log.contract import EventLog
from .protocol import Scorer
from .worker import Pace, ScorerStatistics, ScorerWorker

__all__ = ("ScorerPool",)

_DEFAULT = Pace()


@final
class ScorerPool:
    """Scorers at work on a log.

    Args:
        log: whose sessions they measure, and where their measurements go.
        scorers: who measures.
        session: only this session; None for all.
        pace: what each of them may take.

    Raises:
        InvalidInput: two scorers of one name and version, or a pace that makes no sense.
    """

    def __init__(
        self,
        log: EventLog,
        scorers: Iterable[Scorer],
        *,
        session: str | None = None,
        pace: Pace = _DEFAULT,
    ) -> None:
        if not (pace.within > 0 and pace.at_once > 0 and pace.keep > 0 and pace.retry >= 0):
            raise InvalidInput(f"a pace needs numbers above 0, not {pace}")
        self._workers = [ScorerWorker(log, scorer, session, pace) for scorer in scorers]
        streams = [worker.stream for worker in self._workers]
        if len(set(streams)) < len(streams):
            raise InvalidInput(f"two scorers of one name and version: {', '.join(streams)}")

    async def run(self) -> None:
        """Measures until it is cancelled, or the log is closed."""
        async with anyio.create_task_group() as tasks:
            for worker in self._workers:
                tasks.start_soon(worker.run, name=f"scorer {worker.stream}")

    async def settle(self) -> None:
        """Waits until all that the log holds now is measured, and the checkpoints say so.

        Returns as well once the scorers have ended.
        """
        for worker in self._workers:
            await worker.settle()

    def statistics(self) -> tuple[ScorerStatistics, ...]:
        """How the scorers stand."""
        return tuple(worker.statistics() for worker in self._workers)
