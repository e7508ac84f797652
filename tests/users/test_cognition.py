"""What limits simulated users: each mechanism changes what they do, and all of it follows from the view."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from duolog.engine import codec
from duolog.engine.events import Event, MessageSent, Nudged, ProgressRated, Role, SnapshotTaken
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from duolog.engine.session.decisions import NOTHING, Decision, Rate, Say
from duolog.engine.session.runner import run_session
from duolog.engine.session.view import View
from duolog.engine.task import Cell, Setting, Task, find_task
from duolog.examples.finance.finance_task import finance_task
from duolog.examples.finance.plan import Plan, render_plan
from duolog.examples.finance.rule_user import FinanceClient, finance_user
from duolog.examples.finance.world.household import Topic
from duolog.scoring.check import check_session
from duolog.users.cognition.adaptation import TAKES_OVER, Adaptation, adapted
from duolog.users.cognition.mind import LimitedMind, Satisfaction, limited_changing, limited_mind
from duolog.users.cognition.perception import LEFT_OUT, Perception
from duolog.users.personas import PERSONAS, Cognition, Persona, find_persona
from duolog.users.simulated import UserIntent
from hypothesis import given
from hypothesis import strategies as st

BOUNDED = PERSONAS["bounded"]
NOBODY = Persona(name="nobody", description="is limited by nothing")
Step = tuple[str, Event]


def view_of(*steps: Step, start: View | None = None) -> View:
    view = start or View("user", "human", seed=1)
    for actor, event in steps:
        version = view.version + 1
        kind, schema = codec.kind_of(event)
        body = codec.encode_body(event)
        role: Role = "human" if actor == "user" else "agent"
        view.feed(
            Record(
                version, "s", TRACE, version, kind, schema, 0.0, actor, role, None, None, None, body
            )
        )
    return view


def user(text: str) -> Step:
    return "user", MessageSent(text=text)


def agent(text: str) -> Step:
    return "agent", MessageSent(text=text)


def rating(value: int) -> Step:
    return "user", ProgressRated(round=1, rating=value)


def texts(view: View, cognition: Cognition) -> list[str]:
    return [message.text for message in Perception(cognition).of(view).messages]


def now(persona: Persona, view: View) -> Persona:
    """The persona as they are once they have seen all of a view."""
    adaptation = Adaptation(persona.cognition)
    for record in view.records:
        adaptation.feed(record, mine=record.actor == view.me)
    return adapted(persona, adaptation)


def rated(rating: Rate, view: View, cognition: Cognition) -> Rate:
    return Satisfaction(cognition).rated(rating, view)


def client(*steps: Step) -> View:
    """A finance client's view, with the profile of instance 0."""
    session = finance_task().session(
        Cell(agent="one-stage", user="bounded", instance="0", seed=3), Setting()
    )
    return view_of(("engine", session.opened), user("I want to retire early."), *steps)


class Told:
    """A mind that notes what it is given."""

    def __init__(self) -> None:
        self.persona = NOBODY
        self.view = View("user", "human")

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        self.view, self.persona = view, persona
        return "nothing"

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        return NOTHING

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        return Rate(3)


# --- attention -----------------------------------------------------------------------------------

LONG = "Here is a first plan. " + "It has a line for each of your savings. " * 10


def test_the_end_of_a_long_message_is_skimmed_and_its_beginning_read() -> None:
    view = view_of(user("Help me."), agent(LONG + "Which age?"))
    read = texts(view, Cognition(attention=6.0, skims=0.0))[1]
    assert read.startswith("Here is a first plan.")
    assert read.endswith(f"{LEFT_OUT} ")
    assert "Which age?" not in read
    assert texts(view, Cognition(attention=500.0, skims=0.0))[1] == LONG + "Which age?"


async def test_a_question_that_was_skimmed_is_answered_only_after_a_reminder() -> None:
    question = agent(LONG + "At what age would you like to stop working?")
    skims = msgspec.structs.replace(NOBODY, cognition=Cognition(attention=6.0, skims=0.0))
    mind = limited_mind(finance_user, skims)
    view = client(question)
    assert await limited_mind(finance_user, NOBODY).choose(view, NOBODY) == "answer"
    assert await mind.choose(view, skims) == "nothing"
    reminded = view_of(("engine", Nudged(to="user")), start=view)
    assert await mind.choose(reminded, skims) == "answer"


def test_who_trusts_less_reads_more_closely() -> None:
    cognition = Cognition(attention=6.0, skims=0.0, trust_loss=0.9)
    bad = view_of(user("Help me."), rating(1), rating(1), agent(LONG))
    assert texts(bad, cognition)[-1] == LONG


# --- memory --------------------------------------------------------------------------------------


async def test_a_wish_said_many_turns_ago_is_forgotten_and_said_again() -> None:
    said = user("I hope to retire when I am 60.")
    view = client(agent("At what age would you like to stop working?"), said)
    for turn in range(6):
        view = view_of(agent(f"I see, number {turn}."), user(f"Thank you, {turn}."), start=view)
    short = Cognition(memory=0.3)
    assert texts(view, short)[:3] == ["I want to retire early.", LEFT_OUT, LEFT_OUT]
    assert texts(view, short)[-1] == "Thank you, 5."
    assert said[1] in [record.event for record in view.records]  # the log is as it was
    topics = [_told(view), _told(Perception(short).of(view))]
    assert topics[0] == {"age": 60}
    assert topics[1] == {}


def _told(view: View) -> Mapping[Topic, int]:
    return FinanceClient().see(view, view.private).told


@given(memory=st.floats(0.1, 20.0), turns=st.integers(1, 12), seed=st.integers(0, 50))
def test_what_is_forgotten_stays_forgotten(memory: float, turns: int, seed: int) -> None:
    view = View("user", "human", seed=seed)
    gone: set[int] = set()
    for turn in range(turns):
        view = view_of(agent(f"Statement {turn}"), user(f"Answer {turn}"), start=view)
        mind = Perception(Cognition(memory=memory)).of(view)
        lost = {m.version for m in mind.messages if m.text == LEFT_OUT}
        assert gone <= lost
        assert mind.messages[-1].text == f"Answer {turn}"
        gone = lost


WORDS = st.sampled_from(("Plan for 12 and 340.", "Say 12.", LONG, f"{LONG} It is 340.", "Help me."))
STEPS = st.one_of(
    st.tuples(st.just("user"), WORDS.map(lambda text: MessageSent(text=text))),
    st.tuples(st.just("agent"), WORDS.map(lambda text: MessageSent(text=text))),
    st.tuples(st.just("user"), st.integers(1, 5).map(lambda n: ProgressRated(round=1, rating=n))),
    st.just(("engine", Nudged(to="user"))),
)


@given(st.lists(st.lists(STEPS, max_size=6), max_size=6), st.integers(0, 30))
def test_step_by_step_they_have_in_mind_what_they_have_of_all_at_once(
    looks: list[list[Step]], seed: int
) -> None:
    view = View("user", "human", seed=seed)
    following, mood = Perception(BOUNDED.cognition), Satisfaction(BOUNDED.cognition)
    for steps in looks:
        view = view_of(*steps, start=view)
        view.next_decision(tuple(view.records[-len(steps) :] if steps else ()), None, False)
        seen, anew = following.of(view), Perception(BOUNDED.cognition)
        whole = anew.of(view)
        assert [record.body for record in seen.records] == [one.body for one in whole.records]
        assert seen.messages == whole.messages
        assert [one.body for one in seen.news] == [one.body for one in whole.news]
        assert seen.random.random() == whole.random.random() == following.of(view).random.random()
        assert adapted(BOUNDED, following.now) == adapted(BOUNDED, anew.now)
        assert mood.rated(Rate(3), view) == rated(Rate(3), view, BOUNDED.cognition)


# --- misunderstanding ----------------------------------------------------------------------------


async def test_a_misread_figure_is_acted_upon_until_it_is_said_again() -> None:
    misreads = msgspec.structs.replace(NOBODY, cognition=Cognition(misreads=1.0))
    age = _held(client())["age"]
    generous = Plan(
        emergency=10**6, study=10**4, project=10**6, cover=10**7, prepay=10**4, stocks=0
    )
    plan = render_plan(generous)
    view = client(
        ("agent", SnapshotTaken(content=plan, digest=codec.digest(plan))),
        agent("At what age would you like to stop working?"),
        user(f"I hope to retire when I am {age}."),
        agent(f"I have planned for this: you want to stop working at {age}."),
    )
    assert f" {age}" not in texts(view, misreads.cognition)[-1]
    corrects = await _comment(view, misreads)
    assert str(age) in corrects
    assert corrects.startswith(("You have my age wrong:", "Not quite:"))
    again = view_of(user(corrects), agent(f"You want to stop working at {age}."), start=view)
    assert f" {age}." in texts(again, misreads.cognition)[-1]
    assert not (await _comment(again, misreads)).startswith(("You have my age", "Not quite:"))


async def _comment(view: View, persona: Persona) -> str:
    decision = await limited_mind(finance_user, persona).compose(view, persona, "feedback")
    return " ".join(verb.text for verb in decision.verbs if isinstance(verb, Say))


def _held(view: View) -> Mapping[Topic, int]:
    return FinanceClient().see(view, view.private).held


def test_one_s_own_figures_and_dates_and_names_are_not_misread() -> None:
    view = view_of(
        user("Plan 3 days."), user("For 2,100."), agent("On 2022-03-19 with F123, at 3.5, for 900.")
    )
    request, own, heard = texts(view, Cognition(misreads=1.0))
    assert (request, own) == ("Plan 3 days.", "For 2,100.")
    assert heard.startswith("On 2022-03-19 with F123, at 3.5, for ")
    assert "900" not in heard


# --- understanding and trust ---------------------------------------------------------------------


def test_understanding_grows_with_what_others_say() -> None:
    cognition = Cognition(understanding=0.5, learns=0.5)
    persona = msgspec.structs.replace(NOBODY, ambiguous=0.2, cognition=cognition)
    steps = [user("Help me."), agent("A."), agent("B."), agent("C.")]
    shares = [now(persona, view_of(*steps[:n])).ambiguous for n in (1, 2, 3, 4)]
    assert shares == pytest.approx([0.6, 0.4, 0.3, 0.25])


def test_trust_falls_with_bad_rounds_and_recovers_more_slowly() -> None:
    cognition = Cognition(trust_loss=0.4, trust_gain=0.1)
    persona = msgspec.structs.replace(
        NOBODY, vague=0.5, untold=1, contentment=0.8, cognition=cognition
    )
    trusting = now(persona, view_of(user("Help me."), rating(4)))
    assert (trusting.acts, trusting.vague, trusting.untold) == (False, 0.5, 1)
    wary = now(persona, view_of(user("Help me."), rating(1), rating(2)))
    assert 0.36 < TAKES_OVER
    assert wary.acts
    assert wary.untold == 0
    assert wary.vague == pytest.approx(0.5 * 0.36)
    assert wary.contentment == pytest.approx(1 - 0.2 * 0.36)
    steps = [user("Help me."), rating(1), rating(2), rating(5)]
    better = now(persona, view_of(*steps))
    assert better.vague == pytest.approx(0.5 * (0.36 + 0.64 * 0.1))


async def test_a_mind_decides_as_the_person_that_it_is_by_now() -> None:
    told = Told()
    view = view_of(user("Help me."), rating(1), rating(1), rating(1), agent(LONG))
    persona = msgspec.structs.replace(NOBODY, cognition=Cognition(trust_loss=0.5))
    await LimitedMind(told, persona.cognition).choose(view, persona)
    assert told.persona.acts
    assert told.view is not view
    assert (told.view.version, told.view.me, told.view.now) == (view.version, view.me, view.now)
    assert told.view.random.random() == view.random.random()


# --- satisfaction --------------------------------------------------------------------------------


@given(value=st.integers(1, 5), seed=st.integers(0, 99))
def test_without_limits_a_rating_is_the_rule_s(value: int, seed: int) -> None:
    view = view_of(agent(LONG), start=View("user", "human", seed=seed))
    assert rated(Rate(value, "so"), view, Cognition()) == Rate(value, "so")


@given(value=st.integers(1, 5), seed=st.integers(0, 99))
def test_a_noisy_rating_is_on_the_scale_and_the_same_again(value: int, seed: int) -> None:
    cognition = Cognition(rating_noise=2.0, leniency=1.0, anchoring=0.5, reading_cost=1.0)
    view = view_of(user("Help me."), rating(2), agent(LONG), start=View("user", "human", seed=seed))
    one = rated(Rate(value), view, cognition)
    assert 1 <= one.rating <= 5
    assert one == rated(Rate(value), view, cognition)


def test_ratings_lean_on_the_last_one_and_suffer_from_reading() -> None:
    view = view_of(user("Help me."), rating(1), agent("word " * 200))
    assert rated(Rate(5), view, Cognition(anchoring=0.5)).rating == 3
    assert rated(Rate(5), view, Cognition(reading_cost=1.0)).rating == 3


def test_a_reason_is_given_only_where_it_fits_the_rating() -> None:
    view = view_of(user("Help me."), rating(1))
    lower = rated(Rate(3, "We get on."), view, Cognition(anchoring=0.5))
    assert lower.rating == 2
    assert lower.explanation not in ("", "We get on.")
    assert rated(Rate(2, "Still wrong."), view, Cognition(anchoring=0.2)).explanation


def test_noise_spreads_ratings_around_what_the_round_brought() -> None:
    views = [view_of(user("Help me."), start=View("user", "human", seed=n)) for n in range(400)]
    felt = [rated(Rate(3), view, Cognition(rating_noise=0.7)).rating for view in views]
    assert sum(felt) / len(felt) == pytest.approx(3.0, abs=0.1)
    assert {2, 3, 4} <= set(felt)


# --- in sessions ---------------------------------------------------------------------------------


@pytest.fixture(params=["travel", "data", "finance", "proof", "tutoring"])
def task(request: pytest.FixtureRequest) -> Task:
    return find_task(str(request.param))


async def test_bounded_people_play_every_domain_alike_each_time(task: Task) -> None:
    cell = Cell(agent="one-stage", user="bounded", instance="1", seed=3)
    runs: list[list[bytes | None]] = []
    for _ in range(2):
        async with open_log("memory://") as log:
            played = task.session(cell, Setting())
            await run_session(log, played)
            runs.append([record.body async for record in log.read_all()])
            checked = await check_session(log, played.id)
            assert checked.differences == ()
    assert runs[0] == runs[1]
    assert any(b'"rating":' in (body or b"") for body in runs[0])


def test_the_old_personas_have_no_limits() -> None:
    assert [name for name, one in PERSONAS.items() if one.limited] == ["bounded"]
    mind = Told()
    assert limited_mind(lambda: mind, PERSONAS["lazy"]) is mind
    assert limited_changing(None, BOUNDED) is None


async def test_a_limited_user_rates_by_what_it_felt() -> None:
    persona = find_persona("feedback+anchoring=1")
    view = view_of(user("Help me."), rating(1), agent("Done?"))
    assert await LimitedMind(Told(), persona.cognition).rate(view, persona) == Rate(1)
