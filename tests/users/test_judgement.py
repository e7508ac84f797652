"""The rating of a person on rules follows from the gain of a round, its cost, and repeated questions."""

from __future__ import annotations

from typing import Literal

from duolog.engine.codec import digest
from duolog.engine.events import MessageSent, SessionOpened, SnapshotTaken
from duolog.engine.records import Draft
from duolog.engine.session.view import View
from duolog.testing import by, records_of
from duolog.users.judgement import QUESTION, felt, rated
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
    assert (again.rating, again.explanation) == (2, "I have been asked that before.")
    assert rated(felt(QUESTION), view(*asked, said("How long?")), EASY).rating == 3


def test_who_asked_back_does_not_mind_the_answer() -> None:
    asked = (said("A poem, please.", "human"), said("For whom?"), said(QUERIES[0], "human"))
    assert rated(felt(QUESTION), view(*asked, said("I mean: For whom?")), EASY).rating == 3
