"""What people and models are shown of a hidden profile."""

from __future__ import annotations

import re

import pytest
from duolog.engine.events import JSON, SessionOpened
from duolog.engine.session.context import ActorContext
from duolog.engine.task import Cell, Setting, find_task
from duolog.interop.workbench.participation.entries import shown_entry
from duolog.scoring.display.cards import card_of, in_words
from duolog.testing import records_of
from duolog.users.model_mind import profile_text
from duolog.users.person_commands import private_text
from duolog.users.personas import PERSONAS


@pytest.mark.parametrize("private", [None, "soup", ["soup"], {"dish": {"hot": True}}])
def test_a_private_part_of_any_form_stays_as_it_is(private: JSON) -> None:
    assert in_words(private) == private


def test_beside_a_profile_in_words_numbers_are_left_out() -> None:
    private: JSON = {"profile": ["Likes soup"], "later": ["Hates salt"], "taste": {"salt": 0.2}}
    assert in_words(private) == {"profile": ["Likes soup"], "later": ["Hates salt"]}
    assert private_text(private) == "What you know:\n- Likes soup\n- Hates salt"


STATE = re.compile(
    r"\b(?:guess|slip|energy|stamina|attention|patience|probab\w*|skills?|\d+ words|believes|share)\b"
    r"|\b\d+\.\d|\b\d+ ?%|[{}_]",
    re.IGNORECASE,
)
"""Words and numbers of a simulator, which are not among the wishes and the knowledge of a person."""


@pytest.mark.parametrize("user", ["person", *PERSONAS])
@pytest.mark.parametrize("name", ["travel", "data", "finance", "proof", "tutoring"])
def test_neither_a_person_nor_a_model_is_shown_the_state_of_a_simulator(
    name: str, user: str
) -> None:
    async def person(context: ActorContext) -> None:
        """Takes the seat."""

    for instance in map(str, range(5)):
        cell = Cell(agent="one-stage", user=user, instance=instance, seed=1)
        private = find_task(name).session(cell, Setting(person=person)).opened.private["user"]
        card = dict(card_of(private))
        assert list(card)[:3] == ["Your role", "Your goal", "What you know"]
        assert "How to act the part" in card
        assert STATE.findall(private_text(private)) == []
        if user != "person":
            simulated = find_task(name).session(cell, Setting()).opened.private["user"]
            assert "card" not in str(simulated)
            assert STATE.findall(profile_text(simulated)) == []


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
