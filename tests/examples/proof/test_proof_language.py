"""The mathematician and the agent read each other's messages as meant, or not at all."""

from __future__ import annotations

from random import Random

import pytest
from duolog.examples.proof.language import agent, mathematician
from duolog.examples.proof.language.labels import labels_in
from duolog.examples.proof.language.mathematician import Heard, read_message
from duolog.tasks.phrases import unread

LABELS = tuple("ABCDEF")


def test_all_ways_to_say_a_thing_are_read_as_that() -> None:
    assert unread(mathematician.PHRASES, mathematician.PATTERNS, mathematician.SAMPLE) == []
    left = unread(agent.PHRASES, agent.PATTERNS, agent.SAMPLE)
    assert not any("?" in text or "fails" in text or "matter" in text for text in left)


def test_labels_are_told_from_articles_and_steps() -> None:
    assert labels_in("A lemma about A and C would help; B.2 is wrong") == ("A", "C")
    assert labels_in("A seems to hold for all n too") == ("A",)
    assert labels_in("With that, I cannot do without A any more.") == ("A",)


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("It is B and D that I really need.", Heard("core", ("B", "D"))),
        ("The first few are what I need most.", Heard("core", ("A", "B", "C"))),
        ("With that, I cannot do without C any more.", Heard("gained", ("C",))),
        ("For A, keep the divisor and restrict n.", Heard("form", ("A",), "restrict")),
        ("A lemma about squares would serve me elsewhere.", Heard("lemma", (), "squares")),
        ("B.2 looks wrong to me: the case n = 2 is missing.", Heard("doubt", (), "B.2")),
        ("C can wait.", Heard("later", ("C",))),
        ("Not really convinced. Please have another look.", Heard("again")),
    ],
)
def test_an_agent_understands_a_message(text: str, heard: Heard) -> None:
    assert set(read_message(text, LABELS)) == {heard}


@pytest.mark.parametrize("topic", ["form", "lemma"])
def test_what_is_ambiguous_is_not_understood(topic: str) -> None:
    for seed in range(6):
        text = mathematician.say_ambiguously(topic, Random(seed))
        assert read_message(text, LABELS) == ()


def test_counterexamples_and_questions_are_read_from_the_same_message() -> None:
    text = (
        "C is false as stated: it fails at n = 2, since 24 does not divide 6. For C, do you want the "
        "same divisor for fewer n, or a smaller divisor?"
    )
    assert dict(agent.counterexamples_in(text)) == {"C": 2}
    assert [(one.about, one.label) for one in agent.read_questions(text)] == [("form", "C")]
