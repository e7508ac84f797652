"""The stretches in which an output differs from the text that a participant has accepted."""

from __future__ import annotations

import pytest
from duolog.interop.workbench.participation.merging import Stretch, stretches


def accepting(text: str, one: Stretch) -> str:
    lines = text.split("\n")
    lines[one.old : one.old + len(one.taken)] = one.put
    return "\n".join(lines)


def undoing(text: str, one: Stretch) -> str:
    lines = text.split("\n")
    lines[one.new : one.new + len(one.put)] = one.taken
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("accepted", "output"),
    [
        ("a\nb\nc", "a\nB\nc"),
        ("a\nb\nc", "a\nc"),
        ("a\nc", "a\nb\nc\nd"),
        ("", "a\nb"),
        ("room: 189\nfood\ndinner: 73", "room: 154\nfood\ndinner: 64"),
    ],
)
def test_each_change_can_be_accepted_or_undone_alone(accepted: str, output: str) -> None:
    found = stretches(accepted, output)
    assert found
    for at, one in enumerate(found):
        others = [other.put for number, other in enumerate(found) if number != at]
        assert [left.put for left in stretches(accepting(accepted, one), output)] == others
        assert [left.put for left in stretches(accepted, undoing(output, one))] == others
    for one in reversed(found):
        accepted = accepting(accepted, one)
    assert accepted == output


def test_an_output_that_was_accepted_has_no_changes_and_hostile_text_is_escaped() -> None:
    assert stretches("a\nb", "a\nb") == []
    [one] = stretches("a", "<img src=x>")
    assert "<img" not in one.html
    assert "&lt;img" in one.html


def test_very_many_changes_are_judged_at_once_and_the_page_shows_some_of_their_lines() -> None:
    accepted = "\n".join(f"same {n}\nold {n}" for n in range(20_000))
    output = "\n".join(f"same {n}\nnew {n}" for n in range(20_000))
    [one] = stretches(accepted, output)
    assert accepting(accepted, one) == output
    assert len(one.html) < 1_000_000
    assert "more lines" in one.html


def test_a_change_is_under_the_heading_above_it() -> None:
    output = "# One\na\nb\n# Two\nc\nd"
    assert [one.under for one in stretches("# One\nA\nb\n# Two\nC\nD", output)] == ["One", "Two"]
    assert [one.under for one in stretches("# One\nA\nb\n# Two\nc\nD", output)] == ["One", "Two"]
    assert [one.under for one in stretches("#1\na\nb\nc", "#1\nA\nb\nC")] == ["1", "1"]
