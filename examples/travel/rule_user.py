"""The simulated traveller on rules: what it wants, sees in a plan, and says about it.

It alone knows the profile, reveals one wish at a time in its own words, and judges a plan by the
text of the plan and its own searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import final

import msgspec

from ...engine.events import JSON
from ...engine.session.decisions import Act, ChangeProfile, Decision, Rate, Submit
from ...engine.session.view import View
from ...users.personas import Persona
from ..kit.phrases import say_deferral
from ..kit.ratings import compare
from ..kit.rule_user import HumanAlone, RuleUser
from ..kit.views import asked_last, outcomes, output_before, own_messages, trait, unannounced
from .language.facts import ANY, Fact, Slot
from .language.messages import say_fact, understand_message, understand_question
from .language.plans import PlanProblem, check_plan, edit_plan, room_cities, say_edit, say_problem
from .language.profiles import understand_preferences
from .plan.text import parse_plan, render_plan
from .planner.finds import Finds, SearchRequest
from .planner.knowledge import knowledge_from_request, learn
from .planner.planner import needed_searches, plan_trip

__all__ = ("Traveller", "TravellerState", "human_alone", "travel_user")

_ANSWERS = 2
"""Questions about a plan that a user with modest demands answers before it finishes."""

_EDITORS = 0.6
"""Share of the users with a persona that edits who do edit."""

_LOOKS = 3
"""Messages, the request included, after which such a user corrects the rooms itself."""

_STAMINA = 20
"""Searches after which somebody who plans alone takes what they have found."""

_READING = 20.0
"""Seconds that they take to look through what a search has found."""


class TravellerState(msgspec.Struct, frozen=True, kw_only=True):
    """What a traveller wants and knows.

    Attributes:
        wishes: all of them.
        told: the slots that it has spoken of.
        finds: the results of its own searches.
        request: what it said first.
        plan: as it stands; empty where there is none.
        said: how many messages it has sent, the request included.
        asked: the slots that the agent has asked about since.
        edited: whether it has changed the plan and not said why.
        edits: whether it would, and has not done so yet.
    """

    wishes: tuple[Fact, ...]
    told: frozenset[Slot]
    finds: Finds
    request: str
    plan: str
    said: int
    asked: tuple[Slot, ...]
    edited: bool
    edits: bool

    @property
    def untold(self) -> list[Fact]:
        """Wishes that are not revealed yet, in the order of the profile."""
        return [fact for fact in self.wishes if fact.slot not in self.told]

    @property
    def unseen(self) -> list[Fact]:
        """Unrevealed wishes that the text of a plan cannot show to be met; chance may meet them."""
        return [f for f in self.untold if f.slot not in ("cities", "transportation")]

    @property
    def room_wishes(self) -> list[Fact]:
        """The wishes for rooms, which the traveller corrects itself."""
        return [fact for fact in self.wishes if fact.slot in ("house_rule", "room_type")]

    def problems(self, plan: str) -> tuple[PlanProblem, ...]:
        """The problems of a plan that the traveller can see."""
        return check_plan(plan, self.wishes, self.finds)


@final
class Traveller:
    """The ``Person`` of travel; one for each session."""

    def __init__(self) -> None:
        self._finds = Finds()
        self._absorbed: set[int] = set()

    def see(self, view: View, profile: JSON) -> TravellerState:
        """Reads the profile, the messages, and what came of the traveller's own searches."""
        for action in outcomes(view):
            if action.resolved is not None and action.version not in self._absorbed:
                self._absorbed.add(action.version)
                ok = action.resolved.outcome == "ok"
                found = action.resolved.observation if ok else None
                self._finds.add(action.name, action.arguments, found)
        said = own_messages(view)
        return TravellerState(
            wishes=_wishes(profile),
            told=frozenset(
                fact.slot
                for text in said
                if text != view.request
                for fact in understand_message(text)
            ),
            finds=self._finds,
            request=view.request,
            plan=view.snapshot_text,
            said=len(said),
            asked=understand_question(asked_last(view)),
            edited=unannounced(view),
            edits=view.own_snapshot is None and trait(view, "edits").random() < _EDITORS,
        )

    def wrong(self, state: TravellerState, output: str) -> float:
        """How many problems of a plan they see."""
        return float(len(state.problems(output)))

    def comment(self, state: TravellerState, persona: Persona, words: Random) -> str | None:
        """One wish: the one that they edited for; the first that the plan fails; one that is new."""
        if not state.plan:
            return say_fact(words.choice(state.untold), words) if state.untold else None
        if state.edited and state.room_wishes:
            untold = [fact for fact in state.room_wishes if fact.slot not in state.told]
            return say_edit((untold or state.room_wishes)[0], words)
        problems = state.problems(state.plan)
        if problems:
            return say_problem(problems[0], words)
        return say_fact(state.unseen[0], words) if state.unseen else None

    def answer(self, state: TravellerState, question: str, persona: Persona, words: Random) -> str:
        """The wish that they were asked for; or that they have none."""
        fact = next((f for f in state.wishes if f.slot in state.asked), None)
        if fact is None and "generic" in state.asked:
            fact = next(iter(state.untold), None)
            if fact is None:
                return "No, that is all. Thank you."
        if fact is None:
            slot = next((s for s in state.asked if s != "generic"), None)
            return say_fact(Fact(slot, ANY), words) if slot else say_deferral(words)
        return say_fact(fact, words)

    def work(self, state: TravellerState, persona: Persona, words: Random) -> Decision | None:
        """Corrects the accommodations: searches first, then chooses other rooms, once."""
        if not persona.acts or not state.room_wishes or not state.plan or not state.edits:
            return None
        cities = room_cities(state.plan)
        searches = [SearchRequest("SearchAccommodations", {"city": city}) for city in cities]
        missing = [search for search in searches if not state.finds.made(search)]
        if missing:
            return Decision(tuple(Act(s.name, s.arguments) for s in missing))
        problems = state.problems(state.plan)
        wrong = [fact for fact in state.room_wishes if any(p.fact == fact for p in problems)]
        if not wrong or state.said < _LOOKS:
            return None
        plan = parse_plan(state.plan)
        edited = edit_plan(plan, state.wishes, state.finds, wrong[0])
        if edited == plan:
            return None
        return Decision((Submit(render_plan(edited)),), seconds=words.uniform(1.5, 6.0))

    def content(self, state: TravellerState, persona: Persona) -> bool:
        """Whether no wish is open, or enough of them are met for this persona."""
        wrong = len(state.problems(state.plan))
        if persona.contentment < 1.0:
            tired = state.said > _ANSWERS or not state.asked
            return tired and wrong <= (1.0 - persona.contentment) * len(state.wishes)
        return wrong == 0 and len(state.unseen) <= persona.untold

    def rate(self, state: TravellerState, view: View) -> Rate:
        """Compares the plan with that at the traveller's last act."""
        before = output_before(view)
        if not state.plan:
            asked = any(fact.slot in state.asked for fact in state.wishes)
            return Rate(3, "A fair question.") if asked else Rate(2, "Nothing that helps yet.")
        wrong = len(state.problems(state.plan))
        if not before:
            bad = 3 * wrong > len(state.wishes)
            return Rate(3 if bad else 4, "A first plan is there.")
        return compare(
            len(state.problems(before)),
            wrong,
            changed=state.plan != before,
            complained=bool(state.told) and not state.asked,
        )

    def change(self, state: TravellerState) -> ChangeProfile | None:
        """Nothing changes."""
        return None

    def alone(self, state: TravellerState, words: Random) -> Decision | None:
        """Searches as long as it has the stamina, and writes down the best plan that it sees."""
        if state.plan:
            return None
        known = learn(knowledge_from_request(state.request), state.wishes)
        searches = needed_searches(known, state.finds)
        if searches and state.finds.count < _STAMINA:
            return Decision((Act(searches[0].name, searches[0].arguments),), seconds=_READING)
        return Decision((Submit(render_plan(plan_trip(known, state.finds))),))


def travel_user() -> RuleUser[TravellerState]:
    """The mind of a traveller on rules."""
    return RuleUser(Traveller())


def human_alone() -> HumanAlone[TravellerState]:
    """A traveller who plans without an agent."""
    return HumanAlone(Traveller())


def _wishes(profile: JSON) -> tuple[Fact, ...]:
    told = profile.get("profile") if isinstance(profile, Mapping) else None
    sentences = told if isinstance(told, list | tuple) else ()
    facts = understand_preferences([str(sentence) for sentence in sentences])
    return tuple(fact for fact in facts if fact.slot != "generic")
