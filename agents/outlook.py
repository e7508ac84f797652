"""What an agent can know of how its session goes: from its own view alone, and the advice that follows.

Utility, ratings and the hidden profile are for others' eyes. In their place stand the agent's own
estimate of utility, what the human says to its work, what they have spent on it, and how they keep up.
"""

from __future__ import annotations

from typing import final

from ..engine.events import MessageSent
from ..engine.records import Record
from ..engine.session.view import View
from ..scoring.control import Controller
from ..scoring.control_rules import Advice, ControlRules
from ..scoring.scorers.progress import reaction
from ..scoring.trajectory.fold import TrajectoryFold
from ..scoring.trajectory.options import Options
from ..scoring.trajectory.phrases import is_vague
from ..scoring.trajectory.updates import RoundClosed

__all__ = ("Outlook",)

_BLIND = Options(taus=(), judge="none")


@final
class Outlook:
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
        self._asked = False  # whether a question waits for their answer
        self._unanswered = False  # whether a round is closed to which they have said nothing

    def look(
        self, view: View, *, estimate: float | None = None, worked: bool = False
    ) -> Advice | None:
        """The advice, given all that the view shows; None while it shows nothing.

        Args:
            view: what the agent can see.
            estimate: what the agent takes the output to be worth, from 0 to 1; None where it cannot
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
        elif record.role == "human" and isinstance(event, MessageSent):
            if self._said and not self._asked and not is_vague(event.text):
                self._controller.volunteered()
            self._asked = False
            if self._unanswered:
                self._controller.reacted(reaction(self._said, event.text)[0])
                self._unanswered = False
            self._said = event.text
