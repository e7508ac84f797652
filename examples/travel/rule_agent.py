"""The travel agent on rules: searches, plans, asks, and learns from messages.

It knows the request, the messages and the results of its own searches, all from its view. It learns
wishes only from messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, TypeAlias, final

import msgspec

from ...agents.habits import Habits
from ...engine.events import SnapshotTaken
from ...engine.files import output_text
from ...engine.session.decisions import Act, Decision, Submit
from ...engine.session.view import View
from ...tasks.rule_agent import Question, RuleAgent, Standing
from ...tasks.views import Outcomes, drafted_on, unannounced
from ...users.deferrals import is_deferral
from .language.facts import ANY, SLOTS, Fact, Slot
from .language.messages import ask, understand_message, understand_question
from .language.plans import failed_by, is_plan, keep_plan
from .language.reports import say_understood, say_unmet
from .plan.plan import FIELDS, Plan
from .plan.text import parse_plan, render_plan
from .planner.finds import Finds, SearchRequest
from .planner.knowledge import Knowledge, knowledge_from_request, learn
from .planner.planner import Draft, next_step

__all__ = ("TravelKnowledge", "TravelPlanner", "travel_agent")

_ESSENTIAL: tuple[Slot, ...] = ("cities", "people", "budget")
"""Wishes that a two-stage agent asks about before its first draft, because they shape the whole plan."""

_ORDER: tuple[Slot, ...] = (
    *_ESSENTIAL,
    "room_type",
    "house_rule",
    "cuisine",
    "transportation",
)

_AGAIN: Final = (
    "One of your answers is not clear to me yet.",
    "Sorry, there is one thing that I could not follow.",
)

_REPORTS: Final[Mapping[Standing, tuple[str, ...]]] = {
    "first": (
        "Here is a first plan for {days} days in {destination}.",
        "I have drafted {days} days in {destination} for you.",
        "This is how {days} days in {destination} could look.",
    ),
    "changed": (
        "Thanks, I have worked that in; the plan is updated.",
        "Done: the new plan takes that into account.",
        "I have changed the plan.",
        "Here is the next version of the plan.",
    ),
    "unchanged": (
        "The plan holds good with that as it stands.",
        "Noted. The plan needs no change for that.",
        "All right, I leave the plan as it is.",
        "Good to know; the plan fits that already.",
    ),
}

_STUCK: Final = (
    "I have looked again, and I have nothing better.",
    "I tried once more, without success.",
    "The plan stays as it is: I know of no better one.",
)
"""Replaces the reports on an unchanged plan if the plan fails a wish."""


class TravelKnowledge(msgspec.Struct, frozen=True):
    """An agent's knowledge of a trip.

    Attributes:
        wishes: the wishes for the trip, from the request and the messages.
        drafted: the wishes that the agent's last plan was made for; None before there is one.
        asked: the slots that the agent has asked about.
        unclear: the slots that it has just asked about for the first time, and the answer said nothing about.
        heard: all facts heard so far, in messages.
        news: the facts heard since the agent's last message.
        finds: the results of its searches.
        revised: it has submitted a plan since its last message.
        edited: the current plan, if a human has changed it and the agent has kept that change.
    """

    wishes: Knowledge
    drafted: Knowledge | None
    asked: frozenset[Slot]
    unclear: tuple[Slot, ...]
    heard: tuple[Fact, ...]
    news: tuple[Fact, ...]
    finds: Finds
    revised: bool
    edited: Plan | None


_Todo: TypeAlias = tuple[tuple[SearchRequest, ...], Draft | None]
_WorkedOut: TypeAlias = tuple[tuple[Knowledge, int, Plan | None], _Todo]


@final
class TravelPlanner:
    """The ``Planner`` of travel; one for each session.

    Args:
        habits: ``assumptions``: its report says what it understood; ``doubts``: and what nothing that it
            found can meet; ``goals``: it asks for further wishes once they have seen a new plan;
            ``level``: an answer that told it nothing it asks for once more.
    """

    def __init__(self, habits: Habits) -> None:
        self._habits = habits
        self._finds = Finds()
        self._outcomes = Outcomes()
        self._worked_out: _WorkedOut | None = None

    def know(self, view: View) -> TravelKnowledge:
        """Reads the messages, and the outcomes of searches since the last call."""
        self._finds.take_in(self._outcomes.fresh(view))
        drafted = drafted_on(view)
        asked = _asked(view)
        return TravelKnowledge(
            wishes=_wishes(view),
            drafted=None if drafted is None else _wishes(view, until=drafted),
            asked=frozenset(asked),
            unclear=_unclear(view, asked),
            heard=_heard(view, 0),
            news=_heard(view, _last_word(view)),
            finds=self._finds,
            revised=unannounced(view),
            edited=_edited(view),
        )

    def work(self, known: TravelKnowledge, view: View) -> Decision | None:
        """The searches to make, or the plan to submit."""
        if known.wishes == known.drafted:
            return None
        searches, draft = self._next(known)
        if draft is not None and draft.plan == known.edited:
            return None
        if draft is None:
            return Decision(tuple(Act(s.name, s.arguments) for s in searches))
        text = render_plan(draft.plan)
        if view.snapshot is not None and text == view.snapshot_text:
            return None
        return Decision((Submit(text),))

    def _next(self, known: TravelKnowledge) -> _Todo:
        """The searches to make, or else the plan; kept, since a decision is often reconsidered."""
        key = (known.wishes, known.finds.count, known.edited)
        if self._worked_out is None or self._worked_out[0] != key:
            self._worked_out = key, _todo(known)
        return self._worked_out[1]

    def question(self, known: TravelKnowledge, words: Random) -> Question | None:
        """The next question about an unmentioned wish, or the last question once more."""
        open_slots = known.wishes.open_slots
        again = [s for s in known.unclear if s in open_slots] if self._habits.level else []
        slots = [*again, *(s for s in _ORDER if s in open_slots and s not in known.asked)]
        if not slots:
            more = self._habits.goals and known.revised
            return Question(ask("generic", words)) if more else None
        opening = f"{words.choice(_AGAIN)} " if again else ""
        text, *further = (ask(slot, words) for slot in slots)
        return Question(f"{opening}{text}", first=slots[0] in _ESSENTIAL, further=tuple(further))

    def estimate(self, known: TravelKnowledge) -> float:
        """By the wishes that are known and met; common sense is taken for granted."""
        draft = self._next(known)[1]
        unmet = 0 if draft is None else len(draft.unmet)
        met = len(SLOTS) - len(known.wishes.open_slots) - unmet
        return 0.5 + 0.5 * max(met, 0) / len(SLOTS)

    def report(self, known: TravelKnowledge, words: Random, standing: Standing) -> str:
        """A message about the plan: the wishes understood since the last one, and those that cannot be met."""
        wishes = known.wishes
        draft = self._next(known)[1]
        stuck = standing == "unchanged" and draft is not None and bool(draft.unmet)
        texts = _STUCK if stuck else _REPORTS[standing]
        said = words.choice(
            [one.format(days=wishes.days, destination=wishes.destination) for one in texts]
        )
        if self._habits.assumptions:
            heard = known.heard if standing == "first" else known.news
            said += say_understood(heard, words)
        if draft is None or not self._habits.doubts:
            return said
        return said + say_unmet(draft.unmet, draft.dollars, words)


def travel_agent(habits: Habits) -> RuleAgent[TravelKnowledge]:
    """The mind of a travel agent on rules."""
    return RuleAgent(TravelPlanner(habits))


def _todo(known: TravelKnowledge) -> _Todo:
    """The searches to make, or else the plan: the one that a human has edited, unless another meets more wishes."""
    wishes, finds = known.wishes, known.finds
    kept = None if known.edited is None else keep_plan(known.edited, wishes, finds)
    if kept is not None and not kept.unmet:
        return (), kept
    searches, draft = next_step(wishes, finds)
    if kept is None or draft is None:
        return searches, draft
    better = len(failed_by(draft.plan, wishes, finds)) < len(kept.unmet)
    return (), draft if better else kept


def _edited(view: View) -> Plan | None:
    """The current plan, if a human has changed it and their last change is still in it."""
    if all(record.role != "human" for record in view.snapshots):
        return None
    before: Plan = ()
    change: dict[tuple[int, str], str] | None = None
    for record in view.snapshots:
        event = record.event
        if not isinstance(event, SnapshotTaken):
            continue
        text = output_text(event)
        plan = parse_plan(text) if is_plan(text) else ()
        if record.role == "human":
            earlier = _entries(before)
            change = {at: is_ for at, is_ in _entries(plan).items() if earlier.get(at) != is_}
        before = plan
    kept = change is not None and change.items() <= _entries(before).items()
    return before if before and kept else None


def _entries(plan: Plan) -> dict[tuple[int, str], str]:
    """The entries of a plan, by day and field."""
    return {(day.days, field): getattr(day, field) for day in plan for field in FIELDS}


def _last_word(view: View) -> int:
    """The trace version of the agent's last message; 0 if it has sent none."""
    return max((m.version for m in view.messages if m.actor == view.me), default=0)


def _heard(view: View, after: int) -> tuple[Fact, ...]:
    """The facts in others' messages after a trace version; only the last word on each slot."""
    request = view.request
    facts = {
        fact.slot: fact
        for message in view.messages
        if message.actor != view.me and message.version > after and message.text != request
        for fact in understand_message(message.text)
    }
    return tuple(facts.values())


def _asked(view: View) -> list[Slot]:
    """The slots that the agent has asked about; of several questions that were waved away, the first."""
    asked: list[Slot] = []
    latest: tuple[Slot, ...] = ()
    for message in view.messages:
        if message.actor == view.me:
            latest = understand_question(message.text)
            asked.extend(latest)
        elif len(latest) > 1 and _waves_away(message.text):
            del asked[1 - len(latest) :]
            latest = latest[:1]
    return asked


def _waves_away(text: str) -> bool:
    """Whether a message leaves all that was asked to the agent."""
    return is_deferral(text) and not understand_message(text)


def _unclear(view: View, asked: Sequence[Slot]) -> tuple[Slot, ...]:
    """The slots of the last questions, asked about once, that the answer told nothing of."""
    answers = [m.text for m in view.messages if m.version > _last_word(view)]
    if not answers or any(map(_waves_away, answers)):
        return ()
    own = [understand_question(m.text) for m in view.messages if m.actor == view.me]
    told = {fact.slot for text in answers for fact in understand_message(text)}
    last = next(filter(None, reversed(own)), ())
    return tuple(s for s in last if s != "generic" and asked.count(s) == 1 and s not in told)


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
            if _waves_away(message.text):
                facts = tuple(Fact(slot, ANY) for slot in asked[:1] if slot != "generic")
            known = learn(known, facts)
    return known
