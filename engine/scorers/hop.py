"""One trip to a worker thread that scores many records, those of one session in order."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock
from typing import final

import anyio

from ..records import Record
from .runner import Found, RunningScorer, ScorerRunner

__all__ = ("Hop", "Look")


@final
class Look:
    """Records of one session to score, and the outcomes.

    Attributes:
        runner: runs the scorers.
        records: the records to score, in order.
        count: how many of them were scored.
        found: the records with measurements, and these measurements.
        late: the next record, on which a scorer took too long; None if none did. Other scorers may
            still have to score it.
    """

    __slots__ = ("count", "found", "late", "records", "runner")

    def __init__(self, runner: ScorerRunner, records: Sequence[Record]) -> None:
        self.runner = runner
        self.records = records
        self.count = 0
        self.found: list[tuple[Record, list[Found]]] = []
        self.late: tuple[Record, list[Found]] | None = None


@final
class Hop:
    """Runs scorers on records in a worker thread, one after the other.

    Python cannot end a thread. If a scorer takes too long, the thread is abandoned: the scorer is
    quarantined, and the outcomes before that count. The next hop takes the rest.

    Args:
        looks: the sessions and records to score.

    Attributes:
        scope: to be entered by the task that waits for the thread; cancelled if it is abandoned.
    """

    def __init__(self, looks: Sequence[Look]) -> None:
        self._looks = looks
        self._lock = Lock()
        self._abandoned = False
        self._at: tuple[Look, Record, RunningScorer, list[Found]] | None = None
        self._since = 0.0
        self.scope = anyio.CancelScope()

    def run(self) -> None:
        """Looks at all of it; called in the thread."""
        for look in self._looks:
            runner = look.runner
            for record in look.records:
                if runner.cost(record) == "waits":
                    break
                found: list[Found] = []
                for running in runner.due(record):
                    if not self._move((look, record, running, found)):
                        return
                    outcome = running.look(record)
                    if not self._move(None):
                        return
                    if outcome != ():
                        found.append(Found(running, outcome))
                look.count += 1
                if found:
                    look.found.append((record, found))

    def _move(self, at: tuple[Look, Record, RunningScorer, list[Found]] | None) -> bool:
        """Whether the thread may continue there."""
        with self._lock:
            self._at = at
            self._since = time.monotonic()
            return not self._abandoned

    def stop_if_late(self, begun_before: float) -> None:
        """Abandons the thread if a scorer has looked at a record since before this time."""
        with self._lock:
            if self._at is None or self._since >= begun_before:
                return
            look, record, running, found = self._at
            late = running.quarantine(TimeoutError("it took too long"))
            look.late = record, [*found, Found(running, late)]
            self._abandoned = True
        self.scope.cancel()
