"""Phrases and patterns: what one writes in many ways, the other reads; and ratings."""

from __future__ import annotations

from random import Random

from duolog.engine.events import MessageSent, SessionOpened
from duolog.engine.session.view import View
from duolog.tasks.phrases import (
    Patterns,
    Phrases,
    counted,
    number_in,
    spelled,
    unread,
)
from duolog.tasks.views import words_of
from duolog.testing import by, records_of
from duolog.users.deferrals import is_deferral, say_deferral
from toy_task import PATTERNS, PHRASES


def test_one_seed_says_one_thing_and_many_seeds_say_it_in_many_ways() -> None:
    said = [PHRASES.say("wish", Random(seed), flower="rose") for seed in range(40)]
    assert said == [PHRASES.say("wish", Random(seed), flower="rose") for seed in range(40)]
    assert len(set(said)) >= 5
    assert all(text[0].isupper() for text in said)


def test_what_is_said_is_read_with_its_fields() -> None:
    (heard,) = PATTERNS.read("Well, A ROSE, perhaps.")
    assert (heard.key, heard.fields) == ("wish", {"flower": "ROSE"})
    assert unread(PHRASES, PATTERNS, {"wish": {"flower": "lily"}}) == []


def test_variants_that_are_not_read_are_named() -> None:
    deaf = Patterns({"wish": "never"})
    assert unread(Phrases({"wish": ("a {flower}.",)}), deaf, {"wish": {"flower": "lily"}}) == [
        "a lily."
    ]


def test_questions_are_read_in_sentences_that_ask() -> None:
    text = "There is a rose in it. What flowers should be in it?"
    assert [heard.key for heard in PATTERNS.questions(text)] == ["which"]
    assert PATTERNS.questions("I like flowers.") == ()


def test_a_deferral_states_nothing() -> None:
    assert all(is_deferral(say_deferral(Random(seed))) for seed in range(9))
    assert not is_deferral("I would love a rose.")


def test_numbers_and_lists_in_words() -> None:
    assert [number_in(text) for text in ("1,200 dollars", "Three of us", "nobody")] == [
        1200,
        3,
        None,
    ]
    assert (counted(1, "city", "cities"), counted(14, "city", "cities")) == (
        "one city",
        "14 cities",
    )
    assert [spelled(names) for names in ((), ("a",), ("a", "b", "c"))] == ["", "a", "a, b and c"]


def test_nobody_says_a_thing_twice_in_the_same_words_while_there_are_others() -> None:
    opened = SessionOpened(task="t", instance="1", participants=(), clock="virtual")
    texts = [f"Here is version {word} of it." for word in ("one", "two", "three", "four")]
    said: list[str] = []
    for _ in texts:
        view = View("agent", "agent", seed=1)
        drafts = [by("agent", MessageSent(text=text), actor="agent") for text in said]
        for record in records_of(opened, *drafts):
            view.feed(record)
        said.append(words_of(view).choice(texts))
    assert sorted(said) == sorted(texts)
