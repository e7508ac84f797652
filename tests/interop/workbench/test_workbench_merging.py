"""Two versions of a text that were made from the same one are merged, and nothing of either is lost."""

from __future__ import annotations

from duolog.interop.workbench.participation.merging import MINE, SEPARATOR, THEIRS, merge
from hypothesis import given
from hypothesis import strategies as st

texts = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=8).map("\n".join)


def test_changes_in_different_places_are_both_taken() -> None:
    merged = merge("one\ntwo\nthree", "one!\ntwo\nthree", "one\ntwo\nthree\nfour")
    assert merged == ("one!\ntwo\nthree\nfour", 0)


def test_changes_of_the_same_lines_both_stand_between_marks() -> None:
    merged = merge("one\ntwo\nthree", "one\n2\nthree", "one\nzwei\nthree")
    assert merged.conflicts == 1
    assert merged.text.split("\n") == ["one", MINE, "2", SEPARATOR, "zwei", THEIRS, "three"]


@given(texts, texts)
def test_what_only_one_changed_is_taken(base: str, changed: str) -> None:
    assert merge(base, changed, base) == (changed, 0)
    assert merge(base, base, changed) == (changed, 0)
    assert merge(base, changed, changed) == (changed, 0)


@given(texts, texts, texts)
def test_no_line_that_somebody_added_is_lost(base: str, mine: str, theirs: str) -> None:
    lines = merge(base, mine, theirs).text.split("\n")
    added = (set(mine.split("\n")) | set(theirs.split("\n"))) - set(base.split("\n"))
    assert added <= set(lines)


def test_of_very_many_lines_that_differ_both_stand_without_being_compared() -> None:
    lines = [str(number % 7) for number in range(20_000)]
    base, mine = "\n".join(lines), "\n".join(lines[1:] + ["mine"])
    theirs = "\n".join([*lines[2:], "theirs"])
    merged = merge(f"first\n{base}\nlast", f"first\n{mine}\nlast", f"first\n{theirs}\nlast")
    assert merged.conflicts == 1
    assert merged.text.split("\n") == [
        "first",
        MINE,
        *mine.split("\n"),
        SEPARATOR,
        *theirs.split("\n"),
        THEIRS,
        "last",
    ]
    assert merge(base, mine, base) == (mine, 0)
