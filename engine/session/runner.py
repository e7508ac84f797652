"""Runs one session: its actors, its environment and its scorers, in one task group, to its end.

If the log already holds a part of the session, it continues from there. Under a virtual clock, it is
executed again deterministically against the recorded prefix. With people or products, it continues
from its view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import final

import anyio
import msgspec
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from .. import codec
from ..errors import DuologError, InvalidInput, SessionInterrupted, first_error
from ..events import CloseReason, MessageSent, SessionOpened, StopAdvised
from ..log.append import redacted
from ..log.contract import Advance, EventLog
from ..log.staging import SessionAppends
from ..logger import get_logger, log_session_events
from ..plugins import is_cancelled
from ..records import ENGINE, ENVIRONMENT, TRACE, Draft, Record, Redact
from ..redacting import redact_secrets
from ..scorers.observing import ComputeThread
from ..scorers.protocol import Scorer
from ..scorers.runner import ScorerRunner, StopRule
from .actor_tasks import ActorTasks
from .actors import Player
from .environment import Environment, NoEnvironment
from .inheritance import Inheritance, Phase
from .limits import Limits
from .performer import Performer
from .resume import ENGINE_NUMBER, check_opening, is_closed, take_over_records
from .sequencer import Sequencer
from .time.clock import Clock, RealClock, VirtualClock
from .time.scheduler import RealTurns, VirtualTurns, WakeReason
from .time.timing import Timing
from .watchdog import Watchdog

__all__ = ("Session", "SessionResult", "measured_mark", "run_session")


@final
class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is needed to run one session.

    Attributes:
        id: session id, unique in its log.
        opened: the opening to record. Its participants, clock and seed hold.
        players: the players of the participants.
        environment: the task environment, made for this session alone.
        request: the initial request, which the first human sends at the opening.
        clock: virtual, or real.
        timing: how long things take.
        limits: when to close it.
        nudges: how often all actors are nudged when they wait for each other, before the session
            closes as stalled.
        scorers: who measures.
        stop: decides on stops to enforce.
        inherited: for a fork, what it takes over from its origin; None otherwise.
        redact: removes secrets from each event before the log and the actors get it; None for nothing.
    """

    id: str
    opened: SessionOpened
    players: tuple[Player, ...]
    environment: Environment = msgspec.field(default_factory=NoEnvironment)
    request: str | None = None
    clock: Clock = VirtualClock()
    timing: Timing = Timing()
    limits: Limits = Limits()
    nudges: int = 3
    scorers: tuple[Scorer, ...] = ()
    stop: StopRule | None = None
    inherited: Inheritance | None = None
    redact: Redact | None = redact_secrets


@final
class SessionResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a session ended.

    Attributes:
        session: session id.
        reason: why it closed.
        events: version of its trace.
        rounds: rounds by handoff.
        utility: the last utility measured; None if there is none, or if several scorers measured it and
            the opening names none of them.
        seconds: session time from the opening to the close.
        resumed: records that the log held already.
        error: the error of the actor that failed, if one did.
        scorer_failed: which scorer failed, and how, if one did.
    """

    session: str
    reason: CloseReason
    events: int
    rounds: int
    utility: float | None
    seconds: float
    resumed: int
    error: str | None = None
    scorer_failed: str | None = None


async def run_session(log: EventLog, session: Session, *, fresh: bool = False) -> SessionResult:
    """Runs a session to its end, starting from the state in the log.

    For example::

        async def ann(context: duolog.ActorContext) -> None:
            await context.say("A haiku about logs, please.")
            await context.news()  # until the agent has done something
            await context.finish("satisfied")

        async def poet(context: duolog.ActorContext) -> None:
            await context.news()
            context.look()  # brings the view up to date
            await context.submit("Append, and append; / nothing that was said is lost.")
            await context.yield_turn()

        who = (
            duolog.Participant(name="ann", role="human"),
            duolog.Participant(name="poet", role="agent"),
        )
        opened = duolog.SessionOpened(
            task="haiku", instance="1", participants=who, clock="virtual", seed=1
        )
        players = (duolog.Player(who[0], ann), duolog.Player(who[1], poet))
        session = duolog.Session(id="haiku-1", opened=opened, players=players)
        result = await duolog.run_session(log, session)
        print(result.reason, result.rounds)

    Args:
        log: records the session; it has to be open.
        session: the session.
        fresh: the log is known to hold none of its records, so that it need not be searched.

    Returns:
        How the session ended; ``result.reason`` says why.

    Raises:
        Divergence: the log holds another session under this id, or the re-execution differs from
            the log.
        LogError: the log failed.
        InvalidInput: the session contradicts itself.
    """
    opened = msgspec.structs.replace(session.opened, engine=ENGINE_NUMBER)
    if session.redact is not None:
        draft = redacted(Draft(opened, ENGINE, "environment", 0.0), session.redact)
        assert isinstance(draft.event, SessionOpened)
        opened = draft.event
    session = msgspec.structs.replace(session, opened=opened)
    trace: list[Record] = []
    measured: list[Record] = []
    if not fresh:
        async for record in log.read_all(session=session.id):
            (trace if record.stream == TRACE else measured).append(record)
    held = len(trace)
    if trace:
        opened = check_opening(session.id, trace[0], session.opened)
        session = msgspec.structs.replace(session, opened=opened)
    if session.inherited is not None:
        trace, measured = await take_over_records(
            log, session.id, session.opened, session.inherited, trace, measured
        )
    return await _Run(log, session, trace, measured, held=held).run()


def measured_mark(session: Session) -> tuple[str, str]:
    """Consumer and version of the checkpoint that says that a session is wholly measured."""
    refs = [scorer.ref for scorer in session.scorers]
    return f"measured/{session.id}", codec.digest(refs)


class _Run:
    """One run of one session."""

    def __init__(
        self,
        log: EventLog,
        session: Session,
        trace: Sequence[Record],
        measured: Sequence[Record],
        *,
        held: int,
    ) -> None:
        if session.clock.name != session.opened.clock:
            raise InvalidInput(
                f"session {session.id!r} opens with a {session.opened.clock} clock and is given a "
                f"{session.clock.name} one"
            )
        self._log = log
        self._session = session
        self._trace = trace
        self._held = held
        self._actors: TaskGroup | None = None
        virtual = isinstance(session.clock, VirtualClock)
        inherited = session.inherited
        self._phases = (
            *(inherited.phases if inherited is not None else ()),
            Phase(
                opened=session.opened,
                players=session.players,
                timing=session.timing,
                request=session.request,
            ),
        )
        replayed: Sequence[Record] = trace if virtual else ()
        self._turns = self._make_turns(session.clock)
        self._appends = SessionAppends(log, session.id, staged=virtual)
        self._measuring = ScorerRunner(
            self._appends,
            session.id,
            session.scorers,
            recorded=measured,
            stop=None if is_closed(trace) else session.stop,
            on_stop=self._stop,
            excused=self._turns.excused,
            computing=None if virtual else ComputeThread(),
            flush=self._appends.flush,
        )
        self._sequencer = Sequencer(
            self._appends,
            session.id,
            turns=self._turns,
            limits=session.limits,
            measuring=self._measuring,
            settle=virtual,
            recorded=replayed,
            on_end=self._end,
            redact=session.redact,
        )
        self._performer = Performer(
            session.environment,
            self._sequencer,
            self._turns,
            seconds=session.timing.action,
            recorded=trace,
            outcomes=inherited.outcomes if inherited is not None else (),
            held=held,
        )
        self._watchdog = Watchdog(
            self._sequencer,
            self._turns,
            seconds=session.limits.seconds,
            nudges=session.nudges,
        )
        self._actor_tasks = ActorTasks(
            self._phases,
            actions=dict(session.environment.actions),
            sequencer=self._sequencer,
            turns=self._turns,
            settle=self._measuring.settle,
            hold=getattr(session.clock, "hold", None),
            recorded=trace,
        )
        if len(self._phases) > 1:
            self._sequencer.succession = self._actor_tasks

    def _make_turns(self, clock: Clock) -> VirtualTurns | RealTurns:
        session = self._session
        names = frozenset(player.participant.name for player in session.players)
        if len(names) != len(session.players) or names & {ENGINE, ENVIRONMENT}:
            raise InvalidInput(
                f"the participants of session {session.id!r} need unique names other "
                f"than {ENGINE!r} and {ENVIRONMENT!r}"
            )
        if any(player.participant not in session.opened.participants for player in session.players):
            raise InvalidInput(f"session {session.id!r} has a player who is not in its opening")
        if isinstance(clock, RealClock):
            return RealTurns(
                clock,
                actors=names,
                busy=lambda: bool(self._sequencer.state.in_flight),
                watchdog=self._call_watchdog,
                start=self._trace[-1].time if self._trace else 0.0,
            )
        first = self._phases[0]
        inherited = session.inherited
        afresh = inherited is not None and not inherited.phases
        return VirtualTurns(
            clock,
            seed=first.opened.seed,
            actors=frozenset({*(p.participant.name for p in first.players), ENVIRONMENT}),
            on_overdue=self._call_time,
            watchdog=self._call_watchdog,
            start=inherited.trace[-1].time if inherited is not None and afresh else 0.0,
        )

    async def run(self) -> SessionResult:
        try:
            await self._run()
        except Exception:
            await self._appends.leave()
            raise
        finally:
            self._turns.close()
            await self._appends.close()
        return self._result()

    async def _run(self) -> None:
        try:
            if self._measuring.needed:
                await self._play_measured()
            else:
                await self._play()
            await self._appends.flush()
        except BaseExceptionGroup as group:
            raise first_error(group) from None

    async def _play_measured(self) -> None:
        async with anyio.create_task_group() as scorers:
            scorers.start_soon(self._measure)
            await self._play()
            await self._measuring.finish()
            await self._appends.flush()
            await self._mark_measured()

    async def _measure(self) -> None:
        """The scorers' task. If a scorer cannot continue, the run ends before its actors leave, so
        that the session is not closed because they left.
        """
        try:
            await self._measuring.run()
        except SessionInterrupted as error:
            self._sequencer.interrupt(error)

    async def _play(self) -> None:
        if is_closed(self._trace):
            # Its records are measured all the same, since the process may have ended between the
            # close and the measurement of it.
            self._sequencer.adopt(self._trace)
            self._measuring.offer(self._trace)
            return
        async with anyio.create_task_group() as self._actors:
            if self._trace and isinstance(self._session.clock, RealClock):
                self._restore()
            else:
                await self._open()
            limit = self._watchdog.limit
            if isinstance(self._turns, VirtualTurns):
                self._turns.limit(limit)
            elif limit is not None:
                self._actors.start_soon(self._watchdog.wait_for_limit)
            self._actor_tasks.start(self._actors)
            await self._actor_tasks.live(ENVIRONMENT, "environment", self._performer.run)
        if self._sequencer.failure is not None:
            raise self._sequencer.failure

    def _end(self) -> None:
        """The session is closed, or the run has failed: no actor continues."""
        self._turns.end()
        if self._actors is not None:
            # From outside of any task: a cancel scope describes the task that cancels it, at length.
            asyncio.get_running_loop().call_soon(self._actors.cancel_scope.cancel)

    async def _open(self) -> None:
        session = self._session
        first = self._phases[0]
        inherited = session.inherited
        now = self._turns.now() if inherited is None else inherited.time
        drafts = [Draft(session.opened, ENGINE, "environment", now)]
        if inherited is not None and not inherited.phases:
            drafts += inherited.trace
        elif first.request is not None:
            human = next((p for p in first.opened.participants if p.role == "human"), None)
            if human is None:
                raise InvalidInput(f"session {session.id!r} has a request, and no human to make it")
            drafts.append(Draft(MessageSent(text=first.request), human.name, "human", now))
        records = await self._sequencer.emit("environment", lambda: drafts)
        if self._held:
            self._log_resumed()
        else:
            log_session_events(records)
        self._performer.restore(records)
        self._sequencer.connect(self._performer)

    def _log_resumed(self) -> None:
        get_logger("session").info("session resumed", session=self._session.id, records=self._held)

    def _restore(self) -> None:
        """Continues from the view: nothing is run again that was run before."""
        self._log_resumed()
        self._sequencer.adopt(self._trace)
        self._actor_tasks.adopt(self._trace)
        self._performer.restore(self._trace)
        self._sequencer.connect(self._performer)
        for record in self._trace:
            self._measuring.offer([record])

    def _call_time(self, name: str) -> None:
        """Ends the work that holds the turn for too long: a scorer that the actor waits for, or the
        actor's own.
        """
        if self._measuring.give_up():
            return
        self._actor_tasks.end_turn(name)

    def _call_watchdog(self, why: WakeReason) -> None:
        if self._actors is not None and not is_cancelled():
            self._actors.start_soon(self._look_after, why)

    async def _look_after(self, why: WakeReason) -> None:
        """The watchdog's task, each time that it is called."""
        try:
            await checkpoint()  # it may have been called because all are being cancelled
            await self._watchdog.look_after(why, self._actor_tasks.present)
        finally:
            self._turns.leave(ENGINE)

    async def _stop(self, advice: StopAdvised) -> None:
        detail = f"tolerance {advice.tau} reached in round {advice.round}"
        await self._sequencer.close("tolerance", ENGINE, "environment", detail)

    async def _mark_measured(self) -> None:
        """Notes that every scorer has seen the whole session, so that a later run need not look."""
        position = max(self._sequencer.position, self._measuring.position, self._appends.position)
        consumer, version = measured_mark(self._session)
        before = await self._log.checkpoint(consumer, version) if self._trace else 0
        if before < position:
            advance = Advance(
                consumer=consumer, version=version, expected=before, position=position
            )
            await self._log.append(self._session.id, [], checkpoint=advance)

    def _result(self) -> SessionResult:
        state = self._sequencer.state
        if state.closed is None:  # the task group ended without a close: a bug, never silent
            raise DuologError(f"session {self._session.id!r} ended without being closed")
        return SessionResult(
            session=self._session.id,
            reason=state.closed,
            events=state.version,
            rounds=state.rounds.number,
            utility=self._measuring.utility(self._session.opened.config.get("utility")),
            seconds=state.time - state.first,
            resumed=self._held,
            error=state.detail if state.closed == "failed" else None,
            scorer_failed=self._measuring.failed,
        )
