"""The rating of a person on rules follows from the gain of a round, its cost, and repeated questions."""

from __future__ import annotations

from typing import Literal

import pytest
from duolog.engine.codec import digest
from duolog.engine.events import MessageSent, ProgressRated, SessionOpened, SnapshotTaken
from duolog.engine.records import Draft
from duolog.engine.session.view import View
from duolog.testing import by, records_of
from duolog.users.judgement import QUESTION, compare, felt, first_output, questioned, rated
from duolog.users.manner import QUERIES
from duolog.users.personas import find_persona

EASY = find_persona("feedback+effort_cost=0")


def said(text: str, role: Literal["human", "agent"] = "agent") -> Draft:
    return by(role, MessageSent(text=text), actor="user" if role == "human" else role)


def view(*facts: Draft) -> View:
    opened = SessionOpened(task="t", instance="1", participants=(), clock="virtual")
    seen = View("user", "human", seed=1)
    for record in records_of(opened, *facts):
        seen.feed(record)
    return seen


def test_the_value_of_a_round_rises_with_what_it_gains() -> None:
    gains = (-0.5, -0.03, 0.0, QUESTION, 0.1, 0.4, 1.0)
    values = [felt(gain).value for gain in gains]
    assert values == sorted(values)
    assert [round(value) for value in values] == [1, 1, 2, 3, 4, 5, 5]


def test_a_strict_person_rates_lower_and_a_lenient_one_higher() -> None:
    seen = view(said("A poem, please.", "human"), said("Here it is."))
    found = [
        rated(felt(0.1), seen, find_persona(f"feedback+effort_cost=0+strictness={points}")).rating
        for points in (-1, 0, 1, 2)
    ]
    assert found == [5, 4, 3, 2]


def test_what_a_round_costs_comes_off_its_rating() -> None:
    long = view(said("A poem, please.", "human"), said("word " * 400))
    assert rated(felt(0.1), long, EASY).rating == 4
    assert rated(felt(0.1), long, find_persona("feedback")).rating == 3
    drawing = by("agent", SnapshotTaken(content="A", digest=digest("A")), actor="agent")
    assert rated(felt(0.1), view(drawing), find_persona("feedback")).rating == 4


def test_to_be_asked_the_same_again_costs_a_point() -> None:
    asked = (said("A poem, please.", "human"), said("For whom?"), said("For Ada.", "human"))
    again = rated(felt(QUESTION), view(*asked, said("For whom?")), EASY)
    assert again.rating == 2
    assert again.explanation
    free = (said("A poem, please.", "human"), said("What next?"), said("A rhyme.", "human"))
    assert rated(felt(QUESTION), view(*free, said("What next?")), EASY).rating == 3
    assert rated(felt(QUESTION), view(*asked, said("How long?")), EASY).rating == 3


def test_who_asked_back_does_not_mind_the_answer() -> None:
    asked = (said("A poem, please.", "human"), said("For whom?"), said(QUERIES[0], "human"))
    assert rated(felt(QUESTION), view(*asked, said("I mean: For whom?")), EASY).rating == 3


@pytest.mark.parametrize(
    ("before", "after", "changed", "complained", "rating"),
    [
        ((0, 0, 0, 0.9), (0.9, 0.9, 0, 0.9), True, True, 5),
        ((0, 0, 0, 0.4), (0, 0, 0, 0.9), True, True, 4),
        ((0.9, 0.9, 0.9, 0), (0.9, 0.9, 0.9, 0.9), True, True, 5),
        ((0.9, 0.9), (0.9, 0), True, False, 1),
        ((0.9, 0.9), (0.9, 0.9), False, False, 3),
        ((0.9, 0.9), (0.9, 0.9), True, False, 4),
        ((0, 0.9), (0, 0.9), True, True, 2),
        ((0, 0.9), (0, 0.9), False, True, 1),
        ((0, 0.9), (0, 0.9), False, False, 2),
    ],
)
def test_a_round_is_worth_the_wishes_that_have_become_likelier(
    before: tuple[float, ...],
    after: tuple[float, ...],
    changed: bool,
    complained: bool,
    rating: int,
) -> None:
    was, now = (dict(zip("abcd", met, strict=False)) for met in (before, after))
    assert round(compare(was, now, changed=changed, complained=complained).value) == rating


def test_a_question_about_an_open_wish_is_worth_something() -> None:
    met = {"the colour": 0.4, "the size": 0.9}
    asked = compare(met, met, changed=False, about="the colour")
    assert round(asked.value) == 3
    assert all("the colour" in words for words in asked.words)
    assert round(compare(met, met, changed=False).value) == 2
    assert round(questioned("the colour").value) == 3
    assert round(questioned("").value) == 2


def test_a_first_output_is_worth_what_is_right_with_it() -> None:
    good, bad = first_output({"a": 0.9, "b": 0.9}), first_output({"a": 0.0, "b": 0.9})
    assert (round(good.value), round(bad.value)) == (4, 4)
    assert good.value > bad.value > first_output({"a": 0.0, "b": 0.0}).value
    assert all("on a" in words or ": a" in words or "for a" in words for words in bad.words)


def test_no_reason_is_given_twice_while_there_are_others() -> None:
    one = compare({"a": 0.0}, {"a": 0.0}, changed=False)
    said_: list[Draft] = [said("A poem, please.", "human")]
    for _ in one.words:
        seen = view(*said_, said("Hm."))
        rating = rated(one, seen, EASY)
        said_ += [
            said("Hm."),
            by("human", ProgressRated(round=1, rating=2, explanation=rating.explanation)),
        ]
    reasons = [d.event.explanation for d in said_ if isinstance(d.event, ProgressRated)]
    assert len({*reasons}) == len(one.words)


def test_reasons_about_an_open_wish_do_not_claim_that_nothing_was_done() -> None:
    for changed in (False, True):
        words = compare({"a": 0.0}, {"a": 0.0}, changed=changed).words
        assert not [text for text in words if "nothing" in text or "in vain" in text]


def test_the_request_is_no_effort_of_a_round() -> None:
    seen = view(said("word " * 300, "human"), said("For whom?"))
    assert rated(felt(QUESTION), seen, find_persona("feedback")).rating == 3


def test_people_speak_of_the_effort_only_if_there_was_some() -> None:
    strict = find_persona("feedback+strictness=0.55")
    little = view(said("A poem, please.", "human"), said("word " * 40))
    much = view(said("A poem, please.", "human"), said("word " * 300))
    one = felt(0.055)
    for seen, speaks in ((little, False), (much, True)):
        rating = rated(one, seen, strict)
        assert rating.rating == 2
        assert rating.explanation
        said_ = rating.explanation
        assert any(word in said_ for word in ("effort", "long", "to read", "the time")) == speaks
