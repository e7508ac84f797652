"""The lines that two texts have in common: in order, with few left over, and in bounded work."""

from __future__ import annotations

import random

import pytest
from duolog.engine.diff import limit, matching
from hypothesis import given
from hypothesis import strategies as st

LINES = st.lists(st.sampled_from("abcde"), max_size=14)


def longest(old: list[str], new: list[str]) -> int:
    """The number of lines of the longest common subsequence."""
    row = [0] * (len(new) + 1)
    for line in old:
        above = row[:]
        for at, other in enumerate(new):
            row[at + 1] = above[at] + 1 if line == other else max(row[at], above[at + 1])
    return row[-1]


@given(LINES, LINES)
def test_blocks_are_common_and_in_order(old: list[str], new: list[str]) -> None:
    found = matching(old, new)
    at = new_at = 0
    for block in found.blocks:
        assert block.size > 0
        assert block.old >= at
        assert block.new >= new_at
        at, new_at = block.old + block.size, block.new + block.size
        assert old[block.old : at] == new[block.new : new_at]
    kept = sum(block.size for block in found.blocks)
    assert len(found.added(new)) == len(new) - kept
    assert len(found.removed(old)) == len(old) - kept
    assert not found.whole


@given(st.lists(st.sampled_from("ab"), max_size=14), st.lists(st.sampled_from("ab"), max_size=14))
def test_as_much_is_common_as_can_be_where_lines_repeat(old: list[str], new: list[str]) -> None:
    if not any(old.count(line) == 1 == new.count(line) for line in "ab"):
        kept = sum(block.size for block in matching(old, new).blocks)
        assert kept == longest(old, new)


def test_a_changed_line_is_all_that_changes() -> None:
    old = [f"line {number % 7}" for number in range(400)]
    new = [*old[:200], "changed", *old[201:]]
    assert matching(old, new).added(new) == ["changed"]


@pytest.mark.parametrize("lines", [300, 3_000, 30_000])
@pytest.mark.parametrize("letters", ["ab", "abcdefghij"])
def test_repetitive_texts_take_bounded_work(lines: int, letters: str) -> None:
    chance = random.Random(f"{lines}{letters}")
    old, new = (chance.choices(letters, k=lines) for _ in range(2))
    found = matching(old, new)
    assert found.work <= limit(2 * lines)
    if lines > 300:
        assert found.whole
        assert len(found.added(new)) > 0.9 * lines


def test_an_edit_of_a_long_repetitive_text_takes_work_in_proportion() -> None:
    for lines in (1_000, 10_000, 100_000):
        old = [str(number % 50) for number in range(lines)]
        new = [*old[: lines // 2], "new", *old[lines // 2 + 1 :]]
        found = matching(old, new)
        assert found.added(new) == ["new"]
        assert found.work <= 2 * lines
