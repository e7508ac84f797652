"""A scorer's work on one session of a log: what it has seen of it, and what still waits."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from ..records import Record
from .runner import ScorerRunner

__all__ = ("SessionWork",)


@final
class SessionWork:
    """What one scorer has seen of one session, and what still waits for it.

    Attributes:
        session: session id.
        runner: runs the scorer; None until it begins, or where it has to begin again.
        version: trace version of the last record that the scorer has seen.
        pending: records that wait, in order.
        behind: position of the first record that is in the log and not in ``pending``; 0 where
            there is none.
        closed: whether the session is closed, as far as the scorer has seen.
        running: whether a task works on it.
        over: whether the scorer is quarantined here, or there is nothing to measure any more.
        since: when the scorer began to look at a record; None while it looks at none.
        excused: how many of its calls wait for somebody else, which does not count as its time.
    """

    __slots__ = (
        "behind",
        "closed",
        "excused",
        "over",
        "pending",
        "runner",
        "running",
        "session",
        "since",
        "version",
    )

    def __init__(self, session: str) -> None:
        self.session = session
        self.runner: ScorerRunner | None = None
        self.version = 0
        self.pending: deque[Record] = deque()
        self.behind = 0
        self.closed = False
        self.running = False
        self.over = False
        self.since: float | None = None
        self.excused = 0

    @property
    def waits(self) -> bool:
        """Whether there is something for the scorer to look at."""
        return not self.over and bool(self.pending or self.behind)

    @contextmanager
    def excuse(self) -> Iterator[None]:
        """While the scorer waits for somebody else, its time stands still."""
        self.excused += 1
        try:
            yield
        finally:
            self.excused -= 1
            self.since = time.monotonic()

    def restart(self) -> None:
        """Has the scorer begin again, from the session's first record."""
        self.runner = None
        self.version = 0

    def stop_if_late(self, begun_before: float) -> None:
        """Quarantines the scorer where it looks at a record since before this time."""
        late = self.since is not None and self.since < begun_before
        if late and self.runner is not None and not self.excused:
            self.runner.give_up()
