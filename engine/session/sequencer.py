"""The sequencer: everything in a session reaches its log through it, in one order.

It appends drafts at the version it knows, keeps the trace state for the next command, and hands the
records to the contexts. When it executes a recorded session again, it checks each emission against the
record instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol, final

import anyio
from anyio.lowlevel import checkpoint

from .. import codec
from ..errors import Divergence, DuologError, LogError, SessionClosedError, SessionInterrupted
from ..events import ACTS, CloseReason, Event, ModelCalled, Role, SessionClosed
from ..log.append import redacted
from ..log.staging import SessionAppends
from ..logger import get_logger, log_session_events
from ..plugins import cancellation
from ..records import ENGINE, Draft, Record, Redact
from ..scorers.runner import ScorerRunner
from .commands import (
    CloseSession,
    Command,
    RecordEvent,
    Sender,
    handle_all,
)
from .limits import Limits
from .patience import Patience
from .state import TraceState
from .time.scheduler import Turns

__all__ = ("Handover", "Receiver", "Sequencer")


class Receiver(Protocol):
    """A receiver of new records: a context, the environment."""

    def deliver(self, record: Record) -> None:
        """Takes the next trace record; never waits."""
        ...


class Handover(Protocol):
    """The trace versions of a fork at which other players take over."""

    @property
    def cut(self) -> int | None:
        """The next such version; None if there is none."""
        ...

    def plays_until(self, actor: str) -> int | None:
        """The version after which another player takes an actor's part; None for never."""
        ...

    def take_over(self) -> bool:
        """Called when the trace has reached the cut; never waits. False if that was the last one."""
        ...


@final
class Sequencer:
    """Orders the events that one session emits.

    Args:
        log: records the events.
        session: session id.
        turns: the session's clock.
        limits: when to close it.
        measuring: the scorers at work.
        settle: whether scorers finish before an emission returns (virtual time).
        recorded: the trace that the log holds already, to be re-executed.
        on_end: called once the session is closed, or the run has failed.
        redact: removes secrets from drafts before they are compared, recorded and delivered, so that
            a session that is executed again does the same.

    Attributes:
        state: the state of the trace.
        position: position of its last record.
        failure: why this run ended without a close: a divergence, an interruption, or the log
            failed.
        succession: for a fork that executes its origin's trace again; None otherwise.
    """

    def __init__(
        self,
        log: SessionAppends,
        session: str,
        *,
        turns: Turns,
        limits: Limits,
        measuring: ScorerRunner,
        settle: bool,
        recorded: Sequence[Record],
        on_end: Callable[[], None],
        redact: Redact | None = None,
    ) -> None:
        self._log = log
        self.session = session
        self.turns = turns
        self._limits = limits
        self._measuring = measuring
        self._settle = settle and measuring.needed
        self._recorded = recorded
        self._on_end = on_end
        self._redact = redact
        self._loop = asyncio.get_running_loop()
        # Under a real clock the order is whatever it was, and the environment's waits use time-outs,
        # which cancel its task, too.
        self._run = asyncio.current_task(self._loop) if settle else None
        self._lock = asyncio.Lock()
        self._receivers: list[Receiver] = []
        self._tokens = 0
        self._cost = 0.0
        self._limit = "actions: 0" if limits.actions == 0 else None
        self._patience = Patience(limits.patience)
        self._over = False
        self.state = TraceState(session)
        self.position = 0
        self.failure: DuologError | None = None
        self.succession: Handover | None = None

    def connect(self, receiver: Receiver) -> None:
        """Delivers all records from now on to a receiver."""
        self._receivers.append(receiver)

    def disconnect(self, receiver: Receiver) -> None:
        """Delivers nothing to a receiver any more."""
        self._receivers.remove(receiver)

    @property
    def recorded_next(self) -> Record | None:
        """While re-executing: the record that the next emission has to reproduce."""
        return (
            self._recorded[self.state.version] if self.state.version < len(self._recorded) else None
        )

    def adopt(self, records: Sequence[Record]) -> None:
        """Takes over a recorded trace as it is, to continue from there (real clock)."""
        for record in records:
            self._note(record)

    async def emit(self, role: Role, make: Callable[[], Sequence[Draft]]) -> list[Record]:
        """Appends the drafts that ``make`` returns; it is called once their turn in the order has
        come.

        A caller that is cancelled meanwhile may find its events in the log, or none of them; the
        session continues from the log.

        Raises:
            Divergence: a re-execution does something else than the log holds.
            LogError: the log failed.
            SessionClosedError: the session is over, and the caller shields itself from that.

        After the first two nothing more is taken, whoever swallows them: the run has failed. Nor is
        anything taken of a caller that has been cancelled and does more than leave, nor, in
        virtual time, of anybody once the run has been cancelled: the session may be resumed later, and
        then they would not do that.
        """
        self._check_cancelled()
        if self.succession is None:
            records, leaver = await self._emit(role, make)
        else:
            with anyio.CancelScope(shield=True):  # a player replaced at the cut finishes the append
                records, leaver = await self._emit(role, make)
            await checkpoint()
        if self._settle:
            await self._measuring.settle()
        if leaver is not None:  # unless the tolerance was reached by the same rating
            await self.close("abandoned", leaver, role, self._patience.detail)
        if self._over:
            await checkpoint()  # cancels an actor that still acts
            raise SessionClosedError(self.session)
        return records

    async def _emit(
        self, role: Role, make: Callable[[], Sequence[Draft]]
    ) -> tuple[list[Record], str | None]:
        """The records, and the human that gives up after them."""
        records: list[Record] = []
        leaver: str | None = None
        async with self._lock:
            if not self._over:
                drafts = make()
                over = None
                leaves = None if self._before_cut(len(drafts) - 1) else self._leaver(role, drafts)
                if leaves is not None:
                    drafts, leaver = drafts[: leaves[0]], leaves[1]
                if self._near_limit(role, len(drafts)):
                    drafts, over = self._within_limits(role, drafts)
                if drafts:
                    records = await self._put(drafts, by=drafts[0].actor)
                over = over or self._limit
                if over is not None and not self._before_cut(0):
                    await self._close("limit", ENGINE, "environment", over)
        return records, leaver

    def _leaver(self, role: Role, drafts: Sequence[Draft]) -> tuple[int, str] | None:
        return self._patience.leaver(drafts, self.state) if role == "human" else None

    async def flush(self) -> None:
        """Writes staged records before an effect that executing the session again would not undo.
        If they cannot be written, the run has failed.

        Raises:
            LogError: the log failed.
        """
        try:
            await self._log.flush()
        except LogError as error:
            self._break(error)

    def diverge(self, version: int, what: str) -> NoReturn:
        """Ends the run: this session differs from its record in the log."""
        self._break(Divergence(self.session, version, what))

    def interrupt(self, why: str | Divergence | SessionInterrupted) -> NoReturn:
        """Ends the run, and leaves the session as the log has it, to be resumed."""
        self._break(SessionInterrupted(self.session, why) if isinstance(why, str) else why)

    def _break(self, error: DuologError) -> NoReturn:
        get_logger("session").warning("session interrupted", session=self.session, error=str(error))
        self.failure = error
        self._over = True
        self._on_end()
        raise error

    async def close(
        self,
        reason: CloseReason,
        by: str,
        role: Role,
        detail: str = "",
        *,
        first: Sequence[Event] = (),
    ) -> bool:
        """Closes the session, and resolves actions in flight as cancelled in the same append; False
        if the session was already closed.
        """
        self._check_cancelled()
        async with self._lock:
            if self._over:
                return False
            await self._close(reason, by, role, detail, first)
            return True

    def _check_cancelled(self) -> None:
        task, run = asyncio.current_task(self._loop), self._run
        if task is not None and task.cancelling():
            raise cancellation()
        # The run's own task is the environment's. If it is cancelled, the others are cancelled only after it
        # has left. Until then, one of them may get the turn that would have been the environment's.
        if run is not None and run.cancelling() and not self._over:
            raise cancellation()

    def _near_limit(self, role: Role, count: int) -> bool:
        """Whether this number of drafts may exceed a limit."""
        if self._before_cut(count):
            return False  # the limits of a fork do not apply to the part that it inherits
        rounds, actions = self._limits.rounds, self._limits.actions
        return (rounds is not None and role == "human" and self.state.rounds.number >= rounds) or (
            actions is not None and self.state.acts + count > actions
        )

    def _before_cut(self, count: int) -> bool:
        """Whether this many more drafts still belong to the part that a fork inherits."""
        cut = None if self.succession is None else self.succession.cut
        return cut is not None and self.state.version + count < cut

    def _within_limits(
        self, role: Role, drafts: Sequence[Draft]
    ) -> tuple[Sequence[Draft], str | None]:
        """Drafts as far as the limits allow, and the limit that is reached before the rest."""
        rounds, actions = self._limits.rounds, self._limits.actions
        over = None
        if rounds is not None and role == "human" and self.state.rounds.number >= rounds:
            kinds = [codec.kind_of(draft.event)[0] for draft in drafts]
            opening = [i for i, kind in enumerate(kinds) if self.state.rounds.opens(kind, role)]
            if opening:
                drafts, over = drafts[: opening[0]], f"rounds: {rounds}"
        if actions is not None:
            drafts = self._first(drafts, actions - self.state.acts)
        return drafts, over

    @staticmethod
    def _first(drafts: Sequence[Draft], acts: int) -> Sequence[Draft]:
        """Drafts up to a number of acts, with the events that belong to the last of them."""
        for index, draft in enumerate(drafts):
            if codec.kind_of(draft.event)[0] in ACTS and draft.role in ("human", "agent"):
                acts -= 1
                if acts < 0:
                    return drafts[:index]
        return drafts

    async def _close(
        self,
        reason: CloseReason,
        by: str,
        role: Role,
        detail: str,
        first: Sequence[Event] = (),
    ) -> None:
        closed = SessionClosed(reason=reason, by=by, detail=detail)
        commands: list[Command] = [*map(RecordEvent, first), CloseSession(closed)]
        sender = Sender(by, role, self.turns.now())
        records = await self._put(handle_all(commands, self.state, sender), by=by)
        log_session_events(records)

    async def _put(self, drafts: Sequence[Draft], *, by: str) -> list[Record]:
        """Checks drafts that the log already holds, appends the others, and delivers all."""
        held: Sequence[Record] = ()
        version = self.state.version
        redact = self._redact
        # Drafts are redacted before they are compared with records; otherwise a log with the same hook does it.
        compared = version < len(self._recorded)
        if redact is not None and (compared or redact is not self._log.redaction):
            drafts = [redacted(draft, redact) for draft in drafts]
        if self.succession is not None:
            until = self.succession.plays_until(by)
            if until is not None:
                drafts = drafts[: until - version]
        if version < len(self._recorded):
            held = self._recorded[version : version + len(drafts)]
            for draft, record in zip(drafts, held, strict=False):
                self._check(draft, record)
            drafts = drafts[len(held) :]
        records: list[Record] = []
        if drafts:
            expected = version + len(held)
            try:
                records = await self._log.append(self.session, drafts, expected_version=expected)
            except LogError as error:
                self._break(error)
            except asyncio.CancelledError:
                self._receive([*held, *await self._written(expected)])
                raise
        if held:
            records = [*held, *records]
        self._receive(records)
        return records

    async def _written(self, after: int) -> list[Record]:
        """The records of an append whose caller was cancelled: all of them, or none."""
        records: list[Record] = []
        with anyio.CancelScope(shield=True):
            records += [r async for r in self._log.read(self.session, after_version=after)]
        return records

    def _receive(self, records: Sequence[Record]) -> None:
        for record in records:
            self._note(record)
            for receiver in self._receivers:
                receiver.deliver(record)
            succession = self.succession
            if succession is not None and record.version == succession.cut:
                self.succession = succession if succession.take_over() else None
        if self._measuring.needed:
            self._measuring.offer(records)
        if self._over:
            self._on_end()

    def _note(self, record: Record) -> None:
        state = self.state
        state.feed(record)
        self._patience.feed(record)
        self.position = record.position
        kind = record.kind
        if kind == "ModelCalled":
            event = record.event
            if isinstance(event, ModelCalled):
                self._spend(event)
        elif kind == "SessionClosed":
            self._over = True
        elif state.acts == self._limits.actions:
            self._limit = f"actions: {state.acts}"

    def _spend(self, called: ModelCalled) -> None:
        limits = self._limits
        self._tokens += (called.tokens.prompt or 0) + (called.tokens.completion or 0)
        self._cost += called.cost or 0.0
        if limits.tokens is not None and self._tokens >= limits.tokens:
            self._limit = f"tokens: {limits.tokens}"
        elif limits.cost is not None and self._cost >= limits.cost:
            self._limit = f"cost: {limits.cost}"

    def _check(self, draft: Draft, record: Record) -> None:
        """Compares an emitted draft with the record in the log."""
        kind, schema = codec.kind_of(draft.event)
        for field, then, now in (
            ("kind", record.kind, kind),
            ("schema", record.schema, schema),
            ("actor", record.actor, draft.actor),
            ("role", record.role, draft.role),
            ("time", record.time, draft.time),
            ("cause", record.cause, draft.cause),
            ("seen", record.seen, draft.seen),
        ):
            if then != now:
                what = f"{field} of {record.kind} was {then!r}, now it would be {now!r}"
                self.diverge(record.version, what)
        body = codec.encode_body(draft.event)
        if record.body != body:
            held = "forgotten" if record.body is None else record.body.decode()
            self.diverge(record.version, f"it was {held}, now it would be {body.decode()}")
