"""Loops: an agent that does the same again and again, and no other repetition."""

from __future__ import annotations

import pytest
from duolog.engine.codec import digest
from duolog.engine.events import ActionTaken, MessageSent, SnapshotTaken
from duolog.scoring.loops import LONGEST, TIMES, LoopFold
from duolog.testing.records import RecordWriter
from hypothesis import given
from hypothesis import strategies as st


def looped(acts: str, *, between: bool = False) -> tuple[int, int]:
    """Loops and acts in them, of an agent whose acts are letters."""
    script, fold = RecordWriter(), LoopFold()
    script.opened()
    for letter in acts:
        script.agent(ActionTaken(name="Search", arguments={"for": letter}))
        if between:
            script.human("And?")
    for record in script.records:
        fold.feed(record)
    return fold.loops, fold.acts


@pytest.mark.parametrize(
    ("acts", "loops", "repeating"),
    [
        ("", 0, 0),
        ("AA", 0, 0),
        ("AAA", 1, 2),
        ("AAAAA", 1, 4),
        ("ABAB", 0, 0),
        ("ABABAB", 1, 4),
        ("ABCABCABC", 1, 6),
        ("ABCDABCDABCD", 0, 0),  # longer than what is looked for
        ("AAABCAAA", 2, 4),
        ("XAAAY", 1, 2),
    ],
)
def test_a_block_that_follows_itself_twice_is_a_loop(acts: str, loops: int, repeating: int) -> None:
    assert looped(acts) == (loops, repeating)
    assert looped(acts, between=True) == (loops, repeating)  # whatever others do in between


@given(st.text("AB C", max_size=24))
def test_loops_are_those_that_are_found_by_looking_back_from_each_act(acts: str) -> None:
    def held(at: int, period: int) -> int:
        count = 0
        while at - count - period >= 0 and acts[at - count] == acts[at - count - period]:
            count += 1
        return count

    inside = [
        [held(at, p) for p in range(1, LONGEST + 1) if held(at, p) >= p * (TIMES - 1)]
        for at in range(len(acts))
    ]
    starts = [at for at, now in enumerate(inside) if now and not (at and inside[at - 1])]
    repeating = sum(
        max(inside[at]) if at in starts else bool(inside[at]) for at in range(len(acts))
    )
    assert looped(acts) == (len(starts), repeating)


def test_messages_and_outputs_loop_too_and_two_agents_do_not_loop_together() -> None:
    script, fold = RecordWriter(), LoopFold()
    script.opened()
    for base in (None, 3, 5):
        script.agent(SnapshotTaken(content="x", digest=digest("x"), base=base))
        script.add(MessageSent(text="Which date?"), "other", "agent")
    for record in script.records:
        fold.feed(record)
    assert (fold.loops, fold.acts) == (2, 4)
