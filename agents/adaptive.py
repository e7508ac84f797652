"""The adaptive agent: two stages, and a controller that says who leads, from what the agent can see.

What that is ``estimate`` says, and ``scoring.control`` what follows from it.
"""

from __future__ import annotations

from typing import final

from ..engine.events import MessageSent
from ..engine.records import Record
from ..engine.session.decisions import NOTHING, Decision, Note
from ..engine.session.view import View
from ..scoring.control import Controller
from ..scoring.control_rules import Advice, ControlRules
from ..scoring.scorers.progress import reaction
from ..scoring.trajectory.fold import TrajectoryFold
from ..scoring.trajectory.options import Options
from ..scoring.trajectory.updates import RoundClosed
from ..scoring.turns import Turn, annotate
from .mind import AgentMind

__all__ = ("Adaptive", "Estimate")

_BLIND = Options(taus=(), judge="none")


@final
class Estimate:
    """Folds the records of an agent's own view as scoring folds a log, and advises it.

    Args:
        rules: the numbers in the controller's rules.
    """

    def __init__(self, rules: ControlRules | None = None) -> None:
        self._rules = rules
        self._fold: TrajectoryFold | None = None
        self._controller: Controller | None = None
        self._seen = 0
        self._said = ""  # the human's last message
        self._heard = ""  # the agents' last message
        self._asked = False  # whether a question waits for their answer
        self._unanswered = False  # whether a round is closed to which they have said nothing

    @property
    def asked(self) -> bool:
        """Whether a question of the agents waits for the human's answer."""
        return self._asked

    def look(
        self, view: View, *, estimate: float | None = None, worked: bool = False
    ) -> Advice | None:
        """The advice, given all that the view shows; None while it shows nothing.

        Args:
            view: the agent's view.
            estimate: the agent's estimate of the output's utility, from 0 to 1; None if it cannot
                say: each update of the output then counts as a gain.
            worked: whether the agent has done what there was to do on the human's last act.
        """
        for record in view.records[self._seen :]:
            self._take(record, view.me)
        self._seen = len(view.records)
        controller = self._controller
        if controller is None:
            return None
        if estimate is not None:
            controller.estimated(estimate)
        if worked:
            controller.work_done()
        return controller.advice

    def _take(self, record: Record, me: str) -> None:
        if self._fold is None or self._controller is None:
            self._fold = TrajectoryFold(record.session, _BLIND)
            self._controller = Controller(record.session, self._rules)
        for update in self._fold.feed(record):
            self._controller.feed(update)
            self._unanswered = self._unanswered or isinstance(update, RoundClosed)
        event = record.event
        if record.kind == "SnapshotTaken" and record.actor == me:
            self._controller.submitted()
        elif record.role == "agent" and isinstance(event, MessageSent):
            self._asked = "?" in event.text
            self._heard = event.text
            if self._asked:
                self._controller.asked()
        elif record.role == "human" and isinstance(event, MessageSent):
            turn = Turn(text=event.text, before=self._heard, said=self._said)
            labels = annotate(turn) or frozenset()
            if self._said and not self._asked and "vague" not in labels:
                self._controller.volunteered()
            self._asked = False
            if self._unanswered:
                self._controller.reacted(reaction(labels)[0])
                self._unanswered = False
            self._said = event.text


# --- the adaptive agent ---------------------------------------------------------------------------


@final
class Adaptive:
    """The adaptive collaborating agent: works, asks, or leaves the lead to the human.

    The mind plans as a two-stage agent's does. Where it would message, the advice decides: before
    it has submitted anything, whether it asks, or goes to work on what it knows; after that, whether it
    asks along with its report, or only reports. Where the rules say so it asks before its first output
    though it would rather work. Where they let it show a draft early, it asks the remaining questions with the
    draft, and revises and reports it afterwards.

    Args:
        mind: makes its decisions.
        rules: the numbers in the controller's rules.
    """

    def __init__(self, mind: AgentMind, rules: ControlRules | None = None) -> None:
        self._mind = mind
        self._rules = rules or ControlRules()
        self._estimate = Estimate(self._rules)

    async def decide(self, view: View) -> Decision:
        """The planning stage, the advice, then the composing stage."""
        intent = await self._mind.plan(view)
        estimate = self._mind.estimate(view) if intent == "message" else None
        advice = self._estimate.look(view, estimate=estimate, worked=intent == "message")
        if intent == "wait":
            return NOTHING
        if advice is not None and self._shows(view, advice):
            if view.own_snapshot is None:
                return await self._mind.act(view)
            question = await self._mind.ask(view, questions=self._rules.at_once)
            if question is not None:
                return _noted(question, advice)
        more = advice is not None and self._asks_more(view, advice)
        if advice is None or (intent == "act" and not more):
            return await self._mind.act(view)
        if intent == "act" and self._estimate.asked:
            return NOTHING  # one question at a time
        if advice.move in ("ask", "confirm"):
            decision = await self._mind.message(view, questions=self._rules.at_once)
        elif view.own_snapshot is None:
            decision = await self._mind.act(view)
        else:
            decision = await self._mind.report(view, final=advice.move in ("hand over", "escalate"))
        return _noted(decision, advice)

    def _shows(self, view: View, advice: Advice) -> bool:
        """Whether to show a draft before the next question, or with it."""
        rules = self._rules
        if rules.show is None or advice.move != "ask" or view.in_flight:
            return False
        return rules.show < advice.round <= rules.questions

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
