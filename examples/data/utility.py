"""The utility of a data analysis: what the analyst has understood of what they want now.

At the end of each round, with *understood* the share of the topics that they want now of which they
believe what the data bear out, *advised* whether they noticed a recommendation that follows from the
data and serves their decision (1 or 0), and *misled* the number of wrong beliefs and recommendations
that they hold, on any topic, per topic that they want (at most 1)::

    utility = max(0, 0.8 understood + 0.2 advised - 0.5 misled)

What a report holds and nobody noticed counts for nothing, and so does its length. As understanding
raises further questions, the share can fall until these are answered too. Where nobody records what
they want (an agent alone, a real person), it is what follows from what was understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from ...engine.events import ProfileChanged
from ...engine.records import Record
from ...engine.rounds import Round
from ...engine.scorers.protocol import Scorer
from ...scoring.scorers.fold_utility import FoldUtility
from ...scoring.scorers.utility import Score
from .attention import Reading
from .facts import Advice, Claim, Topic, advice_on, agrees
from .profile import read_wants
from .world.instances import Instance, Wants, opened_by
from .world.truth import Answers

__all__ = ("DATA", "data_utility", "worth")

DATA = "data"
"""Name of the task and of its scorer."""

_VERSION = "1"
_UNDERSTOOD, _ADVISED, _MISLED = 0.8, 0.2, 0.5


def worth(
    believed: Mapping[Topic, Claim], advice: Advice | None, wants: Wants, truth: Answers
) -> Score:
    """The utility of what an analyst believes, by what they want.

    Args:
        believed: the claim believed, by topic.
        advice: the recommendation that they go by.
        wants: what they want now.
        truth: the true claims; a topic that the data do not decide neither helps nor misleads.
    """
    right = sum(1 for t in wants.topics if t in believed and agrees(believed[t], truth[t]))
    wrong = sum(1 for t, claim in believed.items() if t in truth and not agrees(claim, truth[t]))
    advised = advice is not None and advice == advice_on(truth[wants.goal])
    follows = (
        advice is None or advice.topic not in truth or advice == advice_on(truth[advice.topic])
    )
    understood = right / len(wants.topics)
    misled = min(1.0, (wrong + (not follows)) / len(wants.topics))
    value = _UNDERSTOOD * understood + _ADVISED * advised - _MISLED * misled
    return Score(
        min(1.0, max(0.0, value)),
        {"understood": understood, "advised": float(advised), "misled": misled},
    )


def data_utility(instance: Instance) -> Scorer:
    """The scorer of sessions on an instance; it scores every closed round."""
    return FoldUtility(DATA, _VERSION, lambda: _Fold(instance))


@final
class _Fold:
    """What the analyst has taken in, and wants, by now."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._reading = Reading(instance.survey.names, instance.attention, instance.stamina)
        self._recorded: Wants | None = None

    def feed(self, record: Record) -> None:
        self._reading.feed(record)
        if isinstance(record.event, ProfileChanged):
            self._recorded = read_wants(record.event.profile)

    def score(self, over: Round) -> Score:
        now = self._reading.copy()
        now.catch_up()
        one = self._instance
        wants = self._recorded or opened_by(one.interests, one.opens, one.pivot, now.believed)
        return worth(now.believed, now.advice, wants, one.truth)
