"""The travel agent on rules: searches, plans, asks, and learns from messages.

It knows the request, the messages and the results of its own searches, all from its view. It learns
wishes only from messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final, final

import msgspec

from ...engine.session.decisions import Act, Decision, Submit
from ...engine.session.view import View
from ..kit.phrases import is_deferral
from ..kit.rule_agent import Question, RuleAgent, Standing
from ..kit.views import drafted_on, outcomes
from .language.facts import ANY, Fact, Slot
from .language.messages import ask, understand_message, understand_question
from .plan.text import render_plan
from .planner.finds import Finds
from .planner.knowledge import Knowledge, knowledge_from_request, learn
from .planner.planner import needed_searches, plan_trip

__all__ = ("TravelKnowledge", "TravelPlanner", "travel_agent")

_ESSENTIAL: tuple[Slot, ...] = ("cities", "people", "budget")
"""What a two-stage agent asks before its first draft: these wishes shape the whole plan."""

_ORDER: tuple[Slot, ...] = (
    *_ESSENTIAL,
    "room_type",
    "house_rule",
    "cuisine",
    "transportation",
)

_REPORTS: Final[Mapping[Standing, tuple[str, ...]]] = {
    "first": (
        "Here is a first plan for {days} days in {destination}.",
        "I have drafted {days} days in {destination} for you.",
    ),
    "changed": (
        "Thanks, I have worked that in; the plan is updated.",
        "Done: the new plan takes that into account.",
    ),
    "unchanged": (
        "The plan holds good with that as it stands.",
        "Noted. The plan needs no change for that.",
    ),
}


class TravelKnowledge(msgspec.Struct, frozen=True):
    """What an agent knows of a trip.

    Attributes:
        wishes: what the trip should be like, from the request and the messages.
        drafted: the wishes that the agent's last plan was made for; None before there is one.
        asked: the slots that the agent has asked about.
        finds: the results of its searches.
    """

    wishes: Knowledge
    drafted: Knowledge | None
    asked: frozenset[Slot]
    finds: Finds


@final
class TravelPlanner:
    """The ``Planner`` of travel; one for each session."""

    def __init__(self) -> None:
        self._finds = Finds()
        self._absorbed: set[int] = set()

    def know(self, view: View) -> TravelKnowledge:
        """Reads the messages, and the outcomes of searches since the last call."""
        for action in outcomes(view):
            if action.resolved is not None and action.version not in self._absorbed:
                self._absorbed.add(action.version)
                ok = action.resolved.outcome == "ok"
                found = action.resolved.observation if ok else None
                self._finds.add(action.name, action.arguments, found)
        drafted = drafted_on(view)
        return TravelKnowledge(
            wishes=_wishes(view),
            drafted=None if drafted is None else _wishes(view, until=drafted),
            asked=frozenset(
                slot
                for message in view.messages
                if message.actor == view.me
                for slot in understand_question(message.text)
            ),
            finds=self._finds,
        )

    def work(self, known: TravelKnowledge, view: View) -> Decision | None:
        """The searches to make, or the plan to submit."""
        if known.wishes == known.drafted:
            return None
        searches = needed_searches(known.wishes, known.finds)
        if searches:
            return Decision(tuple(Act(s.name, s.arguments) for s in searches))
        draft = render_plan(plan_trip(known.wishes, known.finds))
        if view.snapshot is not None and draft == view.snapshot_text:
            return None
        return Decision((Submit(draft),))

    def question(self, known: TravelKnowledge, words: Random) -> Question | None:
        """The next question about a wish that nobody has mentioned."""
        open_slots = known.wishes.open_slots
        slot = next((s for s in _ORDER if s in open_slots and s not in known.asked), None)
        return None if slot is None else Question(ask(slot, words), first=slot in _ESSENTIAL)

    def report(self, known: TravelKnowledge, words: Random, standing: Standing) -> str:
        """A message about the plan."""
        wishes = known.wishes
        text = words.choice(_REPORTS[standing])
        return text.format(days=wishes.days, destination=wishes.destination)


def travel_agent() -> RuleAgent[TravelKnowledge]:
    """The mind of a travel agent on rules."""
    return RuleAgent(TravelPlanner())


def _wishes(view: View, until: int | None = None) -> Knowledge:
    """The wishes in the request and the messages, up to trace version ``until``."""
    request = view.request
    known = knowledge_from_request(request)
    asked: tuple[Slot, ...] = ()
    for message in view.messages:
        if until is not None and message.version > until:
            break
        if message.actor == view.me:
            asked = understand_question(message.text)
        elif message.text != request:
            facts = understand_message(message.text)
            if not facts and is_deferral(message.text):
                facts = tuple(Fact(slot, ANY) for slot in asked if slot != "generic")
            known = learn(known, facts)
    return known
