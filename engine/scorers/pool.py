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

from ..errors import InvalidInput, LogError, SessionNotFound
from ..log.contract import EventLog
from ..logger import journal
from .protocol import Scorer
from .worker import Following, Pace, ScorerStatistics

__all__ = ("Measurer",)

_DEFAULT = Pace()


@final
class Measurer:
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
        self._log = log
        self._session = session
        self._following = [Following(log, scorer, session, pace) for scorer in scorers]
        streams = [following.stream for following in self._following]
        if len(set(streams)) < len(streams):
            raise InvalidInput(f"two scorers of one name and version: {', '.join(streams)}")

    async def run(self) -> None:
        """Measures until it is cancelled, or the log is closed."""
        async with anyio.create_task_group() as tasks:
            for following in self._following:
                tasks.start_soon(following.run, name=f"scorer {following.stream}")

    async def settle(self) -> None:
        """Waits until all that the log holds now is measured, and the checkpoints say so.

        Returns as well once the scorers have ended.
        """
        position = self._log.statistics().position
        session = self._session
        if session is not None:
            try:
                position = (await self._log.summary(session)).position
            except SessionNotFound:
                return
        for following in self._following:
            await following.settle(position)
            try:
                await following.save(session or following.stream)
            except LogError as error:  # the checkpoint lags, and costs a second look at worst
                journal("telemetry").warning(
                    "a checkpoint was not saved", scorer=following.stream, error=str(error)
                )

    def statistics(self) -> tuple[ScorerStatistics, ...]:
        """How the scorers stand."""
        return tuple(following.statistics() for following in self._following)
