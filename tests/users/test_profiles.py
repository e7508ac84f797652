"""What people and models are shown of a hidden profile."""

from __future__ import annotations

import pytest
from duolog.engine.events import JSON
from duolog.users.person_commands import private_text
from duolog.users.profiles import in_words


@pytest.mark.parametrize("private", [None, "soup", ["soup"], {"dish": {"hot": True}}])
def test_a_private_part_of_any_form_stays_as_it_is(private: JSON) -> None:
    assert in_words(private) == private


def test_beside_a_profile_in_words_numbers_are_left_out() -> None:
    private: JSON = {"profile": ["Likes soup"], "later": ["Hates salt"], "taste": {"salt": 0.2}}
    assert in_words(private) == {"profile": ["Likes soup"], "later": ["Hates salt"]}
    assert private_text(private) == "- Likes soup\n- Hates salt"
