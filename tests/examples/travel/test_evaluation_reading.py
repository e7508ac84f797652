"""The hand-written readings against the regular expressions that define them."""

from __future__ import annotations

import re

import pytest
from duolog.examples.travel.evaluation.reading import (
    before_parenthesis,
    flight_number,
    name_and_city,
    route_in,
)
from hypothesis import given
from hypothesis import strategies as st

# Texts of the characters that matter, so that coincidences are likely.
TEXTS = st.lists(
    st.sampled_from(["from", " ", "to", ",", "(", ")", "\n", "a", "Bo", "\t", "x y", "é"]),
    max_size=14,
).map("".join)


def by_pattern(text: str) -> str:
    found = re.search(r"^(.*?)\([^)]*\)", text)
    return found[1] if found else text


@given(TEXTS)
def test_before_parenthesis_is_what_the_pattern_finds(text: str) -> None:
    assert before_parenthesis(text) == by_pattern(text)


@given(TEXTS)
def test_name_and_city_are_what_the_pattern_finds(text: str) -> None:
    found = re.search(r"(.*?),\s*([^,]+)(\(\w[\w\s]*\))?$", text)
    expected = (found[1].strip(), by_pattern(found[2].strip()).strip()) if found else ("-", "-")
    assert name_and_city(text) == expected


@given(TEXTS)
def test_route_is_what_the_pattern_finds(text: str) -> None:
    found = re.search(r"from\s+(.+?)\s+to\s+([^,]+)(?=[,\s]|$)", text)
    assert route_in(text) == (found.groups() if found else (None, None))


@given(st.lists(st.sampled_from(["Flight Number: ", "F1", ",", " ", "x"]), max_size=6).map("".join))
def test_flight_number_is_what_splitting_finds(text: str) -> None:
    parts = text.split("Flight Number: ")
    if len(parts) == 1:
        with pytest.raises(IndexError, match="Flight Number"):
            flight_number(text)
    else:
        assert flight_number(text) == parts[1].split(",")[0]


@pytest.mark.parametrize("value", [None, 3, ["a, b"], {"a": 1}, True])
def test_what_is_no_text_raises(value: object) -> None:
    for reading in (before_parenthesis, name_and_city, route_in):
        with pytest.raises(TypeError):
            reading(value)
