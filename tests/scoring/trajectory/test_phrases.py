"""Phrases are found where their expressions find them, whatever the case."""

from __future__ import annotations

import re

import pytest
from duolog.scoring.trajectory import phrases
from hypothesis import given
from hypothesis import strategies as st

KNOWN = {name: value for name, value in vars(phrases).items() if hasattr(value, "in_any_case")}

words = st.sampled_from(
    "Stop wait,don't MEAN could you we? is it OK. sure ſure Kan ıt explain \n i me lost _mean’s get".split(
        " "
    )
)
"""Beginnings, ends and letters whose other case is not ASCII."""


def test_there_are_phrases() -> None:
    assert {"_HALT", "_CONFIRM", "_CLARIFY", "_COMPLAINT", "_PRAISE"} == KNOWN.keys()


@pytest.mark.parametrize("name", KNOWN)
@given(data=st.data())
def test_a_phrase_is_found_as_its_expression_finds_it(name: str, data: st.DataObject) -> None:
    expression: re.Pattern[str] = KNOWN[name].in_any_case
    phrase = data.draw(st.one_of(st.from_regex(expression), st.just("")))
    around = data.draw(st.lists(words, max_size=6))
    text = " ".join([*around[:3], phrase, *around[3:]])
    assert KNOWN[name].found(text) == (expression.search(text) is not None)


@given(
    text=st.lists(
        st.one_of(
            words,
            st.text("ok_'’.-İß1²東 \t\x1c", max_size=5),
            st.sampled_from("ok thanks you’re up to you".split()),
        ),
        max_size=6,
    ).map(" ".join)
)
def test_words_that_decide_early_decide_as_all_words_do(text: str) -> None:
    found = phrases._WORD.findall(text.lower().replace("’", "'"))
    assert phrases.takes_initiative(text) == (not phrases._PASSIVE.issuperset(found))
    if not phrases._UNSPECIFIC.issuperset(found):
        assert not phrases.is_vague(text)
    elif "up to you" in " ".join(found) and len(text) <= 120:
        assert phrases.is_vague(text)
