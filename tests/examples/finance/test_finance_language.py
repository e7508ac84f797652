"""What clients and advisers say to each other: many ways to say it, and the limits of reading it."""

from __future__ import annotations

from random import Random

import pytest
from duolog.engine.events import JSON
from duolog.examples.finance.language.advice import (
    FOLLOW_UPS,
    QUESTIONS,
    Figure,
    read_figures,
    read_questions,
    read_understood,
    say_figure,
    say_understood,
)
from duolog.examples.finance.language.profiles import Profile, read_profile, write_profile
from duolog.examples.finance.language.statements import (
    AMBIGUOUS,
    PLAIN,
    Fact,
    is_accepted,
    read_facts,
    say_accepted,
    say_fact,
    say_vaguely,
)
from duolog.examples.finance.world.generator import make_instance
from duolog.examples.finance.world.household import TOPICS, Topic

VALUES: dict[Topic, tuple[int, ...]] = {
    "loss": (6, 12, 21),
    "cushion": (1, 3, 6, 9),
    "age": (57, 63),
    "income": (3750, 4000),
    "study": (50, 75, 100),
    "project": (4000, 11_500),
    "support": (140, 500),
    "cover": (4, 8),
    "prepay": (90, 310),
}
FACTS = [Fact(topic, value) for topic in TOPICS for value in VALUES[topic]]
STRANGE = ("in a hundred", "out of the office")
"""Ways of saying a wish that the reader does not follow."""


def test_what_is_said_plainly_is_read_as_it_was_meant_but_for_two_phrases() -> None:
    words = Random(1)
    for fact in FACTS:
        for _ in range(30):
            said = say_fact(fact, words, "a new roof")
            found = () if any(text in said for text in STRANGE) else (fact,)
            assert read_facts(said) == found, said
    assert sum(len(PLAIN.variants(key, **dict.fromkeys(_FIELDS, "x"))) for key in TOPICS) >= 38


_FIELDS = ("n", "months", "money", "share", "years", "project")


@pytest.mark.parametrize("topic", ["study", "project", "support", "cover", "prepay"])
def test_that_there_is_no_wish_is_read_too(topic: Topic) -> None:
    words = Random(2)
    for _ in range(6):
        assert read_facts(say_fact(Fact(topic, 0), words)) == (Fact(topic, 0),)


def test_what_can_be_read_in_more_than_one_way_is_never_taken_for_sure() -> None:
    words = Random(3)
    for topic in AMBIGUOUS.keys:
        for fact in FACTS:
            if fact.topic == topic:
                said = say_vaguely(fact, words, "a new roof")
                assert all(not found.sure for found in read_facts(said)), said


def test_an_acceptance_states_nothing() -> None:
    said = say_accepted(Random(4))
    assert is_accepted(said)
    assert not read_facts(said)
    assert not is_accepted("We want a reserve of six months, the rest is fine.")


def test_a_question_is_read_as_what_it_asks_about() -> None:
    for topic in TOPICS:
        for said in (*QUESTIONS.variants(topic), *FOLLOW_UPS.variants(topic)):
            assert read_questions(said) == (topic,), said


def test_what_was_understood_can_be_checked() -> None:
    for seed in range(5):
        facts = [Fact(t, VALUES[t][0]) for t in TOPICS]
        assert set(read_understood(say_understood(facts, Random(seed)))) == set(facts)
    none = [Fact(t, 0) for t in ("study", "project", "support", "cover", "prepay") if t in TOPICS]
    assert set(read_understood(say_understood(none, Random(9)))) == set(none)
    assert read_understood("We want six months of spending at hand.") == ()


def test_figures_are_read_in_the_order_in_which_they_stand() -> None:
    words = Random(5)
    text = " ".join(
        (
            say_figure("age", words, age=60, income="3,000", value=41),
            say_figure("loss", words, value=19, money="30,000"),
            say_figure("cushion", words, value="2.5"),
            say_figure("study0", words, cost="60,000"),
            say_figure("cover", words, value="3.0"),
        )
    )
    found = read_figures(text)
    assert [figure.topic for figure in found] == ["age", "loss", "cushion", "study", "cover"]
    assert [figure.value for figure in found] == [41, 19, 2.5, 0, 3]
    free = "I reckon a bad year could cost you roughly 17 percent."
    assert read_figures(free) == (Figure("loss", 17.0),)


def test_a_profile_reads_back_and_changes_topic_by_topic() -> None:
    one = make_instance(1, 0)
    moved = {topic: getattr(one.needs, topic) for topic in one.moves}
    profile = Profile(
        spending=4000,
        salary=70_000,
        holds=one.holds,
        moved=moved,
        heard=one.moves[0],
        project="a new roof" if one.holds.project else "",
    )
    written = write_profile(profile)
    assert read_profile(written) == profile
    later = written["second thoughts"]
    assert isinstance(later, list)
    older: list[JSON] = [str(text).replace("Soon I hear that ", "Soon, ") for text in later]
    assert older != later
    assert read_profile({**written, "second thoughts": older}) == profile
    for topic in one.moves:
        profile = profile.after(topic)
        assert read_profile(write_profile(profile)) == profile
    assert profile.holds == one.needs
    assert not profile.moved
