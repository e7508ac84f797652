"""What changed between two texts, also between texts that are made to take long."""

from __future__ import annotations

from difflib import SequenceMatcher, unified_diff

from duolog.scoring.display.diff import changes, counts, matched, unified
from hypothesis import given
from hypothesis import strategies as st

LINES = st.lists(st.sampled_from("abcdef"), max_size=40)


@given(LINES, LINES)
def test_short_texts_are_compared_as_difflib_compares_them(old: list[str], new: list[str]) -> None:
    assert matched(old, new).get_opcodes() == SequenceMatcher(None, old, new).get_opcodes()
    hunks = list(unified_diff(old, new, lineterm=""))[2:]
    assert unified("\n".join(old), "\n".join(new)) == "\n".join(hunks)


@given(st.lists(st.sampled_from("ab"), min_size=200, max_size=400), LINES)
def test_lines_that_are_everywhere_are_passed_over(old: list[str], new: list[str]) -> None:
    assert matched(new, old).get_opcodes() == SequenceMatcher(None, new, old).get_opcodes()


def test_texts_that_are_made_to_take_long_are_compared_in_part() -> None:
    old = [str(number % 110) for number in range(20_000)]
    new = [str(number // 2 % 110) for number in range(20_000)]
    changed = changes(old, new, context=None)
    added, gone = counts(changed)
    same = sum(line.mark == " " for line in changed)
    assert same
    assert (same + gone, same + added) == (20_000, 20_000)
    assert [line.text for line in changed if line.mark in " +"] == new
