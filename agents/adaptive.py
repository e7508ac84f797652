"""The adaptive agent: two stages, and a controller that says who leads, from what the agent can see.

What that is ``outlook`` says, and ``scoring.control`` what follows from it.
"""

from __future__ import annotations

from typing import final

from ..engine.session.decisions import NOTHING, Decision, Note
from ..engine.session.view import View
from ..scoring.control_rules import Advice, ControlRules
from .mind import AgentMind
from .outlook import Outlook

__all__ = ("Adaptive",)


@final
class Adaptive:
    """The adaptive collaborating agent: works, asks, or leaves the lead to the human.

    The mind plans as a two-stage agent's does. Where it would message, the advice decides: before
    it has submitted anything, whether it asks, or goes to work on what it knows; after that, whether it
    asks along with its report, or only reports. Where the rules say so it asks before its first output
    though it would rather work.

    Args:
        mind: what decides for it.
        rules: the numbers in the controller's rules.
    """

    def __init__(self, mind: AgentMind, rules: ControlRules | None = None) -> None:
        self._mind = mind
        self._rules = rules or ControlRules()
        self._outlook = Outlook(self._rules)

    async def decide(self, view: View) -> Decision:
        """The planning stage, the advice, then the composing stage."""
        intent = await self._mind.plan(view)
        estimate = self._mind.estimate(view) if intent == "message" else None
        advice = self._outlook.look(view, estimate=estimate, worked=intent == "message")
        if intent == "wait":
            return NOTHING
        if advice is None or (intent == "act" and not self._asks_more(view, advice)):
            return await self._mind.act(view)
        if advice.move == "ask":
            decision = await self._mind.message(view)
        elif view.own_snapshot is None:
            decision = await self._mind.act(view)
        else:
            decision = await self._mind.report(view, final=advice.move == "hand over")
        return _noted(decision, advice)

    def _asks_more(self, view: View, advice: Advice) -> bool:
        """Whether it asks before its first output although it would rather work."""
        early = view.own_snapshot is None and advice.round <= self._rules.least
        return early and advice.move == "ask" and not view.in_flight


def _noted(decision: Decision, advice: Advice) -> Decision:
    """The decision, with a note to oneself on its reason."""
    if not decision.verbs:
        return decision
    note = Note(f"{advice.move.capitalize()}: {advice.why}.")
    return Decision((note, *decision.verbs), decision.seconds)
