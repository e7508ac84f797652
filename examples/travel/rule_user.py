"""The simulated traveller on rules: its wishes, its view of a plan, and its comments.

It alone knows the profile, reveals one wish at a time in its own words, and judges a plan by the
text of the plan and its own searches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, inf
from random import Random
from typing import NamedTuple, final

import msgspec

from ...engine.events import JSON, ProfileChanged, SnapshotTaken
from ...engine.session.decisions import Act, ChangeProfile, Decision, Submit
from ...engine.session.view import ActionSeen, MessageSeen, View
from ...engine.text import text_of
from ...tasks.kit import READ
from ...tasks.phrases import spelled
from ...tasks.rule_user import HumanAlone, RuleUser, changing
from ...tasks.views import (
    Outcomes,
    asked_last,
    changes,
    output_before,
    own_messages,
    trait,
    unannounced,
)
from ...users.deferrals import say_deferral
from ...users.judgement import (
    CLAIMED,
    LIKELY,
    TOLD,
    UNKNOWN,
    Felt,
    compare,
    first_output,
    questioned,
)
from ...users.manner import RETHOUGHT, mistaken
from ...users.personas import Persona
from ...users.simulated import Changing
from .language.facts import ANY, Fact, Slot
from .language.hints import hint, hinted
from .language.messages import (
    as_one,
    name_of,
    say_fact,
    understand_message,
    understand_question,
    wordings,
)
from .language.plans import (
    PlanProblem,
    check_plan,
    edit_plan,
    is_plan,
    room_cities,
    say_edit,
    say_problem,
)
from .language.reports import read_price, read_understood
from .plan.text import parse_plan, render_plan
from .planner.finds import Finds, SearchRequest
from .planner.knowledge import knowledge_from_request, learn
from .planner.planner import needed_searches, plan_trip
from .second_thoughts import give_way, second_thought, wishes_of

__all__ = ("Traveller", "TravellerState", "changing_traveller", "human_alone", "travel_user")

_ANSWERS = 2
"""Questions about a plan that a user with modest demands answers before it finishes."""

_EDITORS = 0.6
"""Share of the users with a persona that edits who do edit."""

_LOOKS = 3
"""Messages, the request included, after which such a user corrects the rooms itself."""

_GAPS = "the plan itself"
"""A traveller's name for the gaps of a plan."""

_UNSEEN: tuple[Slot, ...] = ("people", "budget", "house_rule", "room_type", "cuisine")
"""Wishes that the text of a plan does not show."""

_INSISTS = 2
"""How often a traveller mentions an unmet wish before giving up on it."""

_NOTICES = 0.6
"""Share of the messages in which a traveller notices that they were misunderstood."""

_CHANGES = 0.5
"""Share of the travellers whose goals change with what they see."""

_YIELDS = 0.2
"""Share of the travellers who spend more if their other wishes cannot be met for less."""

_GRANTED = 0.5
"""Share of the travellers who take one wish for granted and mention it only if asked."""

_MESSAGES = (5, 9)
"""Messages, with the request, after which a traveller accepts a plan that looks right; from, to."""

_STAMINA = 14
"""Searches after which a traveller who plans alone settles for the results so far."""

_GLANCE = 5
"""Rows of a result that they look at in any case."""

_LATER = ("SearchRestaurants", "SearchAttractions")
"""What travellers alone look for once they have a first plan, of ways and rooms."""

_CHANGING = 120.0
"""Seconds that it takes them to change a plan that they have written down."""

_READING = 20.0
"""Seconds that they take to look through what a search has found."""


class TravellerState(msgspec.Struct, frozen=True, kw_only=True):
    """A traveller's wishes and knowledge.

    Attributes:
        wishes: all of them.
        told: the slots that it has mentioned since the wish last changed.
        insisted: the slots that it has mentioned several times, without success as far as it can see.
        finds: the results of its own searches.
        request: its first message.
        plan: the current plan; empty if there is none.
        said: how many messages it has sent, the request included.
        tired: whether it has written as much as it cares to.
        asked: the slots that the agent has asked about since.
        edited: whether it has changed the plan and not said why.
        edits: whether it would, and has not done so yet.
        changed: the wishes of which they have said something else before, and nothing since.
        alone: whether they travel alone.
        misread: the wishes that the agent has just misstated, if the traveller noticed.
        granted: the slot of a wish that it thinks goes without saying.
        over: the price of the plan that stands, as the agent has stated it, if it is above the budget.
        price: the least price of a plan, above the budget, that the agent has just stated.
        profile: the source of all this.
        open_to_change: whether it may still change its mind because of what it sees.
        moods: decides how; a trait.
        yields: whether it would spend more if necessary.
        checked: the problems of the plans that it has checked, which are asked for again and again.
    """

    wishes: tuple[Fact, ...]
    told: frozenset[Slot]
    finds: Finds
    request: str
    plan: str
    said: int
    tired: bool
    asked: tuple[Slot, ...]
    edited: bool
    edits: bool
    insisted: frozenset[Slot]
    changed: tuple[Fact, ...]
    alone: bool
    misread: tuple[Fact, ...]
    granted: Slot | None
    over: int | None
    price: int | None
    profile: JSON
    open_to_change: bool
    moods: str
    yields: bool
    checked: dict[tuple[str, tuple[Fact, ...]], tuple[PlanProblem, ...]]

    @property
    def untold(self) -> list[Fact]:
        """Wishes that are not revealed yet, in the order of the profile."""
        return [fact for fact in self.wishes if fact.slot not in self.told]

    @property
    def unseen(self) -> list[Fact]:
        """Unrevealed wishes that the text of a plan cannot show to be met; chance may meet them."""
        return [f for f in self.untold if f.slot in _UNSEEN and f.slot != self.granted]

    @property
    def room_wishes(self) -> list[Fact]:
        """The wishes for rooms, which the traveller corrects itself."""
        return [fact for fact in self.wishes if fact.slot in ("house_rule", "room_type")]

    def problems(self, plan: str) -> tuple[PlanProblem, ...]:
        """The problems of a plan that the traveller can see."""
        found = self.checked.get((plan, self.wishes))
        if found is None:
            found = check_plan(plan, self.wishes, self.finds)
            self.checked[plan, self.wishes] = found
        budget = next((fact for fact in self.wishes if fact.slot == "budget"), None)
        if plan != self.plan or self.over is None or budget in [p.fact for p in found]:
            return found
        text = f"By your own count it comes to ${self.over:,}, which is too much."
        return (*found, PlanProblem(text, budget))

    @property
    def complaints(self) -> list[PlanProblem]:
        """The problems of the plan that it has not given up on."""
        found = self.problems(self.plan)
        return [p for p in found if p.fact is None or p.fact.slot not in self.insisted]


@final
class Traveller:
    """The ``Person`` of travel; one for each session.

    Args:
        reads: share of the rows of a search's result that they look at, from the top.
    """

    def __init__(self, reads: float = 1.0) -> None:
        self._reads = reads
        self._finds = Finds()
        self._outcomes = Outcomes()
        self._checked: dict[tuple[str, tuple[Fact, ...]], tuple[PlanProblem, ...]] = {}
        self._looked: tuple[View, int, list[TravellerState]] | None = None
        self._traits: _Traits | None = None
        self._goals: list[_Goals] = []

    def see(self, view: View, profile: JSON) -> TravellerState:
        """Reads the profile, the messages, and the results of the traveller's own searches."""
        if self._looked is None or self._looked[0] is not view or self._looked[1] != view.version:
            self._looked = view, view.version, []
        # One decision asks several times, with the profile before a change and after it.
        states = self._looked[2]
        for state in states:
            if state.profile is profile or state.profile == profile:
                return state
        states.append(self._look(view, profile))
        return states[-1]

    def _look(self, view: View, profile: JSON) -> TravellerState:
        fresh = self._outcomes.fresh(view)
        if fresh:  # the new results may show another problem
            self._finds.take_in([_top(action, self._reads) for action in fresh])
            self._checked = {}
        traits, goals = self._traits_of(view), self._goals_of(view, profile)
        said = len(own_messages(view))
        spoken = goals.spoken(view)
        return TravellerState(
            wishes=goals.wishes,
            told=frozenset(spoken),
            insisted=frozenset(slot for slot, times in spoken.items() if times >= _INSISTS),
            changed=goals.taken_back(view, spoken),
            alone=any(fact.slot == "people" and fact.value == 1 for fact in goals.wishes),
            finds=self._finds,
            request=view.request,
            plan=view.snapshot_text,
            said=said,
            tired=said >= traits.patience,
            asked=understand_question(asked_last(view)),
            edited=unannounced(view),
            edits=view.own_snapshot is None and traits.edits,
            misread=_misread(view, goals.wishes),
            granted=goals.granted,
            over=_over(view, goals.wishes),
            price=_price(view),
            profile=profile,
            open_to_change=goals.steps == 0 and traits.changes,
            moods=f"{view.trait_seed}/{view.me}/mood",
            yields=traits.yields,
            checked=self._checked,
        )

    def _traits_of(self, view: View) -> _Traits:
        """The traits, drawn once: seeding costs more than all else in most looks."""
        whose = f"{view.trait_seed}/{view.me}"
        if self._traits is None or self._traits.whose != whose:
            self._traits = _Traits(
                whose=whose,
                patience=trait(view, "patience").randint(*_MESSAGES),
                edits=trait(view, "edits").random() < _EDITORS,
                changes=trait(view, "changes").random() < _CHANGES,
                yields=trait(view, "yields").random() < _YIELDS,
            )
        return self._traits

    def _goals_of(self, view: View, profile: JSON) -> _Goals:
        """What follows from the profile, as long as it is the same; of the last one and that before it."""
        steps = changes(view)
        for held in self._goals:
            if held.is_of(view, steps, profile):
                return held
        self._goals = [_Goals(view, steps, profile), *self._goals[:1]]
        return self._goals[0]

    def wrong(self, state: TravellerState, output: str) -> float:
        """How many problems of a plan they see."""
        return float(len(state.problems(output)))

    def comment(self, state: TravellerState, persona: Persona, words: Random) -> str | None:
        """One wish: the one that they edited for, or that changed, or was misread, or the plan fails, or is new."""
        text = self._comment(state, persona, words)
        return as_one(text) if text and state.alone else text

    def _comment(self, state: TravellerState, persona: Persona, words: Random) -> str | None:
        if state.changed and not (state.plan and state.edited):
            return _rethought(state.changed, words)
        if not state.plan:
            open_ = [fact for fact in state.untold if fact.slot != state.granted]
            return _put(words.choice(open_), state, persona, words) if open_ else None
        if state.edited and state.room_wishes:
            untold = [fact for fact in state.room_wishes if fact.slot not in state.told]
            return say_edit((untold or state.room_wishes)[0], words)
        if state.misread:
            return f"You have got me wrong there. {say_fact(state.misread[0], words, asked=True)}"
        complaints = state.complaints
        if complaints:
            return say_problem(words.choice(complaints), words)
        return _put(state.unseen[0], state, persona, words) if state.unseen else None

    def answer(self, state: TravellerState, question: str, persona: Persona, words: Random) -> str:
        """The wish that they were asked for, as far as they got the question; or that they have none.

        Besides, they say what has changed.
        """
        text = self._answer(state, persona, words)
        changed = tuple(fact for fact in state.changed if fact.slot not in state.asked)
        text = f"{text} {_rethought(changed, words)}" if changed else text
        return as_one(text) if state.alone else text

    def _answer(self, state: TravellerState, persona: Persona, words: Random) -> str:
        others = [fact for fact in state.untold if fact.slot not in state.asked]
        if state.asked and others and words.random() < persona.mishears:
            said = _put(others[0], state, persona, words)
            return mistaken(name_of(others[0].slot), said, words)
        asked = [slot for slot in state.asked if slot != "generic"]
        if len(asked) > 1:
            heard = [s for n, s in enumerate(asked) if not n or words.random() >= persona.overlooks]
            held = {fact.slot: fact for fact in state.wishes}
            parts = [
                _put(held.get(s) or Fact(s, ANY), state, persona, words, asked=True) for s in heard
            ]
            return " ".join(parts)
        fact = next((f for f in state.wishes if f.slot in state.asked), None)
        if fact is None and "generic" in state.asked:
            fact = next(iter(state.untold), None)
            if fact is None:
                return "No, that is all. Thank you."
        if fact is None:
            slot = next((s for s in state.asked if s != "generic"), None)
            fact = Fact(slot, ANY) if slot else None
            return say_fact(fact, words, asked=True) if fact else say_deferral(words)
        return _put(fact, state, persona, words, asked=True)

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
        return Decision((Submit(render_plan(edited)),))

    def content(self, state: TravellerState, persona: Persona) -> bool | str:
        """Whether they are content: no wish is open, or enough are met; or in words what they go without."""
        wrong = len(state.complaints)
        if not is_plan(state.plan):
            return False
        if persona.contentment < 1.0:
            tired = state.said > _ANSWERS or not state.asked
            enough = tired and wrong <= (1.0 - persona.contentment) * len(state.wishes)
            if enough and state.changed:
                return "settles for it, without saying what they want now"
            return enough
        if state.changed:
            return False
        heard = not state.misread and len(state.unseen) <= persona.untold
        if wrong or not (heard or state.tired):
            return False
        lost = {p.fact.slot for p in state.problems(state.plan) if p.fact is not None}
        without = spelled([name_of(slot) for slot in sorted(lost)])
        return f"leaves it at that, without what they want of {without}" if lost else True

    def rate(self, state: TravellerState, view: View) -> Felt:
        """Compares how likely each wish is met now, and was met at the traveller's last act."""
        missing = [
            f.slot for f in state.wishes if f.slot in state.asked and f.slot not in state.told
        ]
        about = name_of(missing[0]) if missing else ""
        if not state.plan:
            return questioned(about)
        since, before = view.last_act, output_before(view)
        now = self._met(state, view, state.plan, view.version)
        if not before:
            return first_output(now)
        return compare(
            self._met(state, view, before, since),
            now,
            changed=state.plan.strip() != before.strip(),
            about=about,
            complained=bool(state.told) and not state.asked,
        )

    def _met(self, state: TravellerState, view: View, plan: str, until: int) -> dict[str, float]:
        """How likely a plan meets each wish, as they could tell at a trace version."""
        found = state.problems(plan)
        wrong = {problem.fact for problem in found}
        if (price := _stated(view, until)) is not None:
            wrong |= {f for f in state.wishes if f.slot == "budget" and _exceeds(price, f.value)}
        heard = {
            fact.slot: fact.value
            for message in view.messages
            if message.role == "agent" and message.version <= until
            for fact in read_understood(message.text)
        }
        told = self._goals_of(view, state.profile).told(view)
        drafts = list(_versions(view))
        met = {_GAPS: 0.0 if None in wrong else LIKELY}
        for fact in state.wishes:
            said = told.get(fact.slot)
            likely = UNKNOWN if said is None else TOLD
            if said is not None and any(said < draft <= until for draft in drafts):
                likely = CLAIMED
            if heard.get(fact.slot) == fact.value or fact.slot not in _UNSEEN:
                likely = LIKELY
            met[name_of(fact.slot)] = 0.0 if fact in wrong else likely
        return met

    def change(self, state: TravellerState) -> ChangeProfile | None:
        """They accept the real cost, or change their mind because of something in the plan."""
        budget = next((fact.value for fact in state.wishes if fact.slot == "budget"), None)
        if state.yields and state.price and isinstance(budget, int) and budget < state.price:
            return give_way(state.profile, state.price, Random(state.moods))
        if state.open_to_change and state.plan:
            return second_thought(state.profile, state.plan, Random(state.moods))
        return None

    def alone(self, state: TravellerState, words: Random) -> Decision | None:
        """Plans the ways and the rooms, then searches for what the plan lacks, within limits."""
        known = learn(knowledge_from_request(state.request), state.wishes)
        searches = needed_searches(known, state.finds)
        if state.plan:
            places = (
                SearchRequest(n, {"city": c}) for c in room_cities(state.plan) for n in _LATER
            )
            searches = tuple(one for one in places if not state.finds.made(one)) or searches
        else:
            searches = tuple(one for one in searches if one.name not in _LATER) or searches
        if (
            searches
            and state.finds.count < _STAMINA
            and (state.plan or not state.finds.accommodations)
        ):
            acts = tuple(Act(search.name, search.arguments) for search in searches)
            return Decision(acts, seconds=_READING * len(acts))
        draft = render_plan(plan_trip(known, state.finds))
        if draft == state.plan:
            return None
        return Decision((Submit(draft),), seconds=_CHANGING if state.plan else None)


def travel_user() -> RuleUser[TravellerState]:
    """The mind of a traveller on rules."""
    return RuleUser(Traveller())


def human_alone() -> HumanAlone[TravellerState]:
    """A traveller who plans without an agent."""
    return HumanAlone(Traveller(reads=READ))


def changing_traveller() -> Changing:
    """How a traveller's goals change."""
    return changing(Traveller())


def _top(action: ActionSeen, share: float) -> ActionSeen:
    """An action with only the first rows of its result, as far as they are looked at."""
    found = None if action.resolved is None else action.resolved.observation
    if share >= 1.0 or action.resolved is None or not isinstance(found, Mapping):
        return action
    rows = found.get("rows")
    if not isinstance(rows, list | tuple):
        return action
    seen = rows[: max(_GLANCE, ceil(share * len(rows)))]
    kept = msgspec.structs.replace(action.resolved, observation={**found, "rows": list(seen)})
    return msgspec.structs.replace(action, resolved=kept)


def _rethought(changed: Sequence[Fact], words: Random) -> str:
    """The wishes that have changed, as what they are."""
    said = [words.choice(wordings(fact)) for fact in changed]
    return " ".join((words.choice(RETHOUGHT), *(one[:1].upper() + one[1:] for one in said)))


def _put(
    fact: Fact, state: TravellerState, persona: Persona, words: Random, *, asked: bool = False
) -> str:
    """A wish in their own words; the first time perhaps as a hint."""
    if fact.slot not in state.told and words.random() < persona.ambiguous:
        return hint(fact, words) or say_fact(fact, words, asked=asked)
    return say_fact(fact, words, asked=asked)


class _Traits(NamedTuple):
    """The traits of one traveller; ``whose`` tells travellers apart."""

    whose: str
    patience: int
    edits: bool
    changes: bool
    yields: bool


@final
class _Goals:
    """What follows from a profile in one session, and from what the traveller has said of it.

    Attributes:
        steps: how often the goals have changed.
        wishes: those of the profile.
        granted: the slot of the wish that they take for granted, if any.
    """

    def __init__(self, view: View, steps: int, profile: JSON) -> None:
        self._view, self._profile = view, profile
        self._since = _changed_at(view, profile)
        self._slots: dict[str, frozenset[Slot]] = {}
        self.steps = steps
        self.wishes = wishes_of(profile)
        self.granted = _granted(view, self.wishes)

    def is_of(self, view: View, steps: int, profile: JSON) -> bool:
        """Whether they are still the goals."""
        same = self._profile is profile or self._profile == profile
        return same and self._view is view and self.steps == steps

    def told(self, view: View) -> dict[Slot, int]:
        """The trace version at which they first mentioned each slot after its wish took its current form."""
        told: dict[Slot, int] = {}
        request = view.request
        for message in view.messages:
            if message.actor == view.me and message.text != request:
                for slot in self._slots_in(message.text):
                    if message.version > self._since.get(slot, 0):
                        told.setdefault(slot, message.version)
        return told

    def spoken(self, view: View) -> Counter[Slot]:
        """How often they have spoken of each slot since the wish for it is what it is."""
        spoken: Counter[Slot] = Counter()
        request = view.request
        for message in view.messages:
            if message.actor == view.me and message.text != request:
                for slot in self._slots_in(message.text):
                    spoken[slot] += message.version > self._since.get(slot, 0)
        return +spoken

    def taken_back(self, view: View, spoken: Counter[Slot]) -> tuple[Fact, ...]:
        """The wishes that they said otherwise before they changed, and have not said since."""
        if not self._since:
            return ()
        before: set[Slot] = set()
        for message in view.messages:
            if message.actor == view.me and message.text != view.request:
                slots = self._slots_in(message.text)
                before.update(s for s in slots if message.version <= self._since.get(s, 0))
        return tuple(f for f in self.wishes if f.slot in before and not spoken[f.slot])

    def _slots_in(self, text: str) -> frozenset[Slot]:
        """The slots that a message of theirs states or hints at."""
        found = self._slots.get(text)
        if found is None:
            stated = {fact.slot for fact in understand_message(text)}
            found = self._slots[text] = frozenset(stated | {*hinted(text, self.wishes)})
        return found


def _changed_at(view: View, profile: JSON) -> dict[Slot, float]:
    """The trace version at which the wish for a slot became what it is; never, if just now."""
    before = view.opened.private.get(view.me) if view.opened else None
    changed: dict[Slot, float] = {}
    steps = [(r.version, r.event) for r in view.records if r.kind == "ProfileChanged"]
    if not steps and before == profile:
        return changed
    profiles = [(float(v), e.profile) for v, e in steps if isinstance(e, ProfileChanged)]
    for version, after in (*profiles, (inf, profile)):
        new = {*wishes_of(after)} - {*wishes_of(before)}
        changed |= {fact.slot: version for fact in new}
        before = after
    return changed


def _granted(view: View, wishes: tuple[Fact, ...]) -> Slot | None:
    """The wish that they take for granted, if any; one that a plan does not show."""
    slots = [fact.slot for fact in wishes if fact.slot in _UNSEEN]
    chance = trait(view, "granted")
    return chance.choice(slots) if slots and chance.random() < _GRANTED else None


def _heard(view: View) -> MessageSeen | None:
    """The agent's message, if it is the last one."""
    last = view.messages[-1] if view.messages else None
    return last if last is not None and last.role == "agent" else None


def _misread(view: View, wishes: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """The wishes that the agent has just said otherwise, if they notice."""
    last = _heard(view)
    if last is None:
        return ()
    understood = {fact.slot: fact.value for fact in read_understood(last.text)}
    wrong = tuple(w for w in wishes if w.slot in understood and understood[w.slot] != w.value)
    noticed = wrong and trait(view, f"reads/{last.version}").random() < _NOTICES
    return wrong if noticed else ()


def _price(view: View) -> int | None:
    last = _heard(view)
    return None if last is None else read_price(last.text)


def _stated(view: View, until: int) -> int | None:
    """The price that the agent had stated, at a trace version, for the plan of that time."""
    drafts = (record.version for record in view.snapshots if record.version <= until)
    since = max(drafts, default=0)
    own = [m for m in view.messages if m.role == "agent" and since < m.version <= until]
    return next((price for m in reversed(own) if (price := read_price(m.text)) is not None), None)


def _versions(view: View) -> Iterator[int]:
    """The trace versions of the plans that say something else than the one before."""
    before = ""
    for record in view.snapshots:
        event = record.event
        if isinstance(event, SnapshotTaken):
            text = text_of(event.content).strip()
            if text != before:
                yield record.version
            before = text


def _exceeds(price: int, budget: object) -> bool:
    return isinstance(budget, int) and price > budget


def _over(view: View, wishes: tuple[Fact, ...]) -> int | None:
    """The stated price of the current plan, if it is above the budget."""
    price = _stated(view, view.version)
    budget = next((fact.value for fact in wishes if fact.slot == "budget"), None)
    return price if price is not None and _exceeds(price, budget) else None
