"""The scorers that can measure a recorded session again, offline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, final, runtime_checkable

from ..engine.errors import InvalidInput
from ..engine.events import SessionOpened
from ..engine.log.contract import EventLog
from ..engine.scorers.protocol import Scorer
from ..engine.task import find_task
from ..scoring.scorers.feedback import FeedbackUtility
from ..scoring.scorers.progress import rule_judge
from ..scoring.scorers.retention import RetentionUtility

__all__ = ("Rescoring", "Scorers")


@runtime_checkable
class Rescoring(Protocol):
    """A task that can score a session which somebody ran before."""

    def scorers(self, opened: SessionOpened) -> Sequence[Scorer]:
        """The scorers of a session, from how it was opened.

        Raises:
            InvalidInput: it was opened on data that are not at hand.
        """
        ...


@final
class Scorers:
    """Finds scorers session by session; keeps the tasks that it has met, which may be large."""

    def __init__(self) -> None:
        self._tasks: dict[str, Rescoring | None] = {}

    async def of(self, log: EventLog, session: str) -> list[Scorer]:
        """The scorers that Duolog ships, and those of the session's task if it is installed."""
        scorers: list[Scorer] = [
            FeedbackUtility(),
            RetentionUtility(),
            rule_judge("handoff"),
            rule_judge("human-turn"),
        ]
        async for record in log.read(session):
            opened = record.event
            if isinstance(opened, SessionOpened):
                scorers += self._of_task(opened)
            break
        return scorers

    def _of_task(self, opened: SessionOpened) -> Sequence[Scorer]:
        if opened.task not in self._tasks:
            self._tasks[opened.task] = _find(opened.task)
        task = self._tasks[opened.task]
        try:
            return () if task is None else task.scorers(opened)
        except InvalidInput:  # on data that are not at hand
            return ()


def _find(name: str) -> Rescoring | None:
    """A task that is installed and can score what was run before."""
    try:
        task = find_task(name)
    except InvalidInput:
        return None
    return task if isinstance(task, Rescoring) else None
