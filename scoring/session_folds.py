"""Folds the sessions of a log side by side, as a scan of it hands over their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import final

import msgspec

from ..engine.records import Record
from .process import ProcessFold
from .trajectory.fold import TrajectoryFold
from .trajectory.options import Options
from .trajectory.output_lines import OutputLines
from .trajectory.points import Trajectory

__all__ = ("SessionFolds",)


@final
class SessionFolds:
    """The folds of many sessions.

    Args:
        options: how to score.
        process: measure also how the parties worked together, which reads every message.
    """

    def __init__(self, options: Options | None, *, process: bool) -> None:
        self._options = options
        self._process = process
        self._folds: dict[str, tuple[TrajectoryFold, ProcessFold | None]] = {}
        self._feeds: dict[str, Sequence[Callable[[Record], object]]] = {}

    def consume(self, records: Sequence[Record]) -> None:
        """Takes the next records, of any sessions.

        Raises:
            CodecError: a body that is needed is damaged.
            PluginFailed: ``Options.count`` or ``Options.vague`` raised.
        """
        feeds = self._feeds
        for record in records:
            for feed in feeds.get(record.session) or self._begin(record.session):
                feed(record)

    def trajectories(self) -> Iterator[Trajectory]:
        """The trajectories so far, in order of the sessions' first records."""
        for fold, process in self._folds.values():
            trajectory = fold.trajectory()
            if process is not None:
                trajectory = msgspec.structs.replace(trajectory, process=process.measures)
            yield trajectory

    def _begin(self, session: str) -> Sequence[Callable[[Record], object]]:
        output = OutputLines()
        fold = TrajectoryFold(session, self._options, emit=False, output=output)
        process = ProcessFold(output=output) if self._process else None
        feeds = (fold.feed,) if process is None else (fold.feed, process.feed)
        self._folds[session] = fold, process
        self._feeds[session] = feeds
        return feeds
