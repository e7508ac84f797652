"""Actors for tests: one that follows a script, and one that decides at random."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import final

from ..engine.errors import ContextError
from ..engine.events import JSON, Participant
from ..engine.rounds import is_act
from ..engine.session.actors import Actor, Player
from ..engine.session.context import ActorContext, Reply
from ..engine.session.decisions import (
    NOTHING,
    Act,
    Approve,
    Ask,
    ChangeProfile,
    Decision,
    Ending,
    Finish,
    Note,
    Rate,
    Say,
    Submit,
    Verb,
    Wait,
)
from ..engine.session.view import View

__all__ = ("Improviser", "Script", "Step", "agent", "human")

Step = Callable[[ActorContext], Awaitable[object]]
"""One step of a scripted actor with its context."""


@final
class Script:
    """An actor that performs its steps one after another, and leaves after the last.

    Scripts are immutable: each method returns a new one with one more step, so that they can be
    shared and continued in several ways. A script is a step too: ``Script(greeting, request)``.
    """

    def __init__(self, *steps: Step) -> None:
        self._steps = steps

    async def __call__(self, context: ActorContext) -> None:
        """Performs the steps."""
        for step in self._steps:
            await step(context)

    def then(self, step: Step) -> Script:
        """Performs any other step: a coroutine function of the context."""
        return Script(*self._steps, step)

    def times(self, count: int) -> Script:
        """Repeats all steps so far, so that they are performed ``count`` times."""
        return Script(*(self._steps * count))

    def say(self, text: str, *, to: Sequence[str] = ()) -> Script:
        """Sends a message."""
        return self.then(lambda context: context.say(text, to))

    def act(self, name: str, **arguments: JSON) -> Script:
        """Takes an action, and continues at once; see ``result``."""
        return self.then(lambda context: context.act(name, arguments))

    def result(self) -> Script:
        """Waits until none of its actions is in flight."""

        async def step(context: ActorContext) -> None:
            context.look()
            while context.view.in_flight:
                await context.news()
                context.look()

        return self.then(step)

    def submit(self, content: JSON, *, overwrite: bool = False) -> Script:
        """Submits a new version of the shared output, based on the one that it saw last."""
        return self.then(lambda context: context.submit(content, overwrite=overwrite))

    def ask(self, question: str) -> Script:
        """Asks for approval."""
        return self.then(lambda context: context.ask(question))

    def approve(self, *, approved: bool = True, comment: str = "") -> Script:
        """Gives or denies the approval that was asked for first."""

        async def step(context: ActorContext) -> None:
            context.look()
            if not context.view.open_approvals:
                raise ContextError(f"no approval was requested from {context.name!r}")
            asked = context.view.open_approvals[0].version
            await context.approve(asked, approved=approved, comment=comment)

        return self.then(step)

    def note(self, text: str) -> Script:
        """Writes a note into its own memory."""
        return self.then(lambda context: context.note(text))

    def change_profile(self, profile: JSON, reason: str = "") -> Script:
        """Holds other goals from now on."""
        return self.then(lambda context: context.change_profile(profile, reason))

    def rate(self, rating: int, explanation: str = "", *, round: int | None = None) -> Script:
        """Rates the progress of a round, the latest in which an agent acted by default."""
        return self.then(lambda context: context.rate(rating, explanation, round=round))

    def leave_turn(self, reason: str = "") -> Script:
        """Yields its turn to the others."""
        return self.then(lambda context: context.yield_turn(reason))

    def call(self, reply: JSON, request: JSON = None, *, model: str = "scripted") -> Script:
        """Calls a model, which answers with ``reply``."""

        async def send() -> Reply:
            return Reply(reply=reply)

        return self.then(
            lambda context: context.models.call(
                model=model, purpose="act", request=request, send=send
            )
        )

    def pause(self, seconds: float) -> Script:
        """Lets session time pass, whatever happens."""
        return self.then(lambda context: context.pause(seconds))

    def hear(self, *, within: float | None = None) -> Script:
        """Waits for news, for ``within`` seconds at most, and reads it."""

        async def step(context: ActorContext) -> None:
            await context.news(within=within)
            context.look()

        return self.then(step)

    def look(self) -> Script:
        """Reads the news, without waiting."""

        async def step(context: ActorContext) -> None:
            context.look()

        return self.then(step)

    def finish(self, detail: str = "", reason: Ending = "finished") -> Script:
        """Ends the session, satisfied or (``abandoned``) given up."""
        return self.then(lambda context: context.finish(detail, reason))


@final
class Improviser:
    """A policy that decides at random, and finishes after a number of decisions.

    Randomness is the session's: one seed, one performance. It says, acts, submits (now and then
    over the others' heads), asks, approves, notes, rates, changes its goals where it is a human, waits
    and does nothing; works for a while
    on each decision; and keeps, changes or drops what is pending when there is news.

    Args:
        decisions: number of decisions after which it finishes; None for never.
        actions: the actions that it takes.
    """

    def __init__(self, decisions: int | None = 30, actions: Sequence[str] = ()) -> None:
        self._left = decisions
        self._actions = actions

    async def decide(self, view: View) -> Decision:
        """A random decision."""
        chance = view.random
        if view.pending is not None and chance.random() < 0.4:
            return view.pending
        if view.pending is not None and chance.random() < 0.3:
            return NOTHING
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                return Decision((Say("That is all."), Finish("improvised")))
        count = chance.choice((0, 1, 1, 1, 2, 3))
        verbs = [self._verb(view) for _ in range(count)]
        if chance.random() < 0.2:
            verbs.append(Wait(chance.choice((None, 0.5, 60.0)), "for inspiration"))
        if not verbs:
            return NOTHING
        return Decision(tuple(verbs), seconds=chance.choice((None, 0.25, 1.0, 5.0, 30.0)))

    def _verb(self, view: View) -> Verb:
        chance = view.random
        others = [p.name for p in view.participants if p.name != view.me]
        number = len(view.records)
        verbs: list[Verb] = [
            Say(f"remark {number} of {view.me}"),
            Say(f"whisper {number}", to=tuple(chance.sample(others, min(1, len(others))))),
            Submit(f"version {number} by {view.me}\n{view.snapshot_text}"[:400]),
            Submit({"entries": [number, view.me]}, "application/json", chance.random() < 0.5),
            Ask(f"May I do {number}?"),
            Note(f"thought {number}"),
        ]
        rating = Rate(chance.randint(1, 5), "improvised")
        if any(record.role == "agent" and is_act(record) for record in view.records):
            verbs.append(rating)  # else there is nothing to rate
        if view.role == "human":
            verbs.append(ChangeProfile({"wants": number}, "improvised"))
        verbs += [Act(name, {"number": number}) for name in self._actions]
        verbs += [
            Approve(asked.version, chance.random() < 0.5, "so be it")
            for asked in view.open_approvals
        ]
        return chance.choice(verbs)


def human(actor: Actor, name: str = "user") -> Player:
    """A human participant, played by an actor."""
    return Player(Participant(name=name, role="human", policy="scripted"), actor)


def agent(actor: Actor, name: str = "agent") -> Player:
    """An agent, played by an actor."""
    return Player(Participant(name=name, role="agent", policy="scripted"), actor)
