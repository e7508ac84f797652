"""The agent's statements and questions, in many ways, and how the mathematician reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec

from ....tasks.phrases import Patterns, Phrases
from .labels import labels_in

__all__ = (
    "PATTERNS",
    "PHRASES",
    "SAMPLE",
    "Asked",
    "Question",
    "counterexamples_in",
    "read_questions",
    "taken_for_core",
)

Asked: TypeAlias = Literal["core", "lemma", "form", "general", "minor", "anything"]
"""The topic of a question."""

PHRASES: Final = Phrases(
    {
        "core": (
            "Which of the claims matter most to you?",
            "Which claims does the paper rest on most?",
            "Which of these matter most, so that I begin with them?",
        ),
        "lemma": (
            "Would a lemma be of use to you elsewhere: on consecutive integers, squares or powers?",
            "Which lemma could you use elsewhere: on consecutive integers, on squares, or on powers?",
        ),
        "form": (
            "{fails} Shall I keep the divisor of {label} and restrict n, or take a smaller divisor?",
            "{fails} For {label}, do you want the same divisor for fewer n, or a smaller divisor?",
        ),
        "general": (
            "{label} seems to hold for {over} too: do you want it in general, or as stated?",
            "Shall I state {label} in general, for {over}, or leave it as stated?",
        ),
        "minor": (
            "Would any of the other claims be welcome too?",
            "Are there other claims that would be nice to have?",
        ),
        "anything": (
            "Is there anything else that I should know?",
            "Is there anything else that you want of this?",
        ),
        "fails": (
            "{label} is false as stated: it fails at n = {n}, since {divisor} does not divide {value}.",
            "{label} fails at n = {n}: the value there is {value}, and {divisor} does not divide it.",
        ),
        "verified": (
            "The checker accepts each step of {labels}.",
            "I had each step of {labels} checked by machine.",
        ),
        "unchecked": (
            "Nothing has been checked by machine yet in {labels}.",
            "I wrote down proofs of {labels}; no machine has checked them.",
        ),
        "unsure": (
            "I am not sure of {steps}.",
            "Please look closely at {steps}.",
        ),
        "stuck": ("I could not get {labels} past the checker.",),
        "taken": (
            "I take {labels} to be what matters most.",
            "I understand that {labels} matter most.",
        ),
        "first": ("Here are the first proofs.", "I have written down first proofs."),
        "changed": ("The output is up to date.", "I have worked that in."),
        "unchanged": (
            "The output stays as it is with that.",
            "Noted; nothing changes in the proofs.",
        ),
    }
)
"""The agent's statements, by topic."""

SAMPLE: Final[Mapping[str, Mapping[str, object]]] = {
    key: {
        "label": "B",
        "labels": "B and D",
        "steps": "B.2",
        "n": 2,
        "divisor": 24,
        "value": 6,
        "over": "all n",
        "fails": "B fails at n = 2.",
    }
    for key in PHRASES.keys
}
"""Values for the fields of the phrases."""

PATTERNS: Final = Patterns(
    {
        "core": r"(?:which|what).*(?:matter|rest on|important)",
        "lemma": r"\blemma\b",
        "form": r"restrict n|smaller divisor|fewer n",
        "general": r"in general",
        "minor": r"other claims",
        "anything": r"anything else",
        "fails": r"\b(?P<label>[A-F])\b[^.?!]*\bfails at n = (?P<n>-?\d{1,9})\b",
        "taken": r"\b(?:I take|I understand that)\b.*matters? most|to be what matters most",
    }
)
"""How the mathematician reads it."""

_QUESTIONS: Final[tuple[Asked, ...]] = ("core", "lemma", "form", "general", "minor", "anything")


class Question(msgspec.Struct, frozen=True):
    """A question as it was understood: its topic, and its claim."""

    about: Asked
    label: str = ""


@lru_cache(maxsize=2048)
def read_questions(text: str) -> tuple[Question, ...]:
    """The questions in a message."""
    found: list[Question] = []
    for heard in PATTERNS.questions(text):
        about = next((one for one in _QUESTIONS if one == heard.key), None)
        if about is not None:
            labels = labels_in(heard.sentence)
            found.append(Question(about, labels[0] if labels else ""))
    return tuple(found)


@lru_cache(maxsize=2048)
def counterexamples_in(text: str) -> Mapping[str, int]:
    """The claims that a message says to fail, and where."""
    return {
        heard.fields["label"].upper(): int(heard.fields["n"])
        for heard in PATTERNS.read(text)
        if heard.key == "fails"
    }


@lru_cache(maxsize=2048)
def taken_for_core(text: str) -> Sequence[str] | None:
    """The claims that a message takes to matter most; None if it does not mention that."""
    sentences = [heard.sentence for heard in PATTERNS.read(text) if heard.key == "taken"]
    return labels_in(sentences[-1]) if sentences else None
