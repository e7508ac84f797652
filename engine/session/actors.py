"""Actors: coroutines that act at a desk, players that name them, and the loop that runs a policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from ..events import Participant
from .decisions import NOTHING, Decision, Finish, Wait
from .desk import Desk
from .view import View

__all__ = ("Actor", "Player", "Policy", "carry_out", "play", "playing", "playing_new")

Actor = Callable[[Desk], Awaitable[None]]
"""What lives at a desk until the session ends, or it has nothing more to do."""


class Player(msgspec.Struct, frozen=True):
    """A participant, and the actor that plays its part."""

    participant: Participant
    actor: Actor


class Policy(Protocol):
    """The usual way to write an actor: look at a view, decide.

    ``decide`` is called when there is news, and when a wait is over. While the working time of a
    decision passes, news calls it again, with that decision in ``view.pending``: return it to keep
    it, another to change it, ``NOTHING`` to drop it. What it may use is the view, and nothing else;
    its randomness is ``view.random``, so that a seed decides everything.
    """

    async def decide(self, view: View) -> Decision:
        """The next decision in the light of a view."""
        ...


def playing(policy: Policy) -> Actor:
    """The actor that plays a policy."""

    async def actor(desk: Desk) -> None:
        await play(desk, policy)

    return actor


def playing_new(make: Callable[[], Policy]) -> Actor:
    """The actor that plays a policy which is made anew each time, so that it can play a session
    again, or several ones.
    """

    async def actor(desk: Desk) -> None:
        await play(desk, make())

    return actor


async def play(desk: Desk, policy: Policy) -> None:
    """Waits for news, decides, lets the working time pass, emits; until the policy finishes.

    News that arrives while the working time passes has the pending decision reconsidered. A
    decision that stands goes on where it was, once the news has been read, and what it submits was
    made from the snapshot known when it was made; another one starts anew.

    Raises:
        DeskError: the policy decides again and again without time passing.
    """
    idle = False
    while True:
        decision, reading, working = await _decide(desk, policy, None, idle=idle)
        until = desk.now + reading + working
        base = desk.inbox.snapshot
        while await desk.news_before(until):
            before = decision
            decision, reading, working = await _decide(desk, policy, before, idle=False)
            if decision == before:
                until += reading
            else:
                until, base = desk.now + reading + working, desk.inbox.snapshot
        if not await carry_out(desk, decision, base=base):
            return
        idle = await _wait(desk, decision)


async def carry_out(
    desk: Desk, decision: Decision, *, base: int | msgspec.UnsetType | None = msgspec.UNSET
) -> bool:
    """Emits a decision; False where the actor is done (``Finish``). Where a snapshot was refused it
    is not: it decided to finish in the belief that the snapshot stands.

    Args:
        desk: the actor's.
        decision: what it has decided.
        base: version of the snapshot that was known then, if that is not now; a snapshot that is
            submitted was made from this one.
    """
    verbs = [verb for verb in decision.verbs if not isinstance(verb, Wait | Finish)]
    records = await desk.emit(*verbs, base=base) if verbs else []
    if records and records[-1].kind == "ActionResolved":
        return True
    for verb in decision.verbs:
        if isinstance(verb, Finish):
            await desk.finish(verb.detail)
            return False
    return True


async def _decide(
    desk: Desk, policy: Policy, pending: Decision | None, *, idle: bool
) -> tuple[Decision, float, float]:
    """A decision, the time that reading took, and the time that carrying it out takes."""
    view = desk.view
    role = desk.participant.role
    view.next_decision(desk.look(), pending, idle)
    decision = await policy.decide(view)
    reading = desk.timing.reading(role, view)
    working = desk.timing.working(role, view, decision)
    view.mark_read()
    return decision, reading, working


async def _wait(desk: Desk, decision: Decision) -> bool:
    """Waits where the decision says so; True if the wait ran out without news."""
    wait = next((verb for verb in decision.verbs if isinstance(verb, Wait)), None)
    if wait is None and decision != NOTHING:
        return False
    await desk.yield_turn(wait.reason if wait else "")
    seconds = wait.seconds if wait else None
    return not await desk.news(within=seconds)
