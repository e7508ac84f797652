"""Each plain variant of a message can be parsed; odd ones may fail, but never mislead."""

from __future__ import annotations

from random import Random

import pytest
from duolog.examples.data.facts import ADVISED, CHANNELS, RULINGS, Names, Ruling, Topic
from duolog.examples.data.language.messages import (
    HUMAN,
    MessageReader,
    asks_to_rephrase,
    propose,
    say_advice_wish,
    say_request,
)
from duolog.examples.data.language.rulings import (
    ask_ruling,
    asked_rulings,
    read_rulings,
    say_ruling,
)
from duolog.examples.data.language.topics import ODD, PLAIN, say_topic, wordings_of

NAMES = Names("coffee", ("Eastvale", "Skerry"), ("Latte", "Mocha"))
READER = MessageReader(NAMES)
TOPICS = [
    Topic("favourite", "Eastvale"),
    Topic("price", "Latte"),
    Topic("age", "Mocha"),
    Topic("channel", "Mocha"),
    Topic("quality", "prices"),
    Topic("quality", "ratings"),
]
MANY = range(40)


@pytest.mark.parametrize("topic", TOPICS)
def test_every_plain_question_is_read_as_its_topic(topic: Topic) -> None:
    for text in PLAIN.variants(topic.kind, subject="coffee", about=topic.about):
        assert READER.read(text).topics == (topic,), text
        assert READER.read(text.upper()).topics == (topic,), text
    for number in MANY:
        said = say_topic(topic, "coffee", Random(number))
        assert READER.read(said).topics == (topic,), said
        assert said.lower().endswith(tuple(map(str.lower, wordings_of(topic, "coffee"))))


@pytest.mark.parametrize("topic", TOPICS)
def test_an_odd_question_is_not_read_as_another_topic(topic: Topic) -> None:
    for text in ODD.variants(topic.kind, about=topic.about):
        read = READER.read(text)
        assert read.topics in ((), (topic,)), text
        assert read.vague in ((), (topic.about,)), text


@pytest.mark.parametrize("topic", [one for one in TOPICS if one.kind in ADVISED])
def test_a_request_asks_one_thing(topic: Topic) -> None:
    for number in MANY:
        request = say_request(topic, "coffee", Random(number))
        assert READER.read(request).topics == (topic,), request


@pytest.mark.parametrize("ruling", RULINGS)
@pytest.mark.parametrize("holds", [True, False])
def test_every_plain_ruling_is_read_and_an_odd_one_never_as_its_opposite(
    ruling: Ruling, holds: bool
) -> None:
    for number in MANY:
        said = say_ruling(ruling, Random(number), holds=holds)
        assert read_rulings(said) == {ruling: holds}, said
        message = READER.read(said)
        assert (message.rulings, message.topics, message.vague) == ({ruling: holds}, (), ()), said
        odd = say_ruling(ruling, Random(number), holds=holds, odd=True)
        assert read_rulings(odd) in ({}, {ruling: holds}), odd


@pytest.mark.parametrize("ruling", RULINGS)
def test_a_question_about_a_ruling_is_read_and_a_plain_yes_or_no_answers_it(ruling: Ruling) -> None:
    for number in MANY:
        question = ask_ruling(ruling, Random(number))
        assert asked_rulings(question) == (ruling,), question
        assert read_rulings(question) == {}
        assert READER.read("Yes, they do.", (ruling,)).rulings == {ruling: True}
        assert READER.read("No.", (ruling,)).rulings == {ruling: False}


def test_a_question_about_a_topic_asks_about_no_ruling() -> None:
    for topic in TOPICS:
        for text in PLAIN.variants(topic.kind, subject="coffee", about=topic.about):
            assert asked_rulings(text) == (), text
            assert asked_rulings(f"Shall I look into this next: {text}") == (), text


@pytest.mark.parametrize("topic", TOPICS)
def test_a_proposal_is_read_as_one(topic: Topic) -> None:
    for number in MANY:
        said = propose(topic, "one", Random(number))
        assert READER.proposed(f"The report is updated. {said}") == topic, said
    assert READER.proposed("What do you want to know next?") is None


@pytest.mark.parametrize("topic", [one for one in TOPICS if one.kind in ADVISED])
def test_a_wish_for_advice_is_read(topic: Topic) -> None:
    for number in MANY:
        said = say_advice_wish(topic, Random(number))
        assert READER.read(said).advice == topic, said
        assert READER.read(said).topics == ()


def test_complaints_and_short_answers_are_read() -> None:
    for text in HUMAN.variants("chart", about="Mocha"):
        assert READER.read(text).charts == ("Mocha",), text
    for text in HUMAN.variants("long"):
        assert READER.read(text).short, text
    for key in ("yes", "no", "done", "added"):
        for text in HUMAN.variants(key):
            assert READER.read(text[:1].upper() + text[1:]).understood, text
    assert asks_to_rephrase("Could you put it another way?")
    assert not asks_to_rephrase("What do you want to know next?")


def test_words_that_say_nothing_are_not_understood() -> None:
    assert not READER.read("The weather is fine.").understood
    assert READER.read("What about Latte?").vague == ("Latte",)
    assert CHANNELS == ("app", "counter", "delivery")  # the report's forms name them


def test_only_those_who_have_learned_something_find_it_interesting() -> None:
    topic = Topic("age", "Mocha")
    learned = ("Interesting", "Good to know", "I see", "Now I wonder")
    for seed in range(60):
        assert not say_topic(topic, "coffee", Random(seed)).startswith(learned)
    found = [say_topic(topic, "coffee", Random(seed), learned=True) for seed in range(60)]
    assert any(text.startswith(learned) for text in found)
