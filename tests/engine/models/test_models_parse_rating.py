"""Ratings that models write: texts that are one, and texts that are never guessed to be one."""

from __future__ import annotations

import pytest
from duolog.engine.models.prompting.parse_rating import explanation_of, read_rating, read_ratings
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    "text",
    [
        "4",
        " 4\n",
        "- 4",
        "4/5",
        "4 / 5",
        "4 out of 5",
        "**4**",
        "4.",
        "4. Agree",
        "4 - Agree: it found 12 rooms",
        "4 (Agree)",
        "4\nThe agent found 3 of 5 rooms.",
        "Rating: 4",
        "Rating: 4/5",
        "**Rating:** 4",
        "Rating: **4**",
        "rating = 4",
        "Rating (1-5): 4",
        "My final rating is 4.",
        "Score: 4\nIt went well.",
        "The agent was quick.\nRating: 4",
        "Rating: 4\n\nRating: 4",
    ],
)
def test_a_rating_of_four(text: str) -> None:
    assert read_rating(text) == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "four",
        "0",
        "6",
        "-4",
        "-4 or so",
        "4.5",
        "4,5",
        "45",
        "4/10",
        "3 or 4",
        "3-4",
        "3 - 4",
        "4, maybe 5",
        "4\nRating: 3",
        "Rating: 4\nRating: 2",
        "Rating: between 3 and 4",
        "Rating: 4.5",
        "The agent did 4 things.",
        "I'd rather not say. 4 is too much.",
        "There was some progress.\n4",
        "5 stars would be too much",
    ],
)
def test_what_is_no_rating_stays_none(text: str) -> None:
    assert read_rating(text) is None


@pytest.mark.parametrize(
    ("text", "explanation"),
    [
        ("4", ""),
        ("4\nIt found rooms.", "It found rooms."),
        ("4 - Agree: it found 12 rooms", "Agree: it found 12 rooms"),
        ("It was quick.\nRating: 4\nGood.", "It was quick. Good."),
    ],
)
def test_the_explanation_is_the_rest(text: str, explanation: str) -> None:
    assert explanation_of(text) == explanation


def test_ratings_by_name() -> None:
    text = "Clear: 4\n- **short**: 5/5\nFun: 3 or 4\nTrue: 2\nTrue: 3\nOther: 1"
    names = ["clear", "short", "fun", "true", "gone"]
    assert read_ratings(text, names) == {
        "clear": 4,
        "short": 5,
        "fun": None,
        "true": None,
        "gone": None,
    }


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    assert read_rating(text) in (None, 1, 2, 3, 4, 5)
    assert isinstance(explanation_of(text), str)


@given(st.integers(), st.sampled_from(["{}", "Rating: {}", "**{}**", "{}/5"]))
def test_only_one_to_five(number: int, form: str) -> None:
    assert read_rating(form.format(number)) == (number if 1 <= number <= 5 else None)
