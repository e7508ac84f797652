"""The mathematician's messages, in many ways, and how an agent reads them.

Some are ambiguous: they name no claim, and an agent misreads or ignores them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Final, Literal, TypeAlias

import msgspec

from ....tasks.phrases import Patterns, Phrases
from ..wishes import Form
from .labels import labels_in, spell_labels, steps_in

__all__ = (
    "PATTERNS",
    "PHRASES",
    "SAMPLE",
    "Heard",
    "Topic",
    "read_message",
    "say",
    "say_ambiguously",
    "say_doubt",
    "say_form",
    "say_labels",
    "say_lemma",
)

Topic: TypeAlias = Literal[
    "core", "gained", "minor", "later", "form", "lemma", "doubt", "fails", "missing", "again"
]
"""The topic of a statement by the mathematician."""


class Heard(msgspec.Struct, frozen=True):
    """Something that an agent understood.

    Attributes:
        topic: what it is about.
        labels: the claims.
        value: the form, the family of the lemma, or the name of the step.
    """

    topic: Topic
    labels: tuple[str, ...] = ()
    value: str = ""


PHRASES: Final = Phrases(
    {
        "core": (
            "what the paper rests on is {labels}.",
            "I can't do without {labels}.",
            "{labels} matter most to me.",
            "the heart of it is {labels}.",
            "it is {labels} that I really need.",
            "to me, {labels} matter most.",
            "the whole paper rests on {labels}.",
            "if you only get through a few, let it be {labels}: they matter most.",
            "please begin with what I need most, {labels}.",
        ),
        "gained": (
            "with that, I cannot do without {labels} any more.",
            "now {labels} has become essential.",
            "I also need {labels} now, more than before.",
            "the rest leans on {labels}, so that one matters now.",
        ),
        "minor": (
            "{labels} would be welcome too, but only after the rest.",
            "if there is time, {labels} would be nice to have.",
            "{labels} would be a bonus.",
            "it would be nice to have {labels} as well.",
            "{labels}: welcome, but no need to hurry.",
            "a proof of {labels} would be welcome at some point.",
        ),
        "restrict": (
            "for {labels}, keep the divisor and restrict n.",
            "in {labels} I need the divisor as it is, even if that holds for fewer n.",
            "{labels} has to keep its divisor; let it be about fewer n.",
            "I'd restrict n in {labels}, the divisor has to stay.",
            "please prove {labels} for fewer n, and keep the divisor.",
        ),
        "weaken": (
            "for {labels}, take a smaller divisor, but keep the n.",
            "{labels} should stay about the same n, with a smaller divisor.",
            "I would rather have a weaker divisor in {labels} than lose any n.",
            "a smaller divisor will do in {labels}.",
            "go for a weaker divisor in {labels}, that is enough for me.",
        ),
        "general": (
            "I'd like {labels} in full generality.",
            "please state {labels} for all n, if it holds there.",
            "{labels} should be as general as it can be.",
        ),
        "stated": (
            "please leave {labels} as it was stated.",
            "{labels} is fine as it stands in my notes.",
            "no need to change {labels}: take it as it was stated.",
        ),
        "consecutive": (
            "a lemma about products of consecutive integers would serve me elsewhere.",
            "I could use a lemma on consecutive integers in another paper.",
        ),
        "squares": (
            "a lemma about squares would serve me elsewhere.",
            "I could use a lemma on squares of odd numbers in another paper.",
        ),
        "powers": (
            "a lemma about fifth powers would serve me elsewhere.",
            "I could use a lemma on powers in another paper.",
        ),
        "doubt": (
            "I don't follow {step}: {why}.",
            "{step} looks wrong to me: {why}.",
            "{step} can't be right: {why}.",
            "{step} is wrong, if you ask me: {why}.",
            "I stumbled over this: {step} looks wrong, {why}.",
        ),
        "missing": (
            "I still miss a proof of {labels}.",
            "there is no proof of {labels} yet.",
            "I still need a proof of {labels}.",
            "I looked for {labels} and found no proof of it.",
        ),
        "fails": (
            "I see that {labels} fails at n = {n}.",
            "so {labels} is false: it fails at n = {n}.",
        ),
        "later": (
            "{labels} can wait.",
            "leave {labels} aside for now.",
            "{labels} does not matter so much.",
        ),
        "all": ("all of them matter.", "I need every one of them."),
    },
    openings=("", "", "", "", "Well, ", "To be clear: ", "For my purposes, "),
)
"""Their statements, by topic."""

AMBIGUOUS: Final[Mapping[str, Sequence[str]]] = {
    "core": (
        "The first few are what I need most.",
        "Mostly the ones in the middle matter.",
        "The last few matter most.",
        "The harder ones matter most, I'd say.",
        "I need the main ones first.",
        "Whatever the introduction quotes.",
    ),
    "form": (
        "Then change it so that it is true.",
        "It has to be mended, of course.",
        "Find a version that is right.",
        "Well, make it hold somehow.",
    ),
    "lemma": (
        "Some lemma might come in handy.",
        "I like a good lemma.",
        "A lemma that I can quote would be nice.",
    ),
}
"""Their ambiguous statements."""

SAMPLE: Final[Mapping[str, Mapping[str, object]]] = {
    key: {"labels": "B and D", "step": "B.2", "why": "the case n = 2 is missing", "n": 2}
    for key in PHRASES.keys
}
"""Values for the fields of the phrases."""

PATTERNS: Final = Patterns(
    {
        "again": r"\b(?:improve it|make it better|another look|not (?:really )?convinced)\b",
        "doubt": r"\b[A-FL]\d?\.\d+ (?:looks? wrong|can't be right|is wrong|does not)|don't follow [A-FL]",
        "missing": r"miss a proof|no proof of|still need a proof",
        "fails": r"\bfails? (?:at|for) n ?=",
        "gained": r"\bany more\b|become essential|also need|matters now",
        "minor": r"welcome|nice to have|a bonus|only after",
        "restrict": r"keep (?:the|its) divisor|divisor as it is|restrict n|fewer n",
        "weaken": r"(?:smaller|weaker) divisor",
        "general": r"full generality|for all n, if|as general as",
        "stated": r"as it was stated|as it stands in my notes",
        "later": r"can wait|leave .+ aside|not matter so much|matters less",
        "all": r"\ball of them\b|every one of them|\beverything matters",
        "core": (
            r"rests? on|can't do without|cannot do without|matters? most|heart of|really need|"
            r"need most|in the middle matter"
        ),
        "consecutive": r"lemma (?:about|on) (?:products of )?consecutive",
        "squares": r"lemma (?:about|on) squares",
        "powers": r"lemma (?:about|on) (?:fifth )?powers",
    }
)
"""How an agent reads it."""

_FORMS: Final = ("restrict", "weaken", "general", "stated")
_FAMILIES: Final = ("consecutive", "squares", "powers")
_VAGUE: Final = (("first few", slice(0, 3)), ("middle", slice(2, 4)), ("last few", slice(-3, None)))


def say(topic: str, words: Random, **fields: object) -> str:
    """Something by its key."""
    return PHRASES.say(topic, words, **fields)


def say_labels(topic: str, labels: Sequence[str], words: Random) -> str:
    """Something about claims."""
    return PHRASES.say(topic, words, labels=spell_labels(labels))


def say_form(label: str, form: Form, words: Random) -> str:
    """In which form a claim is wanted."""
    return PHRASES.say(form, words, labels=label)


def say_lemma(family: str, words: Random) -> str:
    """Which lemma is of use."""
    return PHRASES.say(family, words)


def say_doubt(step: str, why: str, words: Random) -> str:
    """That a step looks wrong, and why."""
    return PHRASES.say("doubt", words, step=step, why=why.rstrip("."))


def say_ambiguously(topic: str, words: Random) -> str:
    """Something that can be read in more than one way."""
    return words.choice(AMBIGUOUS[topic])


@lru_cache(maxsize=2048)
def read_message(text: str, known: tuple[str, ...]) -> tuple[Heard, ...]:
    """Reads a message as an agent understands it.

    Args:
        text: the message.
        known: labels of all claims, in order.
    """
    found: list[Heard] = []
    gained = {heard.sentence for heard in PATTERNS.read(text) if heard.key == "gained"}
    for heard in PATTERNS.read(text):
        if heard.key == "core" and heard.sentence in gained:
            continue
        labels = tuple(one for one in labels_in(heard.sentence) if one in known)
        if heard.key == "doubt":
            found += [Heard("doubt", (), step) for step in steps_in(heard.sentence)[:1]]
        elif heard.key == "again":
            found.append(Heard("again"))
        elif heard.key in _FAMILIES:
            found.append(Heard("lemma", (), heard.key))
        elif heard.key in _FORMS:
            found += [Heard("form", (one,), heard.key) for one in labels]
        elif heard.key == "all":
            found.append(Heard("core", tuple(known)))
        elif heard.key == "core":
            guessed = next((known[part] for word, part in _VAGUE if word in heard.sentence), ())
            if labels or guessed:
                found.append(Heard("core", labels or tuple(guessed)))
        elif labels:
            found.append(Heard(_topic(heard.key), labels))
    return tuple(found)


def _topic(key: str) -> Topic:
    for topic in ("gained", "minor", "missing", "fails"):
        if key == topic:
            return topic
    return "later"
