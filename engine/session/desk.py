"""The desk of one actor: its inbox, its view, and its verbs.

A desk belongs to its actor's task, and raises when it is used from another. News is a cursor
against the log, never a flag: what an actor has not looked at stays in its inbox, so that it sees
everything once and loses nothing.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NoReturn, final

import msgspec

from .. import codec
from ..errors import DeskError, Divergence, StaleBase
from ..events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Participant,
    ProgressRated,
    SnapshotTaken,
    Tokens,
    TurnYielded,
)
from ..records import ENGINE, TRACE, Draft, Record
from ..rounds import is_act
from .decisions import Act, Approve, Ask, Decision, Finish, Note, Rate, Say, Submit, Verb, Wait
from .scheduler import Turns, Woke
from .sequencer import Sequencer
from .timing import Timing
from .view import View, Visibility

__all__ = ("Desk", "Reply")

_DEEDS_AT_ONCE = 5000
_INSTANT = 0.001  # seconds in which nobody does so many things


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a model call came to, as it is recorded: see ``ModelCalled``."""

    reply: JSON = None
    tokens: Tokens = Tokens()
    latency: float = 0.0
    cost: float | None = None
    error: str | None = None


@final
class Desk:
    """Where one actor of a session works.

    Attributes:
        participant: who works here.
        name: its name.
        role: its role.
        view: what the actor can see; it changes only in ``look``.
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
        self._sequencer = sequencer
        self._turns = turns
        self._visibility = Visibility(participant.name)
        self._inbox: list[Record] = []
        self._has_news = 0
        self._acted = True
        self._own_snapshot: int | None = None
        self._decided_on: int | msgspec.UnsetType | None = msgspec.UNSET
        self._instant = -math.inf
        self._deeds = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None

    @property
    def session(self) -> str:
        """The session's id."""
        return self._sequencer.session

    @property
    def now(self) -> float:
        """Session time in seconds."""
        return self._turns.now()

    def attach(self) -> None:
        """Binds the desk to the task that runs now: its actor's."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()

    def deliver(self, record: Record) -> None:
        """Takes the next trace record into the inbox, as far as the actor may see it."""
        seen = self._visibility.see(record)
        if seen is None:
            return
        self._inbox.append(seen)
        if self._visibility.is_news(seen):
            self._has_news = seen.version
            self._turns.wake(self.name)
        elif seen.kind == "SnapshotTaken":
            self._own_snapshot = seen.version

    # --- looking and waiting ---------------------------------------------------------------------

    def look(self) -> tuple[Record, ...]:
        """Brings the view up to date; gives what came since the last look."""
        self._check()
        fresh = tuple(self._inbox)
        self._inbox.clear()
        for record in fresh:
            self.view.feed(record)
        self.view.version = max(self.view.version, self._sequencer.version)
        self.view.now = self._turns.now()
        return fresh

    async def news(self, *, within: float | None = None) -> bool:
        """Waits for news that the view does not show; False once ``within`` seconds passed without."""
        return await self.news_before(None if within is None else self._until(within))

    async def news_before(self, until: float | None) -> bool:
        """Waits for news until a session time; False if the time came first."""
        self._check()
        if self._has_news > self.view.version:
            return True
        while True:
            woke = await self._turns.park(self.name, until=until, news=True)
            if self._has_news > self.view.version:
                return True
            if woke is Woke.TIME:
                return False

    async def pause(self, seconds: float) -> None:
        """Lets session time pass, come what may."""
        self._check()
        until = self._until(seconds)
        while self.now < until:
            await self._turns.park(self.name, until=until, news=False)

    def base(self) -> int | None:
        """Version of the latest snapshot that the actor knows: in its view, or its own."""
        seen = self.view.snapshot.version if self.view.snapshot else None
        return max(seen or 0, self._own_snapshot or 0) or None

    # --- verbs -----------------------------------------------------------------------------------

    async def say(self, text: str, to: Sequence[str] = ()) -> Record:
        """Sends a message to the others, or to those named."""
        return (await self.emit(Say(text, tuple(to))))[0]

    async def act(self, name: str, arguments: Mapping[str, JSON] | None = None) -> Record:
        """Takes a task action; goes on at once, the outcome is news later."""
        return (await self.emit(Act(name, arguments or {})))[0]

    async def result(self, action: Record) -> ActionResolved:
        """Waits for the outcome of an action of one's own."""
        self.look()
        while True:
            seen = self.view.actions.get(action.version)
            if seen is None:
                raise DeskError(f"version {action.version} is no action of {self.name!r}")
            if seen.resolved is not None:
                return seen.resolved
            await self.news()
            self.look()

    async def submit(
        self, content: JSON, *, media_type: str = "text/plain", overwrite: bool = False
    ) -> Record:
        """Submits a new version of the shared output, made from the snapshot in the view.

        Raises:
            StaleBase: the output has changed since; the attempt is in the log as a failed action.
        """
        record = (await self.emit(Submit(content, media_type, overwrite)))[0]
        if record.kind != "SnapshotTaken":
            raise StaleBase(self.base(), self._sequencer.snapshot)
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

    async def rate(self, rating: int, explanation: str = "") -> Record:
        """Rates the progress of the round that is open, 1 to 5."""
        return (await self.emit(Rate(rating, explanation)))[0]

    async def yield_turn(self, reason: str = "") -> None:
        """Says that the actor leaves the turn to the others; silent if it has not acted since it
        said so last, or waits for an outcome of its own: two who wait would wake each other.
        """
        self._check()
        waiting = not self._visibility.mine.isdisjoint(self._sequencer.in_flight)
        if self._acted and not waiting:
            self._acted = False
            await self._sequencer.emit(
                self.name,
                self.role,
                lambda: [self._draft(TurnYielded(reason=reason))],
            )

    async def finish(self, detail: str = "") -> None:
        """Ends the session."""
        self._check()
        await self._sequencer.close("finished", self.name, self.role, detail)

    async def emit(self, *verbs: Verb) -> list[Record]:
        """Carries out verbs in one append: all of them or none; those after a refused snapshot are
        dropped, and the refusal is for the actor to see. ``Wait`` and ``Finish`` have no
        event of this kind and are left to the caller.
        """
        self._check()
        sequencer = self._sequencer

        def make() -> list[Draft]:
            drafts: list[Draft] = []
            base = sequencer.snapshot
            for verb in verbs:
                base = self._add(drafts, verb, base)
                if isinstance(drafts[-1].event, ActionResolved):
                    break  # what follows was decided in the belief that the snapshot stands
            return drafts

        records = await sequencer.emit(self.name, self.role, make)
        self._acted = self._acted or any(map(is_act, records))
        return records

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
            purpose: what it is asked for.
            request: the whole request, as JSON can say it; its digest is recorded.
            send: asks, and waits for the reply.
            attempt: 1 for the first try.

        Raises:
            Divergence: the recorded session did something else here.
        """
        self._check()
        digest = codec.digest(request)
        held = self._sequencer.recorded_next
        if held is None:
            reply = await send()
        else:
            event = held.event
            if not isinstance(event, ModelCalled) or held.actor != self.name:
                self._sequencer.diverge(
                    held.version,
                    f"the log holds {held.kind} of {held.actor!r}, now {self.name!r} asks a model",
                )
            reply = Reply(
                reply=event.reply,
                tokens=event.tokens,
                latency=event.latency,
                cost=event.cost,
                error=event.error,
            )
        called = ModelCalled(
            model=model,
            purpose=purpose,
            request=digest,
            reply=reply.reply,
            tokens=reply.tokens,
            latency=reply.latency,
            cost=reply.cost,
            error=reply.error,
            attempt=attempt,
        )
        role = self.role
        await self._sequencer.emit(self.name, role, lambda: [self._draft(called)])
        return reply

    def excused(self) -> AbstractContextManager[None]:
        """While the actor waits for something that is sure to come, with a time-out of its own:
        holding the turn for that does not make it overdue.
        """
        self._check()
        return self._turns.excused()

    def interrupt(self, why: str | Divergence) -> NoReturn:
        """Leaves the session as the log has it, to be resumed: it cannot go on now, for reasons
        that are not its own.

        Raises:
            SessionInterrupted: always; so does ``run_session``.
            Divergence: if that is why.
        """
        self._check()
        self._sequencer.interrupt(why)

    # --- decisions -------------------------------------------------------------------------------

    async def carry_out(
        self, decision: Decision, *, base: int | msgspec.UnsetType | None = msgspec.UNSET
    ) -> bool:
        """Emits what was decided; False where the actor is done (``Finish``), which is not so where
        a snapshot was refused: the decision to finish was made in the belief that it stands.

        Args:
            decision: what was decided.
            base: version of the snapshot that was known when it was, if that is not now; a snapshot
                submitted was made from this one.
        """
        verbs = [v for v in decision.verbs if not isinstance(v, Wait | Finish)]
        self._decided_on = base
        try:
            records = await self.emit(*verbs) if verbs else []
        finally:
            self._decided_on = msgspec.UNSET
        if records and _is_refusal(records[-1]):
            return True
        for verb in decision.verbs:
            if isinstance(verb, Finish):
                await self.finish(verb.detail)
                return False
        return True

    def _add(self, drafts: list[Draft], verb: Verb, base: int | None) -> int | None:
        """Adds a verb's drafts; gives the version of the latest snapshot after them."""
        version = self._sequencer.version + len(drafts) + 1
        match verb:
            case Say():
                drafts.append(self._draft(MessageSent(text=verb.text, to=verb.to)))
            case Act():
                drafts.append(self._draft(ActionTaken(name=verb.name, arguments=verb.arguments)))
            case Submit():
                return self._add_snapshot(drafts, verb, base, version)
            case Ask():
                asked = ApprovalAsked(
                    question=verb.question, action=verb.action, arguments=verb.arguments, to=verb.to
                )
                drafts.append(self._draft(asked))
            case Approve():
                if verb.asked not in self.view.approvals:
                    raise DeskError(f"nobody asked for an approval at version {verb.asked}")
                given = ApprovalGiven(
                    asked=verb.asked, approved=verb.approved, comment=verb.comment
                )
                drafts.append(self._draft(given, cause=f"{TRACE}/{verb.asked}"))
            case Note():
                drafts.append(self._draft(NoteTaken(text=verb.text)))
            case Rate():
                drafts.append(self._draft(self._rating(verb)))
            case Wait() | Finish():
                raise DeskError(f"{type(verb).__name__} cannot be emitted: it is no event")
        return base

    def _add_snapshot(
        self, drafts: list[Draft], verb: Submit, latest: int | None, version: int
    ) -> int | None:
        """A snapshot, or, where its base is outdated, the refusal: an action that failed."""
        decided = self._decided_on
        base = self.base() if isinstance(decided, msgspec.UnsetType) else decided
        if verb.overwrite:
            base = latest
        digest = codec.digest(verb.content)
        if base == latest or (drafts and latest is not None and latest > self._sequencer.version):
            taken = SnapshotTaken(
                content=verb.content, digest=digest, media_type=verb.media_type, base=latest
            )
            drafts.append(self._draft(taken))
            return version
        arguments = {
            "content": verb.content,
            "media_type": verb.media_type,
            "base": base,
            "digest": digest,
        }
        drafts.append(self._draft(ActionTaken(name="submit", arguments=arguments)))
        refused = ActionResolved(
            action=version, outcome="failed", error=str(StaleBase(base, latest))
        )
        drafts.append(Draft(refused, ENGINE, "environment", self.now, cause=f"{TRACE}/{version}"))
        return latest

    def _rating(self, verb: Rate) -> ProgressRated:
        if not 1 <= verb.rating <= 5:
            raise DeskError(f"a rating is 1 to 5, not {verb.rating}")
        current = self._sequencer.rounds.current
        return ProgressRated(
            round=current.number,
            rating=verb.rating,
            until=current.last_act,
            explanation=verb.explanation,
        )

    def _draft(self, event: Event, cause: str | None = None) -> Draft:
        now = self._turns.now()
        return Draft(event, self.name, self.role, now, None, cause, self.view.version)

    def _until(self, seconds: float) -> float:
        if not math.isfinite(seconds):
            raise DeskError(
                f"{self.name!r} cannot wait for {seconds} s; leave the time out to wait"
            )
        return self.now + seconds

    def _check(self) -> None:
        """Refuses use that would break the session's order, or never end."""
        if asyncio.current_task(self._loop) is not self._task:
            raise DeskError(
                f"the desk of {self.name!r} was used from a task that is not its actor's; hand what "
                "the other task finds to the actor, and let the actor speak"
            )
        if not self._turns.holds(self.name):
            raise DeskError(
                f"it is not the turn of {self.name!r}: its wait was cancelled. Time-outs of anyio's "
                "measure the wall; wait with news(within=...) for session time to pass"
            )
        now = self._turns.now()
        if now - self._instant > _INSTANT:
            self._instant, self._deeds = now, 0
        self._deeds += 1
        if self._deeds > _DEEDS_AT_ONCE:
            raise DeskError(
                f"{self.name!r} has done {self._deeds} things at session time {now} without any "
                "time passing; wait for news, or let work take time"
            )


def _is_refusal(record: Record) -> bool:
    return record.kind == "ActionResolved" and record.actor == ENGINE
