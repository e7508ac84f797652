"""Actors: coroutines that act with a context, players that name them, and the loop that runs a policy."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, cast

import msgspec

from ..errors import ContextError, InvalidInput
from ..events import DraftDropped, Participant
from .context import ActorContext
from .decisions import (
    Act,
    Decision,
    Finish,
    Say,
    Verb,
    Wait,
    drafted,
)
from .view import View

__all__ = (
    "Actor",
    "Part",
    "Player",
    "Policy",
    "actor_of",
    "carry_out",
    "play",
    "playing",
    "playing_new",
)

Actor = Callable[[ActorContext], Awaitable[None]]
"""Works with a context until the session ends, or it has nothing more to do."""


class Player(msgspec.Struct, frozen=True):
    """A participant, and the actor that plays its part."""

    participant: Participant
    actor: Actor


class Policy(Protocol):
    """The usual way to write an actor: look at a view, decide.

    ``decide`` is called when there is news, and when a wait is over. News during the working time of
    a decision calls it again, with that decision in ``view.pending`` and the time spent on it.
    Return the same decision to keep it, another to change it, or ``NOTHING`` to drop it. Use only
    the view, and ``view.random`` for randomness, so that a seed determines everything.
    """

    async def decide(self, view: View) -> Decision:
        """The next decision in the light of a view."""
        ...


Part: TypeAlias = Callable[[], Policy] | Actor
"""Your own agent or user: the class of a policy, or another callable that makes a policy for each
session; or an actor, which is an async function of a context.
"""


def playing(policy: Policy) -> Actor:
    """The actor that plays a policy.

    For example::

        from duolog.engine.session.decisions import Decision, Say

        class Echo:
            async def decide(self, view: duolog.View) -> Decision:
                if not view.messages or view.messages[-1].actor == view.me:
                    return Decision()  # waits for news
                return Decision((Say(view.messages[-1].text),))

        echo = duolog.Participant(name="echo", role="agent")
        player = duolog.Player(echo, duolog.playing(Echo()))

    Args:
        policy: decides. The same object plays each session that the actor is in, so keep what it
            knows in its view.
    """

    async def actor(context: ActorContext) -> None:
        await play(context, policy)

    return actor


def playing_new(make: Callable[[], Policy]) -> Actor:
    """The actor that plays a new policy each time, so that it can play a session again, or several
    sessions.
    """

    async def actor(context: ActorContext) -> None:
        await play(context, make())

    return actor


def actor_of(part: Part, name: str) -> Actor:
    """The actor that plays your own agent or user.

    Args:
        part: the class of a policy, or an actor.
        name: the name of the part, for messages.

    Raises:
        InvalidInput: the part is neither. Errors of the class itself are passed on.
    """
    if inspect.iscoroutinefunction(part):
        return part
    if not inspect.isclass(part) and hasattr(part, "decide"):
        raise InvalidInput(f"{name} is an object: give its class, so that each session has its own")
    if not callable(part):
        raise InvalidInput(f"{name} is not a class with 'async def decide(self, view)'")
    make = cast("Callable[[], Policy]", part)
    decide = getattr(part if inspect.isclass(part) else make(), "decide", None)
    if not inspect.iscoroutinefunction(decide):
        what = "its decide is no async function" if callable(decide) else "it has no decide"
        raise InvalidInput(f"{name} is not a policy: {what}; write 'async def decide(self, view)'")
    return playing_new(make)


async def play(context: ActorContext, policy: Policy) -> None:
    """Waits for news, decides, lets the working time pass, emits; until the policy finishes.

    News that arrives while the working time passes has the pending decision reconsidered. A
    decision that stands goes on where it was, once the news has been read (``Timing.interruption`` at
    most), and what it submits was made from the snapshot known when it was made; another one starts
    anew, once all that was seen has been read. What is given up is recorded, see ``DraftDropped``.

    Raises:
        ContextError: the policy decides again and again without time passing.
    """
    idle = False
    while True:
        decision, reading, working = await _decide(context, policy, idle=idle)
        read = context.now + reading  # when all that was seen so far has been read
        until = read + working
        base = context.inbox.snapshot
        patience = context.timing.interruption
        while await context.news_before(until):
            before, takes = decision, working
            spent = min(max(takes - (until - context.now), 0.0), takes)
            decision, reading, working = await _decide(
                context, policy, idle=False, pending=before, spent=spent, seconds=takes
            )
            if decision == before and drafted(before):
                reading = min(reading, patience)
                until, patience = until + reading, patience - reading
                read = max(read, context.now) + reading
            else:
                dropped = _dropped(before, decision, spent, takes)
                if dropped is not None:
                    await context.drop(dropped)
                read = max(read, context.now) + reading
                until, base = read + working, context.inbox.snapshot
                patience = context.timing.interruption
        if not await carry_out(context, decision, base=base):
            return
        idle = await _wait(context, decision)


async def carry_out(
    context: ActorContext,
    decision: Decision,
    *,
    base: int | msgspec.UnsetType | None = msgspec.UNSET,
) -> bool:
    """Emits a decision; False if the actor is done (``Finish``). If a snapshot was refused, the
    actor is not done: it decided to finish on the assumption that the snapshot is accepted.

    Args:
        context: the actor's.
        decision: the decision to emit.
        base: version of the latest snapshot that the actor knew when it decided, if it has seen
            another since. A submitted snapshot counts as made from this one.
    """
    verbs = [verb for verb in decision.verbs if not isinstance(verb, Wait | Finish)]
    records = await context.emit(*verbs, base=base) if verbs else []
    if records and records[-1].kind == "ActionResolved":
        return True
    for verb in decision.verbs:
        if isinstance(verb, Finish):
            await context.finish(verb.detail, verb.reason)
            return False
    return True


async def _decide(
    context: ActorContext,
    policy: Policy,
    *,
    idle: bool,
    pending: Decision | None = None,
    spent: float = 0.0,
    seconds: float = 0.0,
) -> tuple[Decision, float, float]:
    """A decision, the time that reading took, and the time that carrying it out takes."""
    view = context.view
    role = context.participant.role
    view.next_decision(context.look(), pending, idle, spent=spent, seconds=seconds)
    decision = _checked(await policy.decide(view), context.name)
    reading = context.timing.reading(role, view)
    stands = pending is not None and decision == pending
    working = seconds if stands else context.timing.working(role, view, decision)
    view.mark_read()
    return decision, reading, working


def _dropped(before: Decision, now: Decision, spent: float, seconds: float) -> DraftDropped | None:
    """The abandoned part of a draft; None if there is none, or the draft was only revised."""
    left = {type(verb) for verb in drafted(now)}
    gone = [verb for verb in drafted(before) if now.drops or type(verb) not in left]
    if not gone:
        return None
    return DraftDropped(
        text="\n".join(verb.text for verb in gone if isinstance(verb, Say)),
        actions=tuple(
            verb.name if isinstance(verb, Act) else type(verb).__name__.lower()
            for verb in gone
            if not isinstance(verb, Say)
        ),
        seconds=spent,
        of=seconds,
    )


def _checked(decided: object, name: str) -> Decision:
    """Checks that a policy returned a decision of verbs, and returns it.

    Raises:
        ContextError: the policy returned something else.
    """
    if not isinstance(decided, Decision):
        raise ContextError(f"{name!r} has to decide on a Decision, not {decided!r}")
    for verb in decided.verbs:
        if not isinstance(verb, Verb):
            raise ContextError(
                f"the decision of {name!r} holds {verb!r}, which is not a verb such as Say"
            )
    return decided


async def _wait(context: ActorContext, decision: Decision) -> bool:
    """Waits if the decision says so; True if the wait ended without news."""
    wait = next((verb for verb in decision.verbs if isinstance(verb, Wait)), None)
    if wait is None and (decision.verbs or decision.seconds is not None):
        return False
    await context.yield_turn(wait.reason if wait else "")
    seconds = wait.seconds if wait else None
    return not await context.news(within=seconds)
