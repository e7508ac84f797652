"""Scores the sessions of a large log in several processes, each some of them.

Parts are whole sessions, so that each process folds its own as one process would fold all. Whoever is
done with a part takes the next one, this process like the others. Where a part cannot be scored, there
is no result, and the caller folds the log by itself: so what is raised is what one process raises,
too. What a process had that ended, another one scores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, final

import anyio
import anyio.to_thread
import msgspec

from ..engine.errors import DuologError
from ..engine.log.contract import EventLog
from ..engine.log.parts import Divisible, Part, joined
from ..engine.logger import get_logger
from .part_process import ProcessEnded, Request, part_process
from .session_folds import SessionFolds
from .trajectory.options import Options
from .trajectory.points import Trajectory

__all__ = ("Shared", "score_parts")

RECORDS: Final = 1 << 16
"""Records that are worth a process: it starts in 0.3 s, and folds so many in 0.5 s."""

_PIECES: Final = 4
"""Parts that so many records are divided into."""

_PLAIN: Final = Options()


def _say_nothing(how: str) -> None:
    """Where nobody wants to know."""


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """How a log is shared among processes.

    Attributes:
        url: path or URL by which each of them opens the log, with a password if it needs one.
        processes: how many there are at most, this one included.
        on_ended: called where one of them ended too early, with how it did; the others do its part.
    """

    url: str
    processes: int
    on_ended: Callable[[str], None] = _say_nothing


async def score_parts(
    log: EventLog, options: Options, *, process: bool, shared: Shared
) -> Sequence[Trajectory] | None:
    """The trajectories of all sessions, each part of them by a process.

    Args:
        log: the log.
        options: how to score.
        process: measure also how the parties worked together.
        shared: among which processes.

    Returns:
        The trajectories in order of the sessions' first records. None where the log is too small to
        be worth it or cannot be divided, where a function of the caller's own counts tokens or
        deferrals, which another process does not have, and where a part cannot be scored.

    Raises:
        LogClosed: the log is closed.
    """
    own = options.count is not _PLAIN.count or options.vague is not _PLAIN.vague
    position = log.statistics().position
    wanted = min(shared.processes, position // RECORDS)
    if own or wanted < 2 or not isinstance(log, Divisible):
        return None
    parts = await log.parts(_PIECES * position // RECORDS)
    if len(parts) < 2:
        return None
    work = _Work(parts, wanted, Request.of(shared.url, options, process=process))
    async with anyio.create_task_group() as tasks:
        for _ in range(min(wanted, len(parts)) - 1):
            tasks.start_soon(work.have_done, shared.on_ended, tasks.cancel_scope)
        await work.do(log, tasks.cancel_scope)
    with anyio.CancelScope() as scope:
        await work.do(log, scope)  # what a process had that ended meanwhile
    return work.found()


@final
class _Work:
    """The parts of a log that are to be scored, and what is scored of them.

    Args:
        parts: all of them, in order.
        processes: how many take from them.
        request: how they are scored.
    """

    def __init__(self, parts: Sequence[Part], processes: int, request: Request) -> None:
        self._waiting = deque(parts)
        self._processes = processes
        self._request = request
        self._found: dict[int, Sequence[Trajectory]] = {}
        self._failed = False

    def found(self) -> Sequence[Trajectory] | None:
        """All trajectories; None where a part could not be scored."""
        if self._failed:
            return None
        return [item for first in sorted(self._found) for item in self._found[first]]

    async def do(self, log: Divisible, scope: anyio.CancelScope) -> None:
        """Scores parts here until none waits; where that fails, cancels all work."""
        while (part := self._next()) is not None:
            folds = SessionFolds(self._request.options(), process=self._request.process)
            try:
                await log.scan_part(part, folds.consume)
                made = await anyio.to_thread.run_sync(tuple, folds.trajectories())
            except DuologError as error:  # which of all errors comes first, one process finds out
                self._fail(str(error), scope)
                return
            self._found[part.first] = made

    async def have_done(self, on_ended: Callable[[str], None], scope: anyio.CancelScope) -> None:
        """Has a process of its own score parts until none waits; where that fails, cancels all work."""
        part: Part | None = None
        try:
            async with part_process(self._request) as other:
                while (part := self._next()) is not None:
                    answer = await other.score(part)
                    if answer.error:
                        self._fail(answer.error, scope)
                        return
                    self._found[part.first] = answer.trajectories
        except ProcessEnded as error:
            if part is not None:
                self._waiting.appendleft(part)
            get_logger("scoring").warning("a process that scored sessions failed", error=str(error))
            on_ended(str(error))

    def _next(self) -> Part | None:
        """The next sessions to score: ever fewer, so that all processes are done at about one time."""
        waiting = self._waiting
        if not waiting:
            return None
        several = max(len(waiting) // (2 * self._processes), 1)
        return joined([waiting.popleft() for _ in range(several)])

    def _fail(self, why: str, scope: anyio.CancelScope) -> None:
        get_logger("scoring").debug("a part was not scored", error=why)
        self._failed = True
        self._waiting.clear()
        scope.cancel()
