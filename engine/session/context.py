"""The context of one actor: its inbox, its model calls, the guard of its turn, its view, and its verbs.

A context belongs to its actor's task, and raises when it is used from another.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NoReturn, TypeAlias, assert_never, final

import msgspec
from anyio.lowlevel import checkpoint

from .. import codec
from ..errors import ContextError, Divergence, InvalidInput, StaleBase
from ..events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    CloseReason,
    DraftDropped,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Participant,
    ProfileChanged,
    ProgressRated,
    SnapshotTaken,
    Tokens,
    TurnYielded,
)
from ..records import Draft, Record
from ..rounds import is_act
from .commands import (
    UNNAMED,
    Command,
    GiveApproval,
    GiveFeedback,
    RateProgress,
    RecordEvent,
    Sender,
    SubmitSnapshot,
    TakeAction,
    edit_files,
    handle_all,
)
from .decisions import (
    Act,
    Approve,
    Ask,
    ChangeProfile,
    Ending,
    Finish,
    Note,
    Rate,
    Say,
    Submit,
    Verb,
    Wait,
)
from .sequencer import Sequencer
from .time.scheduler import Turns, WakeReason
from .time.timing import Timing
from .view import View, Visibility

__all__ = (
    "ActorContext",
    "Inbox",
    "ModelLine",
    "Reply",
    "TurnGuard",
)


_AT_ONCE = 5000
_INSTANT = 0.001  # seconds in which no actor does that many things


@final
class TurnGuard:
    """Checks each use of a context: by its actor's own task, in its turn, and not in an endless loop.

    Args:
        name: the actor's.
        turns: the session's clock.
    """

    def __init__(self, name: str, turns: Turns) -> None:
        self._name = name
        self._turns = turns
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._instant = -math.inf
        self._uses = 0

    def attach(self) -> None:
        """Binds the context to the task that runs now: its actor's."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()

    def check(self) -> None:
        """Counts a use of the context.

        Raises:
            ContextError: it is of another task, or out of turn, or one of thousands at one time.
        """
        if asyncio.current_task(self._loop) is not self._task:
            raise ContextError(
                f"the context of {self._name!r} was used from a task that is not its actor's; pass "
                "the other task's result to the actor, and let the actor emit it"
            )
        if not self._turns.holds(self._name):
            raise ContextError(
                f"it is not the turn of {self._name!r}: its wait was cancelled. Time-outs of "
                "anyio's measure the wall; wait with news(within=...) for session time to pass"
            )
        now = self._turns.now()
        if now - self._instant > _INSTANT:
            self._instant, self._uses = now, 0
        self._uses += 1
        if self._uses > _AT_ONCE:
            raise ContextError(
                f"{self._name!r} has done {self._uses} things at session time {now} without any "
                "time passing; wait for news, or let work take time"
            )

    def until(self, seconds: float) -> float:
        """The session time that many seconds from now.

        Raises:
            ContextError: that never comes.
        """
        if not math.isfinite(seconds):
            raise ContextError(
                f"{self._name!r} cannot wait for {seconds} s; leave the time out to wait"
            )
        return self._turns.now() + seconds


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a model call, as it is recorded; see ``ModelCalled``."""

    reply: JSON = None
    tokens: Tokens = Tokens()
    latency: float = 0.0
    cost: float | None = None
    error: str | None = None

    @classmethod
    def recorded(cls, event: ModelCalled) -> Reply:
        """The outcome that an event records."""
        return cls(
            reply=event.reply,
            tokens=event.tokens,
            latency=event.latency,
            cost=event.cost,
            error=event.error,
        )

    def event(self, *, model: str, purpose: str, request: str, attempt: int) -> ModelCalled:
        """The event that records the outcome; ``request`` is the digest of the request."""
        return ModelCalled(
            model=model,
            purpose=purpose,
            request=request,
            reply=self.reply,
            tokens=self.tokens,
            latency=self.latency,
            cost=self.cost,
            error=self.error,
            attempt=attempt,
        )


@final
class ModelLine:
    """Records one actor's model calls.

    Args:
        view: the records that the actor can see.
        guard: the guard of its context.
        sequencer: records the calls.
        turns: the session's clock.
    """

    def __init__(self, view: View, guard: TurnGuard, sequencer: Sequencer, turns: Turns) -> None:
        self._view = view
        self._guard = guard
        self._sequencer = sequencer
        self._turns = turns

    async def call(
        self,
        *,
        model: str,
        purpose: str,
        request: object,
        send: Callable[[], Awaitable[Reply]],
        attempt: int = 1,
    ) -> Reply:
        """Asks a model, and records the call before the reply is used.

        On re-executing a recorded session the recorded reply is taken, and ``send`` not called.

        Args:
            model: the model's name.
            purpose: the purpose of the call, e.g. ``act``.
            request: the whole request, as JSON can say it; its digest is recorded.
            send: asks, and waits for the reply.
            attempt: 1 for the first try.

        Raises:
            Divergence: the recorded session did something else here.
        """
        self._guard.check()
        digest = codec.digest(request)
        view, sequencer = self._view, self._sequencer
        held = sequencer.recorded_next
        if held is None:
            await sequencer.flush()
            reply = await send()
        else:
            event = held.event
            if not isinstance(event, ModelCalled) or held.actor != view.me:
                sequencer.diverge(
                    held.version,
                    f"the log holds {held.kind} of {held.actor!r}, now {view.me!r} asks a model",
                )
            reply = Reply.recorded(event)
        called = reply.event(model=model, purpose=purpose, request=digest, attempt=attempt)
        records = await sequencer.emit(
            view.role,
            lambda: [
                Draft(called, view.me, view.role, self._turns.now(), seen=view.version),
            ],
        )
        # As it was recorded, without secrets: the actor sees the same when it is executed again.
        recorded = records[-1].event if records else called
        return Reply.recorded(recorded) if isinstance(recorded, ModelCalled) else reply

    def excused(self) -> AbstractContextManager[None]:
        """A context for a wait that is sure to end because it has a separate time-out: the actor
        does not become overdue if it holds the turn meanwhile.
        """
        self._guard.check()
        return self._turns.excused()

    def interrupt(self, why: str | Divergence) -> NoReturn:
        """Leaves the session as the log has it, to be resumed; see ``ActorContext.interrupt``."""
        self._guard.check()
        self._sequencer.interrupt(why)


@final
class Inbox:
    """Takes the records of a session for one actor, and wakes it when they are news to it.

    News is a cursor against the log, never a flag: records that an actor has not looked at stay here, so
    that it sees everything once and loses nothing.

    Args:
        view: the records that the actor can see; it changes only in ``look``.
        turns: the session's clock.
    """

    def __init__(self, view: View, turns: Turns) -> None:
        self._view = view
        self._turns = turns
        self._visibility = Visibility(view.me)
        self._waiting: list[Record] = []
        self._news = 0
        self._submitted: int | None = None

    def deliver(self, record: Record) -> None:
        """Takes the next trace record, as far as the actor may see it."""
        seen = self._visibility.see(record)
        if seen is None:
            return
        self._waiting.append(seen)
        if self._visibility.is_news(seen):
            self._news = seen.version
            self._turns.wake(self._view.me)
        elif seen.kind == "SnapshotTaken":
            self._submitted = seen.version

    def look(self, version: int) -> tuple[Record, ...]:
        """Brings the view up to date with a trace version; returns the new records."""
        view = self._view
        fresh = tuple(self._waiting)
        self._waiting.clear()
        for record in fresh:
            view.feed(record)
        view.version = max(view.version, version)
        view.now = self._turns.now()
        return fresh

    def has_news(self) -> bool:
        """Whether there is news that the view does not show."""
        return self._news > self._view.version

    @property
    def snapshot(self) -> int | None:
        """Version of the latest snapshot that the actor knows: in its view, or its own submission."""
        seen = self._view.snapshot.version if self._view.snapshot else None
        return max(seen or 0, self._submitted or 0) or None

    def owns_any(self, actions: Iterable[int]) -> bool:
        """Whether any of the actions at these trace versions is the actor's own."""
        return not self._visibility.mine.isdisjoint(actions)


_Base: TypeAlias = int | msgspec.UnsetType | None
_Simple: TypeAlias = Say | Act | Ask | Approve | Note | ChangeProfile | Rate | Wait | Finish


@final
class ActorContext:
    """The workplace of one actor in a session.

    Attributes:
        participant: the actor as a participant.
        name: the actor's name.
        role: the actor's role.
        view: the records that the actor can see; it changes only in ``look``.
        inbox: receives the records for the actor.
        models: records the actor's model calls.
        timing: the session's model of working time.
    """

    def __init__(
        self,
        participant: Participant,
        view: View,
        sequencer: Sequencer,
        turns: Turns,
        timing: Timing,
    ) -> None:
        self.participant = participant
        self.name = participant.name
        self.role = participant.role
        self.view = view
        self.timing = timing
        self.inbox = Inbox(view, turns)
        self._guard = TurnGuard(participant.name, turns)
        self.models = ModelLine(view, self._guard, sequencer, turns)
        self._sequencer = sequencer
        self._turns = turns
        self._acted = True

    @property
    def session(self) -> str:
        """The session's id."""
        return self._sequencer.session

    @property
    def now(self) -> float:
        """Session time in seconds."""
        return self._turns.now()

    def attach(self) -> None:
        """Binds the context to the task that runs now: its actor's."""
        self._guard.attach()

    # --- looking and waiting ---------------------------------------------------------------------

    def look(self) -> tuple[Record, ...]:
        """Brings the view up to date; returns the records since the last look."""
        self._guard.check()
        return self.inbox.look(self._sequencer.state.version)

    async def news(self, *, within: float | None = None) -> bool:
        """Waits for news that the view does not show; False once ``within`` seconds passed without."""
        return await self.news_before(None if within is None else self._guard.until(within))

    async def news_before(self, until: float | None) -> bool:
        """Waits for news until a session time; False if the time came first."""
        self._guard.check()
        if self.inbox.has_news():
            return True
        while True:
            woke = await self._turns.park(self.name, until=until, news=True)
            if self.inbox.has_news():
                return True
            if woke is WakeReason.TIME:
                return False

    async def pause(self, seconds: float) -> None:
        """Lets session time pass, even if there is news."""
        self._guard.check()
        until = self._guard.until(seconds)
        while self.now < until:
            await self._turns.park(self.name, until=until, news=False)

    async def result(self, action: Record) -> ActionResolved:
        """Waits for the outcome of one of the actor's own actions."""
        self.look()
        while True:
            seen = self.view.actions.get(action.version)
            if seen is None:
                raise ContextError(f"version {action.version} is not an action of {self.name!r}")
            if seen.resolved is not None:
                return seen.resolved
            await self.news()
            self.look()

    # --- verbs -----------------------------------------------------------------------------------

    async def say(self, text: str, to: Sequence[str] = ()) -> Record:
        """Sends a message to the others, or to those named."""
        return (await self.emit(Say(text, tuple(to))))[0]

    async def act(self, name: str, arguments: Mapping[str, JSON] | None = None) -> Record:
        """Takes a task action, and returns at once; the outcome arrives later as news."""
        return (await self.emit(Act(name, arguments or {})))[0]

    async def submit(
        self,
        content: JSON,
        *,
        media_type: str = "text/plain",
        overwrite: bool = False,
        files: bool = False,
    ) -> Record:
        """Submits a new version of the shared output, made from the snapshot in the view.

        Args:
            content: see ``Submit``, like the others.
            media_type: likewise.
            overwrite: likewise.
            files: likewise.

        Raises:
            StaleBase: the output has changed since; the attempt is in the log as a failed action.
        """
        record = (await self.emit(Submit(content, media_type, overwrite, files)))[0]
        if record.kind != "SnapshotTaken":
            raise StaleBase(self.inbox.snapshot, self._sequencer.state.snapshot)
        return record

    async def ask(
        self, question: str, *, action: str | None = None, arguments: Mapping[str, JSON] = {}
    ) -> Record:
        """Asks for approval."""
        return (await self.emit(Ask(question, action, arguments)))[0]

    async def approve(self, asked: int, *, approved: bool = True, comment: str = "") -> Record:
        """Gives or denies the approval asked for at trace version ``asked``."""
        return (await self.emit(Approve(asked, approved, comment)))[0]

    async def note(self, text: str) -> Record:
        """Writes into the actor's own memory."""
        return (await self.emit(Note(text)))[0]

    async def change_profile(self, profile: JSON, reason: str = "") -> Record:
        """Holds other goals, or knows more, from now on: the actor's private part, in full."""
        return (await self.emit(ChangeProfile(profile, reason)))[0]

    async def rate(self, rating: int, explanation: str = "", *, round: int | None = None) -> Record:
        """Rates the progress of a round, 1 to 5: of the latest in which an agent acted, unless a
        round is named.

        Raises:
            ContextError: there is no such round, or no agent has acted yet.
        """
        return (await self.emit(Rate(rating, explanation, round)))[0]

    async def feedback(self, of: int, edits_kept: float, *, id: str | None = None) -> Record:
        """Says which share of the edits of a snapshot the actor has kept, in [0, 1].

        Args:
            of: trace version of the snapshot.
            edits_kept: the share.
            id: see ``emit``.

        Raises:
            ContextError: the share is not in [0, 1].
        """
        self._guard.check()
        if not 0.0 <= edits_kept <= 1.0:
            raise ContextError(f"the share of edits kept lies in [0, 1], not {edits_kept!r}")
        given = FeedbackGiven(edits_kept=edits_kept, of=of)
        return (await self._send([GiveFeedback(given)], id))[0]

    async def yield_turn(self, reason: str = "") -> None:
        """Says that the actor leaves the turn to the others; silent if it has not acted since it
        said so last, or waits for one of its own outcomes: two waiting actors would wake each other.
        """
        self._guard.check()
        if self._acted and not self.inbox.owns_any(self._sequencer.state.in_flight):
            self._acted = False
            await self._send([RecordEvent(TurnYielded(reason=reason))])

    async def drop(self, draft: DraftDropped) -> None:
        """Records a draft that the actor abandoned; others do not see it."""
        self._guard.check()
        await self._send([RecordEvent(draft)])

    async def finish(self, detail: str = "", reason: Ending = "finished") -> None:
        """Ends the session: ``finished`` if its output is good, ``abandoned`` to give up."""
        self._guard.check()
        await self._end(reason, detail)

    async def cancel(self, detail: str = "") -> None:
        """Ends the session as ``cancelled``, which says nothing about the collaboration."""
        self._guard.check()
        await self._end("cancelled", detail)

    async def _end(self, reason: CloseReason, detail: str) -> None:
        if not await self._sequencer.close(reason, self.name, self.role, detail):
            await checkpoint()  # ends an actor that does this in a loop: nothing else would

    def interrupt(self, why: str | Divergence) -> NoReturn:
        """Leaves the session as the log has it, to be resumed: an external reason prevents it from
        continuing now.

        Raises:
            SessionInterrupted: always; so does ``run_session``.
            Divergence: if that is the reason.
        """
        self._guard.check()
        self._sequencer.interrupt(why)

    async def emit(
        self, *verbs: Verb, base: _Base = msgspec.UNSET, id: str | None = None
    ) -> list[Record]:
        """Carries out verbs in one append: all of them or none; those after a refused snapshot are
        dropped, and the refusal is for the actor to see. ``Wait`` and ``Finish`` have no event of
        this kind and are left to the caller.

        Args:
            verbs: in order.
            base: version of the snapshot from which a submitted one was made, None for none; by
                default the latest that the actor knows.
            id: the caller's id of the event, unique in the session; for a single verb. It is for the
                caller to look whether the view shows it already, in ``view.sent``.

        Raises:
            ContextError: one of the verbs makes no sense here; nothing is recorded.
        """
        self._guard.check()
        if id is not None and len(verbs) != 1:
            raise ContextError(f"an id is for one verb, and these are {len(verbs)}")
        commands: list[Command] = []
        submitted = False
        for verb in verbs:
            if isinstance(verb, Submit):
                # Another one in the same decision is made from the first.
                known = msgspec.UNSET if submitted or verb.overwrite else self._base(base)
                commands.append(_submission(verb, known))
                submitted = True
            else:
                commands.append(self._command(verb))
        records = await self._send(commands, id)
        self._acted = self._acted or any(map(is_act, records))
        return records

    def _base(self, decided_on: _Base) -> int | None:
        if isinstance(decided_on, msgspec.UnsetType):
            return self.inbox.snapshot
        return decided_on

    def _command(self, verb: _Simple) -> Command:
        match verb:
            case Say(text, to):
                return RecordEvent(MessageSent(text=text, to=to))
            case Act(name, arguments):
                return TakeAction(ActionTaken(name=name, arguments=arguments))
            case Ask(question, action, arguments, to):
                asked = ApprovalAsked(question=question, action=action, arguments=arguments, to=to)
                return RecordEvent(asked)
            case Approve(version, approved, comment, source):
                if version not in self.view.approvals:
                    raise ContextError(f"no approval was requested at version {version}")
                return GiveApproval(
                    ApprovalGiven(asked=version, approved=approved, comment=comment, source=source)
                )
            case Note(text):
                return RecordEvent(NoteTaken(text=text))
            case ChangeProfile(profile, reason):
                changed = ProfileChanged(owner=self.name, profile=profile, reason=reason)
                return RecordEvent(changed)
            case Rate(rating, explanation, number):
                named = UNNAMED if number is None else number
                return RateProgress(
                    ProgressRated(round=named, rating=rating, explanation=explanation)
                )
            case Wait() | Finish():
                raise ContextError(f"{type(verb).__name__} cannot be emitted: it is not an event")
        assert_never(verb)

    def _send(self, commands: Sequence[Command], id: str | None = None) -> Awaitable[list[Record]]:
        def make() -> Sequence[Draft]:
            sender = Sender(self.name, self.role, self._turns.now(), id, self.view.version)
            try:
                return handle_all(commands, self._sequencer.state, sender)
            except InvalidInput as error:
                raise ContextError(str(error)) from None

        return self._sequencer.emit(self.role, make)


def _submission(verb: Submit, base: _Base) -> SubmitSnapshot:
    if verb.files:
        try:
            changed = msgspec.convert(verb.content, dict[str, str | None])
        except msgspec.ValidationError as error:
            raise ContextError(f"the files that changed are texts by path: {error}") from None
        return edit_files(changed, media_type=verb.media_type, base=base)
    snapshot = SnapshotTaken(
        content=verb.content, digest=codec.digest(verb.content), media_type=verb.media_type
    )
    return SubmitSnapshot(snapshot, base)
