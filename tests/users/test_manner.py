"""How people talk: they ask back, repeat, refuse, complain and praise, at the rates of their persona."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest
from duolog.engine.codec import digest
from duolog.engine.events import (
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    ProgressRated,
    SessionOpened,
    SnapshotTaken,
)
from duolog.engine.records import Draft
from duolog.engine.session.decisions import Approve, Decision, Finish, Rate, Say, Submit
from duolog.engine.session.view import View
from duolog.examples.finance.language.statements import read_facts
from duolog.examples.proof.language.mathematician import PATTERNS
from duolog.examples.travel.language.messages import understand_message
from duolog.examples.tutoring.language.answers import Said, read_said
from duolog.scoring.turns import Turn, annotate
from duolog.tasks.rule_agent import explained
from duolog.testing import by, records_of
from duolog.users.deferrals import DEFERRALS, is_deferral
from duolog.users.manner import ADDED, CHECKING, QUERIES, Mannered, gives_up, is_query, plain
from duolog.users.personas import Persona, find_persona
from duolog.users.simulated import UserIntent

OFF = "feedback+questions=0+queries=0+repeats=0+refuses=0+complains=0+praises=0+asides=0"


class Mind:
    """Says the same each time."""

    def __init__(self, decision: Decision, rating: int = 3) -> None:
        self.decision = decision
        self.rating = rating

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        return "feedback"

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        return self.decision

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        return Rate(self.rating)


def said(text: str, role: Literal["human", "agent"] = "agent") -> Draft:
    return by(role, MessageSent(text=text), actor="user" if role == "human" else role)


DRAWN = by("agent", SnapshotTaken(content="A", digest=digest("A")), actor="agent")


def view(*facts: Draft, me: str = "user") -> View:
    opened = SessionOpened(task="t", instance="1", participants=(), clock="virtual")
    seen = View(me, "human" if me == "user" else "agent", seed=1)
    for record in records_of(opened, *facts):
        seen.feed(record)
    return seen


REQUEST = said("A poem, please.", "human")
BLUE = Decision((Say("I want it blue."),))


QUIET = find_persona(OFF)


def worth(round_: int, rating: int) -> ProgressRated:
    return ProgressRated(round=round_, rating=rating)


async def told(seen: View, persona: str, intent: UserIntent, rating: int = 3) -> str:
    mind = Mannered(Mind(BLUE, rating))
    [verb] = (await mind.compose(seen, find_persona(persona), intent)).verbs
    assert isinstance(verb, Say)
    return verb.text


async def test_without_manners_a_person_says_what_there_is_to_say() -> None:
    seen = view(REQUEST, DRAWN, said("Done?"))
    intents: tuple[UserIntent, ...] = ("feedback", "answer")
    for intent in intents:
        assert await told(seen, OFF, intent) == "I want it blue."


async def test_a_question_is_asked_back_once_and_then_answered() -> None:
    asked = (REQUEST, DRAWN, said("Which shade?"))
    back = await told(view(*asked), f"{OFF}+queries=1".replace("+queries=0", ""), "answer")
    assert is_query(back)
    after = view(*asked, said(back, "human"), said("I mean this: Which shade?"))
    assert await told(after, f"{OFF}+queries=1".replace("+queries=0", ""), "answer") == (
        "I want it blue."
    )


def test_an_agent_on_rules_asks_again_what_was_not_understood() -> None:
    seen = view(REQUEST, said("Fine. Which shade?"), said(QUERIES[0], "human"), me="agent")
    again = explained(seen)
    assert again is not None
    [verb] = again.verbs
    assert isinstance(verb, Say)
    assert verb.text.endswith("Which shade?")
    assert "Fine." not in verb.text
    assert (
        explained(view(REQUEST, said("Which shade?"), said("Blue.", "human"), me="agent")) is None
    )


@pytest.mark.parametrize(
    ("rate", "rating", "added"),
    [("complains", 1, True), ("praises", 5, True), ("complains", 5, False), ("praises", 2, False)],
)
async def test_people_complain_and_praise_by_what_the_round_was_worth(
    rate: str, rating: int, *, added: bool
) -> None:
    seen = view(REQUEST, DRAWN)
    text = await told(seen, OFF.replace(f"{rate}=0", f"{rate}=1"), "feedback", rating)
    assert text.endswith("I want it blue.")
    assert (text != "I want it blue.") == added
    labels = (
        annotate(Turn(text=text.removesuffix("I want it blue."), before="Here.")) or frozenset()
    )
    assert bool(labels & ({"complaint"} if rating < 3 else {"praise", "thanks"})) == added


async def test_people_say_the_same_again() -> None:
    seen = view(REQUEST, DRAWN, said("Make it rhyme.", "human"), said("I have."))
    text = await told(seen, OFF.replace("repeats=0", "repeats=1"), "feedback")
    assert text.endswith(" Make it rhyme.")
    assert "repeat" in (annotate(Turn(text=text, said="Make it rhyme.")) or ())


async def test_an_approval_is_refused_once() -> None:
    asking = by("agent", ApprovalAsked(question="May I?", action="book"), actor="agent")
    seen = view(REQUEST, asking)
    version = seen.records[-1].version
    mind = Mannered(Mind(Decision((Approve(version),))))
    always = find_persona(OFF.replace("refuses=0", "refuses=1"))
    [verb] = (await mind.compose(seen, always, "answer")).verbs
    assert isinstance(verb, Approve)
    assert not verb.approved
    assert verb.comment
    denied = by("human", ApprovalGiven(asked=version, approved=False), actor="user")
    again = view(REQUEST, asking, denied, asking)
    mind = Mannered(Mind(Decision((Approve(again.records[-1].version),))))
    [verb] = (await mind.compose(again, always, "answer")).verbs
    assert isinstance(verb, Approve)
    assert verb.approved


async def test_whoever_leaves_a_decision_to_the_other_adds_no_question() -> None:
    talks = find_persona(OFF.replace("questions=0", "questions=1").replace("asides=0", "asides=1"))
    seen = view(REQUEST, DRAWN, said("Which shade?"))
    for text in DEFERRALS:
        decision = Decision((Say(text),))
        assert await Mannered(Mind(decision)).compose(seen, talks, "answer") == decision


async def test_an_offer_in_any_task_may_be_refused_and_a_plain_question_is_answered() -> None:
    always = find_persona(OFF.replace("refuses=0", "refuses=1"))
    mind = Mannered(Mind(Decision((Say("Yes, please."),))))
    [no] = (
        await mind.compose(view(REQUEST, DRAWN, said("Shall I print it?")), always, "answer")
    ).verbs
    assert isinstance(no, Say)
    assert no.text.startswith("No")
    [yes] = (await mind.compose(view(REQUEST, DRAWN, said("Is it short?")), always, "answer")).verbs
    assert yes == Say("Yes, please.")


@pytest.mark.parametrize("question", CHECKING)
def test_a_question_after_an_answer_asks_for_work_and_not_what_was_meant(question: str) -> None:
    labels = annotate(Turn(text=f"I want it blue. {question}", before="Which colour?", said="Hi."))
    assert labels is not None
    assert "asks" in labels
    assert not labels & {"clarify", "vague", "complaint", "repeat"}


async def test_what_is_added_to_an_answer_is_not_a_request() -> None:
    asks = find_persona(OFF.replace("questions=0", "questions=1"))
    mind = Mannered(Mind(BLUE))
    added = {}
    for intent, seen in (
        ("answer", view(REQUEST, said("Which colour?"))),
        ("feedback", view(REQUEST, DRAWN, said("Here."))),
    ):
        [verb] = (
            await mind.compose(seen, asks, "answer" if intent == "answer" else "feedback")
        ).verbs
        assert isinstance(verb, Say)
        added[intent] = verb.text.removesuffix(" I want it blue.")
        assert plain(verb.text) == "I want it blue."
    assert added["answer"].removeprefix("I want it blue. ") in CHECKING
    assert added["feedback"] not in CHECKING
    worked = view(
        REQUEST,
        DRAWN,
        said("Here."),
        by("human", SnapshotTaken(content="B", digest=digest("B")), actor="user"),
    )
    [verb] = (await mind.compose(worked, asks, "feedback")).verbs
    assert verb == Say("I want it blue.")  # a report on one's own work asks for nothing


@pytest.mark.parametrize(("rating", "leaves"), [(2, True), (3, False)])
async def test_a_person_gives_up_after_fifteen_unproductive_rounds_in_a_row(
    rating: int, *, leaves: bool
) -> None:
    rated = [
        by("human", ProgressRated(round=n, rating=2 if n else rating), actor="user")
        for n in range(15)
    ]
    seen = view(REQUEST, DRAWN, said("Here."), *rated)
    assert gives_up(seen) == leaves
    decision = await Mannered(Mind(BLUE)).compose(seen, find_persona(OFF), "feedback")
    ends = [verb.reason for verb in decision.verbs if isinstance(verb, Finish)]
    assert (ends == ["abandoned"]) == leaves


def test_a_person_gives_up_if_nothing_is_ever_shown_to_them() -> None:
    talk = [said(f"{n}?", "human" if n % 2 else "agent") for n in range(54)]
    assert gives_up(view(REQUEST, *talk))
    assert not gives_up(view(REQUEST, *talk[:40]))


async def test_a_short_reply_comes_first_and_work_is_left_alone() -> None:
    talks = find_persona(OFF.replace("asides=0", "asides=1"))
    seen = view(REQUEST, DRAWN)
    for verbs in ((Say("Yes, please."),), (Submit("B"),), (Say("One."), Say("Two."))):
        decision = Decision(verbs)
        assert await Mannered(Mind(decision)).compose(seen, talks, "feedback") == decision


def test_what_is_added_holds_nothing_about_a_task() -> None:
    for text in (*ADDED, *QUERIES):
        assert understand_message(text) == ()
        assert not read_facts(text)
        assert not is_deferral(text)
        assert not PATTERNS.read(text)
        assert read_said(text, ()) == Said()


@pytest.mark.parametrize(("ratings", "reason"), [([2, 1, 2], "abandoned"), ([2, 1, 3], "finished")])
async def test_who_ends_after_three_unproductive_rounds_has_given_up(
    ratings: list[int], reason: str
) -> None:
    facts = [by("human", ProgressRated(round=n, rating=r)) for n, r in enumerate(ratings, 1)]
    mind = Mannered(Mind(Decision((Finish("satisfied with the output"),))))
    seen = view(REQUEST, DRAWN, *facts)
    [verb] = (await mind.compose(seen, find_persona(OFF), "finish")).verbs
    assert isinstance(verb, Finish)
    assert verb.reason == reason
    assert ("satisfied" in verb.detail) == (reason == "finished")


async def test_people_do_not_ask_what_an_open_question_means() -> None:
    asks = f"{OFF}+queries=1".replace("+queries=0", "")
    for question in ("Is there anything else that I should know?", "Where shall I look next?"):
        assert await told(view(REQUEST, DRAWN, said(question)), asks, "answer") == "I want it blue."


@pytest.mark.parametrize(
    ("times", "rating", "leaves"), [(4, 2, True), (3, 2, False), (4, 3, False)]
)
async def test_who_hears_the_same_again_and_again_gives_up(
    times: int, rating: int, *, leaves: bool
) -> None:
    heard: list[Draft] = []
    for number in range(times):
        heard += [
            said("Is there anything else?"),
            by("human", worth(number + 1, rating), actor="user"),
        ]
        heard += [said(f"No, {number}.", "human")]
    decision = await Mannered(Mind(BLUE)).compose(view(REQUEST, *heard[:-1]), QUIET, "answer")
    ends = [verb for verb in decision.verbs if isinstance(verb, Finish)]
    assert [verb.reason for verb in ends] == (["abandoned"] if leaves else [])


@pytest.mark.parametrize(
    ("why", "rating", "reason"),
    [
        ("satisfied with the output", 2, "finished"),
        ("settles for it", 2, "finished"),
        ("satisfied with the output", 1, "abandoned"),
        ("out of time", 2, "abandoned"),
        ("out of time", 3, "finished"),
    ],
)
async def test_nobody_leaves_satisfied_after_a_round_that_made_it_worse(
    why: str, rating: int, reason: str
) -> None:
    mind = Mannered(Mind(Decision((Finish(why),)), rating))
    [verb] = (await mind.compose(view(REQUEST, DRAWN, said("Here.")), QUIET, "finish")).verbs
    assert isinstance(verb, Finish)
    assert verb.reason == reason
    assert not (reason == "abandoned" and verb.detail.startswith("satisfied"))


TALKS = find_persona(
    "feedback+questions=0+queries=0+repeats=0+refuses=0+complains=1+praises=1+asides=1"
)


@pytest.mark.parametrize(
    "text",
    [
        "That is not on my sheet, let us skip it.",
        "Well, no idea, to be honest.",
        "Hmm, I don't know.",
        "Not now, I want to get on with the sheet.",
    ],
)
async def test_nothing_is_added_to_a_refusal(text: str) -> None:
    decision = Decision((Say(text),))
    seen = view(REQUEST, DRAWN, said("What is 1 + 1?"))
    asks = msgspec.structs.replace(TALKS, questions=1.0)
    assert await Mannered(Mind(decision, 5)).compose(seen, asks, "answer") == decision


async def test_praise_before_what_is_still_open_praises_no_more_than_a_part() -> None:
    decision = Decision((Say("That is too blue."),))
    [verb] = (
        await Mannered(Mind(decision, 5)).compose(view(REQUEST, DRAWN), TALKS, "feedback")
    ).verbs
    assert isinstance(verb, Say)
    assert verb.text != "That is too blue."
    assert not any(whole in verb.text for whole in ("Perfect", "Excellent", "Great"))


@pytest.mark.parametrize(("words", "remarks"), [(40, False), (200, True)])
async def test_people_remark_on_the_reading_only_if_there_was_much(
    words: int, *, remarks: bool
) -> None:
    texts = []
    for number in range(60):
        seen = view(REQUEST, *[said("Hm.", "human")] * number, DRAWN, said("word " * words + "."))
        texts.append(await told(seen, OFF.replace("asides=0", "asides=1"), "feedback"))
    about = ("quite a lot to read", "took me a while", "to read your message", "what you sent me")
    assert any(part in text for text in texts for part in about) == remarks


async def test_before_a_question_comes_no_remark_on_a_flaw() -> None:
    mind = Mannered(Mind(Decision((Say("Which shade is that?"),))))
    for number in range(20):
        seen = view(REQUEST, *[said("Hm.", "human")] * number, DRAWN, said("Here."))
        persona = find_persona(OFF.replace("asides=0", "asides=1"))
        [verb] = (await mind.compose(seen, persona, "feedback")).verbs
        assert isinstance(verb, Say)
        before = verb.text.removesuffix(" Which shade is that?")
        assert any(
            word in before
            for word in (
                "question",
                "know",
                "ask",
                "curious",
                "interests",
                "understand",
                "clear",
                "find out",
            )
        )


async def test_who_repeats_a_sentence_says_so() -> None:
    mind = Mannered(Mind(Decision((Say("The sky is not blue enough for me."),))))
    before = said("The sky is not blue enough for me.", "human")
    seen = view(REQUEST, DRAWN, before, said("Done."))
    [verb] = (await mind.compose(seen, QUIET, "feedback")).verbs
    assert isinstance(verb, Say)
    assert verb.text != before.event.text if isinstance(before.event, MessageSent) else False
    assert "repeat" in (
        annotate(Turn(text=verb.text, said="The sky is not blue enough for me.")) or ()
    )


async def test_only_who_was_let_down_before_says_that_it_goes_round_in_circles() -> None:
    grave = ("circles", "listening", "frustrating", "waste", "disappointed")
    for number in range(20):
        seen = view(REQUEST, *[said("Hm.", "human")] * number, DRAWN, said("Here."))
        text = await told(seen, OFF.replace("complains=0", "complains=1"), "feedback", 2)
        assert text != "I want it blue."
        assert not any(word in text for word in grave)


async def test_a_bad_mood_is_no_ground_for_a_complaint() -> None:
    class Moody(Mind):
        async def rate(self, view: View, persona: Persona) -> Rate | None:
            return Rate(1, "I am not in the mood for this.")

    seen = view(REQUEST, DRAWN, said("Here."))
    persona = find_persona(OFF.replace("complains=0", "complains=1"))
    assert await Mannered(Moody(BLUE)).compose(seen, persona, "feedback") == BLUE


async def test_the_last_of_three_unproductive_rounds_counts_before_they_leave() -> None:
    facts = [by("human", ProgressRated(round=n, rating=2)) for n in (1, 2)]
    mind = Mannered(Mind(Decision((Finish("satisfied with the output"),)), 2))
    [verb] = (await mind.compose(view(REQUEST, *facts, DRAWN), QUIET, "finish")).verbs
    assert isinstance(verb, Finish)
    assert (verb.reason, "satisfied" in verb.detail) == ("abandoned", False)


async def test_nobody_says_that_they_are_satisfied_after_a_round_that_brought_nothing() -> None:
    mind = Mannered(Mind(Decision((Finish("satisfied with the output"),)), 2))
    [verb] = (await mind.compose(view(REQUEST, DRAWN, said("Here.")), QUIET, "finish")).verbs
    assert isinstance(verb, Finish)
    assert verb.reason == "finished"
    assert verb.detail.startswith("settles")


def test_no_deferral_claims_to_have_forgotten_a_wish() -> None:
    assert not [text for text in DEFERRALS if "remember" in text or "recall" in text]
