"""Texts: numbers with their nouns."""

from __future__ import annotations

import pytest
from duolog.engine.text import count_words, quantity


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0 sessions"), (1, "1 session"), (2, "2 sessions"), (1200, "1,200 sessions")],
)
def test_a_number_with_its_noun(number: int, expected: str) -> None:
    assert quantity(number, "session") == expected


def test_a_plural_of_its_own() -> None:
    assert [quantity(n, "reply", "replies") for n in (1, 2)] == ["1 reply", "2 replies"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("two words", 2),
        ("déjà vu", 2),
        ("这还是不对", 5),
        ("Rom に行く 3 日", 6),
        ("東京 Tokyo", 3),
    ],
)
def test_words_are_counted_and_characters_of_chinese_and_japanese(text: str, words: int) -> None:
    assert count_words(text) == words
