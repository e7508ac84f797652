"""What people and models are shown of a hidden profile."""

from __future__ import annotations

import pytest
from duolog.engine.events import JSON, SessionOpened
from duolog.engine.session.context import ActorContext
from duolog.engine.task import Cell, Setting, find_task
from duolog.interop.workbench.participation.entries import shown_entry
from duolog.scoring.display.cards import card_of, in_words
from duolog.testing import records_of
from duolog.users.person_commands import private_text


@pytest.mark.parametrize("private", [None, "soup", ["soup"], {"dish": {"hot": True}}])
def test_a_private_part_of_any_form_stays_as_it_is(private: JSON) -> None:
    assert in_words(private) == private


def test_beside_a_profile_in_words_numbers_are_left_out() -> None:
    private: JSON = {"profile": ["Likes soup"], "later": ["Hates salt"], "taste": {"salt": 0.2}}
    assert in_words(private) == {"profile": ["Likes soup"], "later": ["Hates salt"]}
    assert private_text(private) == "What you know:\n- Likes soup\n- Hates salt"


@pytest.mark.parametrize("name", ["travel", "data", "finance", "proof", "tutoring"])
def test_a_real_person_gets_a_card_and_never_the_state_of_a_simulator(name: str) -> None:
    async def person(context: ActorContext) -> None:
        """Takes the seat."""

    cell = Cell(agent="one-stage", user="person", instance="0", seed=1)
    private = find_task(name).session(cell, Setting(person=person)).opened.private["user"]
    card = dict(card_of(private))
    assert list(card)[:3] == ["Your role", "Your goal", "What you know"]
    assert "How to act the part" in card
    text = private_text(private)
    for state in ("guess", "slip", "0.0", "energy", "{", "believes"):
        assert state not in text
    simulated = find_task(name).session(
        Cell(agent="one-stage", user="proactive", instance="0", seed=1), Setting()
    )
    assert "card" not in str(simulated.opened.private["user"])


def test_the_workbench_shows_the_card() -> None:
    private: JSON = {
        "profile": ["Likes soup"],
        "taste": {"guess": 0.058},
        "card": {"role": "A guest", "goal": "Dinner"},
    }
    opened = SessionOpened(
        task="dinner", instance="1", participants=(), clock="utc", private={"ann": private}
    )
    shown = shown_entry(records_of(opened)[0], "ann")
    assert shown is not None
    for part in ("Your role", "A guest", "Your goal", "Dinner", "What you know", "Likes soup"):
        assert part in str(shown["brief"])
    assert "0.058" not in str(shown)
