"""The scorer of a task's recorded sessions, as the entry-point group ``duolog.scorers`` offers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, final

from ...engine.errors import InvalidInput
from ...engine.events import SessionOpened
from ...engine.scorers.protocol import Scorer
from ...scoring.scorers.registry import ScoringSetting

__all__ = ("MeasuringTask", "TaskScorer")


class MeasuringTask(Protocol):
    """A task that can measure its recorded sessions again."""

    @property
    def name(self) -> str:
        """Of the task."""
        ...

    def scorers(self, opened: SessionOpened) -> Sequence[Scorer]:
        """Its scorers for a session; none where a model would have to be asked."""
        ...


@final
class TaskScorer:
    """Scores sessions of a task that Duolog ran; keeps their worlds.

    Args:
        task: the task.
        otherwise: what one who has something else to score may do, for the message that refuses it.
    """

    asks_model = False

    def __init__(self, task: MeasuringTask, otherwise: str = "") -> None:
        self._task = task
        self._otherwise = f"; {otherwise}" if otherwise else ""

    def make(self, setting: ScoringSetting) -> Scorer:
        """The scorer of a session, on the data that it was run on.

        Raises:
            InvalidInput: the session is of another task, was run on data that are not available, or
                a model read its outputs.
        """
        opened = setting.opened
        if opened.task != self._task.name:
            raise InvalidInput(
                f"a session of the task {opened.task!r} does not hold what outputs of the task "
                f"{self._task.name!r} are judged by{self._otherwise}"
            )
        found = self._task.scorers(opened)
        if not found:
            raise InvalidInput("a model read the outputs of this session, and would have to again")
        return found[0]
