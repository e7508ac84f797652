"""Runs many sessions against one log, a limited number at a time, and skips finished ones.

Several processes may run the same sessions into one log; each then runs those that no other has.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, final

import anyio
import msgspec

from ..errors import (
    CheckpointConflict,
    Divergence,
    DuplicateConflict,
    InvalidInput,
    PluginFailed,
    SessionClosedError,
    SessionInterrupted,
    SessionNotFound,
    VersionConflict,
    first_error,
)
from ..events import UtilityScored
from ..log.contract import EventLog, SessionSummary
from ..log.leases import LeaseHolder, LeaseTerms, Leasing
from ..plugins import PluginCall, is_cancelled
from ..scorers.choice import last_utility
from .runner import Session, SessionResult, measured_mark, run_session
from .sharing import SessionQueue, lease_name

__all__ = ("Outcome", "SessionElsewhere", "SessionFailure", "simulate")

_CONFLICTS: Final = 8  # with others who run a session here counts as able to be run


@final
class SessionFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A session that could not be run: its id, and why. The others are not affected.

    ``resumable`` means that the session itself is sound: run it again later to continue it.
    """

    session: str
    error: str
    resumable: bool = False


@final
class SessionElsewhere(msgspec.Struct, frozen=True):
    """A session that another process ran meanwhile: its id, and the last utility measured."""

    session: str
    utility: float | None = None


Outcome: TypeAlias = SessionResult | SessionElsewhere | SessionFailure | str
"""The outcome of a session: its result, that another process ran it, why it could not be run, or
its id if it was done before.
"""


_BY_OTHERS = (CheckpointConflict, DuplicateConflict, SessionClosedError, VersionConflict)
"""Errors caused by another process that runs the session too."""

_OF_ONE_SESSION = (*_BY_OTHERS, Divergence, InvalidInput, PluginFailed)
"""Errors that affect only one session: it differs from the log, or another process runs it too."""

_DEFAULT = LeaseTerms()


async def simulate(
    log: EventLog,
    sessions: Iterable[Callable[[], Session]],
    *,
    concurrency: int = 32,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
    terms: LeaseTerms = _DEFAULT,
    pace: float = 0.0,
) -> None:
    """Runs many sessions against one log, a set number of them at a time.

    Each session is made when its turn comes, so that thousands of them cost no memory beforehand.
    A session that the log holds, closed and completely measured, is not run; one that is open is
    resumed. A session that fails does not affect the others.

    Other processes may run the same sessions into the same log at the same time, on other machines
    too if the log is on a server: they share the work, and each returns once all of it is done.
    The process with the lease on a session runs it. If a process dies, others resume its sessions
    once its leases have expired; if it was only slow, its appends are refused from then on, and
    the session is done once all the same.

    For example, with the task that ``duolog.engine.task.find_task("travel")`` gives::

        from duolog.engine.session.limits import Limits
        from duolog.engine.task import Cell, Setting

        cells = [
            Cell(agent="two-stage", user="proactive", instance=name, seed=7)
            for name in task.instances(3, seed=7)
        ]
        setting = Setting(limits=Limits(rounds=10))
        makers = [partial(task.session, cell, setting) for cell in cells]  # functools.partial
        await duolog.simulate(log, makers, concurrency=2, on_outcome=print)

    Args:
        log: records them; it has to be open.
        sessions: functions that each make a session.
        concurrency: how many sessions run at once, 1 at least.
        on_outcome: called with the outcome of each session as it ends.
        terms: how long a process may be silent before others take over its sessions.
        pace: seconds between the first sessions that are begun, until as many run as may. So a
            process that joins at about the same time finds some left. A session that follows
            another waits for nothing.

    Raises:
        InvalidInput: the concurrency is below 1, the pace below 0, or no lease can have these terms.
        PluginFailed: a maker or ``on_outcome`` raised what is no ``Exception``, or a worker was
            cancelled unexpectedly.
        LogError: the log failed; every session can be resumed from it.
    """
    if concurrency < 1:
        raise InvalidInput(f"at least one session has to run at a time, not {concurrency}")
    if not pace >= 0:
        raise InvalidInput(f"sessions cannot begin {pace} seconds apart")
    holder = LeaseHolder(log.leases(), terms) if isinstance(log, Leasing) else None
    run = _Simulation(log, SessionQueue(sessions), holder, on_outcome)
    try:
        async with anyio.create_task_group() as tasks:
            if holder is not None:
                tasks.start_soon(holder.keep)
                tasks.start_soon(run.queue.watch, holder, terms.looked_at)
            async with anyio.create_task_group() as workers:
                for _ in range(concurrency):
                    workers.start_soon(run.work, workers.cancel_scope)
                    if pace:
                        await anyio.sleep(pace)
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise first_error(group) from None
    if not run.finished:  # a task group ends silently if a task raised this by itself
        raise PluginFailed("a worker of the simulation", asyncio.CancelledError())


class _Simulation:
    """The state that the workers of one call share.

    Attributes:
        queue: the sessions.
        finished: whether every session is settled.
    """

    def __init__(
        self,
        log: EventLog,
        queue: SessionQueue,
        holder: LeaseHolder | None,
        on_outcome: Callable[[Outcome], None],
    ) -> None:
        self.queue = queue
        self.finished = False
        self._log = log
        self._holder = holder
        self._on_outcome = on_outcome
        self._conflicts: Counter[str] = Counter()

    async def work(self, workers: anyio.CancelScope) -> None:
        """Runs one session after the other; ends all workers once every session is settled."""
        while (given := await self.queue.next()) is not None:
            with PluginCall("the maker of a session"):
                session = given.make()
            outcome = await self._outcome(session, aside=given.aside)
            if outcome is None:
                self.queue.put_aside(session.id, given.make)
                continue
            with PluginCall("on_outcome"):
                self._on_outcome(outcome)
            self.queue.settle()
        self.finished = True
        workers.cancel()  # those that have not begun wait for nothing

    async def _outcome(self, session: Session, *, aside: bool) -> Outcome | None:
        """The outcome of a session; None if another process has it."""
        held = await _held(self._log, session)
        if held is not None and await _is_done(self._log, session, held):
            return await _elsewhere(self._log, session) if aside else session.id
        if self._holder is None:
            return await self._run(session, fresh=held is None)
        scope = anyio.CancelScope()
        try:
            with scope:
                return await self._run_with_lease(self._holder, session, held, scope)
        except asyncio.CancelledError:
            if is_cancelled() or not scope.cancel_called:
                raise
            # Raised again on the way, it was nothing that the scope recognised.
        return None  # the lease was lost meanwhile

    async def _run_with_lease(
        self,
        holder: LeaseHolder,
        session: Session,
        held: SessionSummary | None,
        scope: anyio.CancelScope,
    ) -> Outcome | None:
        lease = lease_name(session.id)
        if not await holder.claim(lease, scope.cancel):
            return None
        try:
            if held is not None:  # its holder may have finished it before letting go of it
                held = await self._log.summary(session.id)
                if await _is_done(self._log, session, held):
                    return await _elsewhere(self._log, session)
            return await self._run(session, fresh=held is None)
        finally:
            await holder.release(lease)

    async def _run(self, session: Session, *, fresh: bool) -> Outcome | None:
        try:
            with PluginCall(f"session {session.id!r}"):  # or the task could end unnoticed
                return await run_session(self._log, session, fresh=fresh)
        except SessionInterrupted as error:
            return SessionFailure(session=session.id, error=error.why, resumable=True)
        except _OF_ONE_SESSION as error:
            if self._holder is not None and isinstance(error, _BY_OTHERS):
                self._conflicts[session.id] += 1
                if self._conflicts[session.id] < _CONFLICTS:
                    return None
            return SessionFailure(session=session.id, error=str(error))


async def _held(log: EventLog, session: Session) -> SessionSummary | None:
    try:
        return await log.summary(session.id)
    except SessionNotFound:
        return None


async def _elsewhere(log: EventLog, session: Session) -> SessionElsewhere:
    values: dict[str, float] = {}
    async for record in log.read_all(session=session.id):
        if record.kind == "UtilityScored" and isinstance(record.event, UtilityScored):
            values |= {} if record.event.value is None else {record.stream: record.event.value}
    return SessionElsewhere(session.id, last_utility(values, session.opened.config.get("utility")))


async def _is_done(log: EventLog, session: Session, held: SessionSummary) -> bool:
    """Whether the log holds a session closed, and measured by these scorers to its end."""
    if held.state == "open":
        return False
    if held.state == "forgotten" or not session.scorers:
        return True
    return await log.checkpoint(*measured_mark(session)) >= held.position
