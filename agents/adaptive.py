"""The adaptive agent: two stages, and a controller that says who leads, from what the agent can see.

It folds the records of its own view as scoring folds a log. Utility and ratings are hidden from it,
so that each update of the output counts as a gain; see ``scoring.control`` for the rules.
"""

from __future__ import annotations

from typing import final

from ..engine.session.decisions import NOTHING, Decision, Note
from ..engine.session.view import View
from ..scoring.control import Advice, Controller, ControlRules
from ..scoring.trajectory.fold import TrajectoryFold
from ..scoring.trajectory.options import Options
from .mind import AgentMind

__all__ = ("Adaptive", "Outlook")

_BLIND = Options(taus=(), judge="none")


@final
class Outlook:
    """What an agent knows of how its session goes, and the advice that follows from it.

    Args:
        rules: the numbers in the controller's rules.
    """

    def __init__(self, rules: ControlRules | None = None) -> None:
        self._rules = rules
        self._fold: TrajectoryFold | None = None
        self._controller: Controller | None = None
        self._seen = 0

    def look(self, view: View, *, worked: bool = False) -> Advice | None:
        """The advice, given all that the view shows; None while it shows nothing.

        Args:
            view: what the agent can see.
            worked: whether the agent has done what there was to do on the human's last act.
        """
        for record in view.records[self._seen :]:
            if self._fold is None or self._controller is None:
                self._fold = TrajectoryFold(record.session, _BLIND)
                self._controller = Controller(record.session, self._rules)
            for update in self._fold.feed(record):
                self._controller.feed(update)
            if record.kind == "SnapshotTaken" and record.actor == view.me:
                self._controller.submitted()
        self._seen = len(view.records)
        if self._controller is None:
            return None
        if worked:
            self._controller.work_done()
        return self._controller.advice


@final
class Adaptive:
    """The adaptive collaborating agent: works, asks, or leaves the lead to the human.

    The mind plans as a two-stage agent's does. Where it would message, the advice decides: before
    it has submitted anything, whether it asks, or goes to work on what it knows; after that, whether it
    asks along with its report, or only reports.

    Args:
        mind: what decides for it.
        rules: the numbers in the controller's rules.
    """

    def __init__(self, mind: AgentMind, rules: ControlRules | None = None) -> None:
        self._mind = mind
        self._outlook = Outlook(rules)

    async def decide(self, view: View) -> Decision:
        """The planning stage, the advice, then the composing stage."""
        intent = await self._mind.plan(view)
        advice = self._outlook.look(view, worked=intent == "message")
        if intent == "wait":
            return NOTHING
        if intent == "act" or advice is None:
            return await self._mind.act(view)
        if advice.move == "ask":
            decision = await self._mind.message(view)
        elif view.own_snapshot is None:
            decision = await self._mind.act(view)
        else:
            decision = await self._mind.report(view, final=advice.move == "hand over")
        return _noted(decision, advice)


def _noted(decision: Decision, advice: Advice) -> Decision:
    """The decision, with a note to oneself on its reason."""
    if not decision.verbs:
        return decision
    note = Note(f"{advice.move.capitalize()}: {advice.why}.")
    return Decision((note, *decision.verbs), decision.seconds)
