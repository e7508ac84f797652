"""What changed between two texts, also between texts that are made to take long."""

from __future__ import annotations

from difflib import unified_diff

from duolog.scoring.display.diff import WHOLE, changes, counts, unified
from hypothesis import given
from hypothesis import strategies as st

LINES = st.lists(st.sampled_from("abcdef"), max_size=40)


@given(LINES, LINES)
def test_all_lines_of_both_texts_are_in_the_changes(old: list[str], new: list[str]) -> None:
    changed = changes(old, new, context=None)
    assert [line.text for line in changed if line.mark in " -"] == (old if old != new else [])
    assert [line.text for line in changed if line.mark in " +"] == (new if old != new else [])


@given(st.lists(st.sampled_from("abcdefghij"), max_size=10, unique=True))
def test_hunks_are_those_of_a_unified_diff(old: list[str]) -> None:
    new = [*old[:3], "new", *old[4:]]
    hunks = list(unified_diff(old, new, lineterm=""))[2:]
    assert unified("\n".join(old), "\n".join(new)) == "\n".join(hunks)


def test_texts_that_would_take_long_count_whole_and_say_so() -> None:
    old = [str(number % 110) for number in range(20_000)]
    new = [str(number // 2 % 110) for number in range(20_000)]
    changed = changes(old, new, context=None)
    added, gone = counts(changed)
    same = sum(line.mark == " " for line in changed)
    assert (same + gone, same + added) == (20_000, 20_000)
    assert [line.text for line in changed if line.mark in " +"] == new
    assert changed[-1].text == WHOLE
