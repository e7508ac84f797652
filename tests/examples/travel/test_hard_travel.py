"""What makes travel hard: wishes that conflict, goals that change, and hints that are misread."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from duolog.agents.habits import USUAL
from duolog.engine.codec import digest
from duolog.engine.events import (
    JSON,
    MessageSent,
    ProfileChanged,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.records import Record
from duolog.engine.session.view import View
from duolog.engine.task import Cell, Setting
from duolog.examples.travel.data.instances import make_instance, solution_of
from duolog.examples.travel.data.sources import CONFLICTS
from duolog.examples.travel.data.tables import Constraints, Trip
from duolog.examples.travel.data.world.feasible import least_cost
from duolog.examples.travel.data.world.generator import World
from duolog.examples.travel.evaluation import evaluate
from duolog.examples.travel.language.facts import ANY, Fact, facts_of
from duolog.examples.travel.language.hints import hint, hinted, hints
from duolog.examples.travel.language.messages import say_fact, understand_message
from duolog.examples.travel.language.profiles import understand_preferences, write_preference
from duolog.examples.travel.language.reports import (
    read_price,
    read_understood,
    say_understood,
    say_unmet,
)
from duolog.examples.travel.plan.text import render_plan
from duolog.examples.travel.rule_agent import TravelPlanner
from duolog.examples.travel.rule_user import Traveller, changing_traveller, travel_user
from duolog.examples.travel.second_thoughts import give_way, second_thought, trip_as_changed
from duolog.examples.travel.travel_task import travel_task
from duolog.tasks.views import own_messages
from duolog.testing import Played, by, played, records_of
from duolog.users.personas import PERSONAS

WORLD = World(5)
TASK = travel_task()
REQUEST = "Help me plan a 5-day trip from Omaha to Michigan starting on 2022-03-16."
WISHES = (
    Fact("people", 3),
    Fact("cities", 2),
    Fact("budget", 2150),
    Fact("house_rule", "pets"),
    Fact("room_type", "entire room"),
    Fact("cuisine", ("French", "Indian")),
    Fact("transportation", "no flight"),
)


def profile(*facts: Fact) -> dict[str, JSON]:
    return {"profile": [write_preference(fact, Random(1)) for fact in facts]}


def wishes(private: JSON) -> set[Fact]:
    assert isinstance(private, Mapping)
    sentences = private["profile"]
    assert isinstance(sentences, list | tuple)
    return {*understand_preferences([str(one) for one in sentences])}


def view_of(me: str, *said: tuple[str, str], private: JSON = None) -> View:
    """A participant's view after these messages."""
    view = View(me, "agent" if me == "agent" else "human", seed=4)
    opened = SessionOpened(
        task="travel", instance="", participants=(), clock="virtual", private={"user": private}
    )
    texts = [
        by("agent" if who == "agent" else "human", MessageSent(text=text), actor=who)
        for who, text in said
    ]
    for record in records_of(opened, *texts):
        view.feed(record)
    return view


# --- wishes that conflict ------------------------------------------------------------------------


def test_no_plan_that_is_known_costs_less_than_the_least() -> None:
    for index in range(24):
        trip = make_instance(WORLD, index).trip
        cost = evaluate(solution_of(WORLD, index), trip, WORLD.sandbox(trip)).total_cost
        assert cost is not None
        assert 0 < least_cost(WORLD, trip) <= cost


def test_without_any_way_there_is_no_least_cost() -> None:
    far = Trip(
        origin="Seattle",
        destination="Miami",
        days=3,
        cities=1,
        dates=("2022-03-16", "2022-03-17", "2022-03-18"),
        people=2,
        budget=None,
        constraints=Constraints(transportation="no flight"),
    )
    assert least_cost(WORLD, far) == float("inf")


def test_in_most_instances_no_plan_meets_all_wishes_and_the_witness_misses_the_budget_only() -> (
    None
):
    conflicting = 0
    for index in range(40):
        easy, hard = (make_instance(WORLD, index, conflicts=share) for share in (0.0, CONFLICTS))
        assert hard.request == easy.request
        verdict = evaluate(solution_of(WORLD, index), hard.trip, WORLD.sandbox(hard.trip))
        assert verdict.commonsense_pass_rate == 1.0
        assert verdict.hard is not None
        failed = [name for name, one in verdict.hard.items() if one.passed is False]
        if hard == easy:
            assert failed == []
            continue
        conflicting += 1
        assert failed == ["valid_cost"]
        assert hard.trip.budget is not None
        assert hard.trip.budget < least_cost(WORLD, hard.trip)
        assert set(understand_preferences(hard.preferences)) <= set(facts_of(hard.trip))
    assert 0.5 < conflicting / 40 < 0.9


# --- goals that change ---------------------------------------------------------------------------

PLAN = "Transportation: Self-driving, from Omaha to Detroit, Duration: 11 hours 57 mins, Cost: 64"


def test_what_somebody_sees_changes_what_they_want_in_more_than_one_way() -> None:
    before = profile(*WISHES[:3])
    changes = [second_thought(before, PLAN, Random(seed)) for seed in range(40)]
    assert changes == [second_thought(before, PLAN, Random(seed)) for seed in range(40)]
    reasons = {change.reason for change in changes if change is not None}
    assert len(reasons) >= 5
    assert "they saw 11 hours at the wheel" in reasons
    for change in changes:
        assert change is not None
        assert wishes(change.profile) != wishes(before)


def test_nothing_moves_whoever_has_a_wish_for_everything() -> None:
    full = profile(*WISHES[1:5], Fact("cuisine", ("French", "Indian", "Italian", "Mexican")))
    calm = "Transportation: Flight Number: F1, from Omaha to Detroit"
    assert second_thought(full, calm, Random(1)) is None


@pytest.mark.parametrize("seed", range(6))
def test_plans_are_judged_by_what_is_wanted_now(seed: int) -> None:
    trip = make_instance(WORLD, seed).trip
    before = profile(*facts_of(trip))
    assert trip_as_changed(trip, before) == trip
    change = second_thought(before, PLAN, Random(seed)) or give_way(before, 9000, Random(seed))
    assert set(facts_of(trip_as_changed(trip, change.profile))) == wishes(change.profile)


def test_who_gives_way_spends_what_it_costs_rounded_up() -> None:
    change = give_way(profile(*WISHES), 3210, Random(1))
    assert wishes(change.profile) == {*WISHES, Fact("budget", 3250)} - {Fact("budget", 2150)}


async def play(instance: int, agent: str = "one-stage") -> Played:
    cell = Cell(agent=agent, user="proactive", instance=str(instance), seed=1)
    return await played(TASK.session(cell, Setting()))


async def test_utility_follows_the_goals_and_the_agent_hears_of_them_by_text_alone() -> None:
    rescored = spoken = 0
    for instance in range(8):
        streams = (await play(instance)).streams
        changed = [r for r in streams["trace"] if isinstance(r.event, ProfileChanged)]
        scores = [r.event for r in streams["travel@2"]]
        again = [s for s in scores if isinstance(s, UtilityScored) and s.round is not None]
        assert len(again) <= len(changed)
        rescored += len(again)
        spoken += any(_says_what_is_new(streams["trace"], one) for one in changed)
    assert rescored >= 2
    assert spoken >= 2


def _says_what_is_new(trace: list[Record], changed: Record) -> bool:
    event, opened = changed.event, trace[0].event
    assert isinstance(event, ProfileChanged)
    assert isinstance(opened, SessionOpened)
    new = wishes(event.profile) - wishes(opened.private["user"])
    later = [r.event for r in trace if r.version > changed.version and r.role == "human"]
    return any(new & {*understand_message(e.text)} for e in later if isinstance(e, MessageSent))


# --- hints and misunderstandings -----------------------------------------------------------------


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: wish.slot)
def test_a_hint_says_less_than_the_wish_and_whoever_gave_it_knows_what_it_meant(wish: Fact) -> None:
    assert hints(wish)
    for text in hints(wish):
        assert wish not in understand_message(text)
        assert hinted(f"Well: {text}", WISHES) == (wish.slot,)
    assert hint(wish, Random(1)) == hint(wish, Random(1))
    assert hint(Fact(wish.slot, ANY), Random(1)) is None


@pytest.mark.parametrize("seed", range(12))
def test_a_report_is_read_back_as_what_was_understood(seed: int) -> None:
    words = Random(seed)
    assert {*understand_message(say_understood(WISHES, words))} == {*WISHES}
    assert say_understood([Fact("cuisine", ANY)], words) == ""
    unmet = say_unmet({"budget", "room_type"}, 3210.4, words)
    assert read_price(unmet) == 3210
    assert "stay" in unmet
    assert read_understood(unmet) == ()
    assert read_price(say_understood(WISHES, words)) is None


def test_an_answer_that_tells_nothing_is_asked_for_once_more() -> None:
    planner = TravelPlanner(USUAL)
    asked = ("agent", "How many people are travelling?")
    vague = ("user", "There are a few of us, you know.")
    once = planner.know(view_of("agent", ("user", REQUEST), asked, vague))
    question = planner.question(once, Random(1))
    assert question is not None
    assert "people" in question.text or "of you" in question.text
    twice = planner.know(view_of("agent", ("user", REQUEST), asked, vague, asked, vague))
    other = planner.question(twice, Random(1))
    assert other is not None
    assert "cities" in other.text
    for answer in ("It's three people in total.", "You decide, please."):
        known = planner.know(view_of("agent", ("user", REQUEST), asked, ("user", answer)))
        assert known.unclear == ()


def comments(*said: tuple[str, str]) -> list[str]:
    """A traveller's next message, for a hundred moods."""
    person, persona = Traveller(), PERSONAS["proactive"]
    view = view_of("user", ("user", REQUEST), *said, private=profile(*WISHES))
    view.trait_seed = 0
    found = []
    for seed in range(100):
        view.trait_seed = seed
        state = person.see(view, view.private)
        found.append(person.answer(state, "", persona, Random(seed)))
    return found


def test_at_the_rate_of_the_persona_questions_are_misheard_and_answers_are_hints() -> None:
    answers = comments(("agent", "How many people are travelling?"))
    plain = [text for text in answers if Fact("people", 3) in understand_message(text)]
    hinting = [text for text in answers if "couple" in text]
    assert 70 <= len(plain) <= 95
    assert 5 <= len(hinting) <= 25
    assert 1 <= len(answers) - len(plain) - len(hinting) <= 12


def test_who_repeats_themselves_says_it_plainly() -> None:
    answers = comments(
        ("agent", "How many people are travelling?"),
        ("user", "A couple of us are going."),
        ("agent", "How many people are travelling?"),
    )
    assert not [text for text in answers if "couple" in text]


def test_who_notices_that_they_were_misread_says_so_and_stops_insisting_in_the_end() -> None:
    person = Traveller()
    wrong = ("agent", "As I understand you: two people and French food.")
    noticed = []
    for seed in range(40):
        view = view_of("user", ("user", REQUEST), wrong, private=profile(*WISHES))
        view.trait_seed = seed
        noticed.append({fact.slot for fact in person.see(view, view.private).misread})
    assert {"people", "cuisine"} in noticed
    assert set() in noticed
    said = [("user", say_fact(Fact("budget", 2150), Random(seed))) for seed in (1, 2)]
    view = view_of("user", ("user", REQUEST), *said, private=profile(*WISHES))
    assert person.see(view, view.private).insisted == {"budget"}
    assert len(own_messages(view)) == 3


def test_a_report_says_what_was_heard_since_the_last_one() -> None:
    planner = TravelPlanner(USUAL)
    view = view_of("agent", ("user", REQUEST), ("user", "We are a group of 3."))
    known = planner.know(view)
    assert "three people" in planner.report(known, Random(1), "first")
    later = planner.know(
        view_of("agent", ("user", REQUEST), ("user", "We are a group of 3."), ("agent", "Fine."))
    )
    assert "three people" not in planner.report(later, Random(1), "unchanged")


# --- a budget that is not kept -------------------------------------------------------------------


PLAN_TEXT = render_plan(solution_of(WORLD, 0))
BUDGET_PROFILE = profile(Fact("budget", 500))
OVER = "Nothing that I found keeps to your budget: this one comes to $9,000."


def offered(*said: tuple[str, str], plan: str = PLAN_TEXT) -> View:
    """A traveller's view of a plan, followed by these messages."""
    seen = view_of("user", ("user", REQUEST), private=BUDGET_PROFILE)
    draft = SnapshotTaken(content=plan, digest=digest(plan))
    facts = [by("agent", draft, actor="agent")]
    for who, text in said:
        facts.append(by("agent" if who == "agent" else "human", MessageSent(text=text), actor=who))
    events = [record.event for record in seen.records]
    opened, request = events
    again = View("user", "human", seed=4)
    assert isinstance(opened, SessionOpened)
    assert isinstance(request, MessageSent)
    for record in records_of(opened, by("human", request, actor="user"), *facts):
        again.feed(record)
    return again


def test_a_price_above_the_budget_is_named_and_then_left_at_that() -> None:
    person, persona = Traveller(), PERSONAS["feedback"]
    seen = offered(("agent", OVER))
    state = person.see(seen, BUDGET_PROFILE)
    assert person.content(state, persona) is False
    said = person.comment(state, persona, Random(1))
    assert said is not None
    assert "$9,000" in said
    assert Fact("budget", 500) in understand_message(said)
    felt = person.rate(state, seen)
    assert felt is not None
    insisted = offered(
        ("agent", OVER), ("user", said), ("agent", OVER), ("user", said), ("agent", OVER)
    )
    person = Traveller()
    left = person.content(person.see(insisted, BUDGET_PROFILE), persona)
    assert isinstance(left, str)
    assert "the budget" in left


def test_a_mind_knows_the_change_of_goals_that_is_recorded() -> None:
    changes = []
    for seed in range(40):
        seen = offered(("agent", OVER))
        seen.trait_seed = seed
        changes.append(travel_user().changed(seen))
        assert changes[-1] == changing_traveller()(seen)
    assert None in changes
    assert any(changes)


def test_a_text_that_is_no_plan_contents_nobody() -> None:
    person = Traveller()
    state = person.see(offered(("agent", "Here."), plan="A draft."), BUDGET_PROFILE)
    assert person.content(state, PERSONAS["lazy"]) is False
