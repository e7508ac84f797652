"""Asks before what cannot be undone: a guard around any agent, on rules or on a model.

If the agent is about to do something consequential, the guard holds it back and asks for approval
instead. The human may allow it, refuse it, or not answer for a while. The agent sees the result as a
note to itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from ..engine.events import JSON, ApprovalAsked, ApprovalGiven
from ..engine.session.actors import Policy
from ..engine.session.decisions import (
    NOTHING,
    Act,
    Ask,
    Decision,
    Finish,
    Note,
    Submit,
    Verb,
    Wait,
)
from ..engine.session.view import ApprovalSeen, View
from ..engine.text import text_of

__all__ = ("PATIENCE", "Careful")

PATIENCE: Final = 300.0
"""Seconds of session time after which an unanswered question counts as refused."""

_FINISH = "finish"
_SUBMIT = "submit"
_WIDTH = 200  # characters of the arguments in a question


@final
class Careful:
    """An agent that asks before consequential actions, and does them once they are allowed.

    Three things are consequential: an action whose ``ActionSpec`` says so, replacing a version of the
    output that a human made, and ending the session. If no human takes part, the agent is not guarded.

    Args:
        policy: the agent.
        patience: seconds that it waits for an answer; then it takes the silence for a refusal. An
            answer that comes later counts all the same.
    """

    def __init__(self, policy: Policy, patience: float = PATIENCE) -> None:
        self._policy = policy
        self._patience = patience
        self._lapsed: set[int] = set()
        self._settled: Decision | None = None

    async def decide(self, view: View) -> Decision:
        """Does what was allowed, notes what was not, or has the agent decide, and asks first."""
        if view.pending is not None and view.pending is self._settled:
            return view.pending  # an answer is acted on, whatever comes while that takes its time
        self._settled = self._settle(view)
        if self._settled is not None:
            return self._settled
        decision = await self._policy.decide(view)
        return self._guarded(decision, view)

    def _settle(self, view: View) -> Decision | None:
        """The decision that follows from an answer or a timeout; None if neither has occurred."""
        settled = tuple(_answered(asked.asked, given, view) for asked, given in _answers(view))
        if settled:
            return Decision(settled)
        for asked in _own(view):
            if view.idle and asked.given is None and asked.version not in self._lapsed:
                if self._left(view, asked) > 0:
                    continue
                self._lapsed.add(asked.version)
                note = f"Nobody answered within {self._patience:g} s, so I leave it: {asked.asked.question}"
                return Decision((Note(note),))
        return None

    def _guarded(self, decision: Decision, view: View) -> Decision:
        """The decision up to the first thing that has to be asked for, and the question for that."""
        for number, verb in enumerate(decision.verbs):
            ask = _question(verb, view)
            if ask is None:
                continue
            before = decision.verbs[:number]
            held = next((one for one in reversed(_own(view)) if _is_of(one.asked, ask)), None)
            if held is None:
                return Decision((*before, ask, Wait(self._patience)), decision.seconds)
            if held.given is None and held.version not in self._lapsed:
                left = max(self._left(view, held), 0.0)
                return Decision((*before, Wait(left)), decision.seconds if before else None)
            if held.given is None or not held.given.approved:
                return Decision(before, decision.seconds) if before else NOTHING
            # It was allowed, and done, once: another time is another question.
            return Decision((*before, ask, Wait(self._patience)), decision.seconds)
        return decision

    def _left(self, view: View, asked: ApprovalSeen) -> float:
        """Seconds of patience that are left for a question."""
        times = (record.time for record in view.records if record.version == asked.version)
        return next(times, view.now) + self._patience - view.now


def _own(view: View) -> list[ApprovalSeen]:
    return [approval for approval in view.approvals.values() if approval.actor == view.me]


def _answers(view: View) -> Iterator[tuple[ApprovalSeen, ApprovalGiven]]:
    """The agent's questions that were answered since its last decision, with the answers."""
    for record in view.news:
        event = record.event
        if isinstance(event, ApprovalGiven):
            asked = view.approvals.get(event.asked)
            if asked is not None and asked.actor == view.me:
                yield asked, event


def _question(verb: Verb, view: View) -> Ask | None:
    """The question to ask before a verb; None if it is not consequential or there is no human to ask."""
    if not any(one.role == "human" for one in view.participants):
        return None
    if isinstance(verb, Act):
        spec = view.actions_available.get(verb.name)
        if spec is None or not spec.consequential:
            return None
        shown = ", ".join(f"{name}={text_of(value)}" for name, value in verb.arguments.items())
        shown = shown if len(shown) <= _WIDTH else f"{shown[: _WIDTH - 1]}…"
        return Ask(f"May I do this: {verb.name}({shown})?", verb.name, verb.arguments)
    if isinstance(verb, Submit) and view.snapshot is not None and view.snapshot.role == "human":
        arguments: dict[str, JSON] = {"content": verb.content, "media_type": verb.media_type}
        return Ask("May I replace your version of the output with mine?", _SUBMIT, arguments)
    if isinstance(verb, Finish):
        return Ask("I think that we are done. May I end the work here?", _FINISH, {})
    return None


def _is_of(asked: ApprovalAsked, ask: Ask) -> bool:
    return asked.action == ask.action and dict(asked.arguments) == dict(ask.arguments)


def _answered(asked: ApprovalAsked, given: ApprovalGiven, view: View) -> Verb:
    """The approved verb, or a note that it was refused."""
    if not given.approved:
        why = f": {given.comment}" if given.comment else "."
        return Note(f"I was refused this{why} {asked.question}")
    if asked.action == _FINISH:
        return Finish("allowed")
    if asked.action == _SUBMIT and _SUBMIT not in view.actions_available:
        return Submit(asked.arguments["content"], str(asked.arguments["media_type"]))
    return Act(asked.action or "", asked.arguments)
