"""Advisers' messages: questions, the wishes they understood, and a plan's projected outcome.

The client reads it by the same rules as the adviser reads the client: by words and figures alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Final

import msgspec

from ....tasks.phrases import Patterns, Phrases, counted
from ..world.household import TOPICS, Topic
from .statements import Fact, read_facts

__all__ = (
    "FOLLOW_UPS",
    "QUESTIONS",
    "Figure",
    "read_figures",
    "read_questions",
    "read_understood",
    "say_figure",
    "say_understood",
)

QUESTIONS: Final = Phrases(
    {
        "loss": (
            "How much risk do you want to take with your investments?",
            "How much of a loss could you stand in a bad year?",
        ),
        "cushion": (
            "How large should your emergency fund be?",
            "For how long should your reserve in the bank last?",
        ),
        "age": ("At what age would you like to stop working?", "When would you like to retire?"),
        "income": (
            "How much money a month would you need as pensioners?",
            "What monthly income do you want to have in retirement?",
        ),
        "study": (
            "How much of your child's studies would you like to pay for?",
            "What share of the cost of university should come from you?",
        ),
        "project": (
            "Is any big expense coming up in the next two years?",
            "Do you have to pay for something large before long, in the next two years?",
        ),
        "support": (
            "Do you support anybody else, with a sum that is not in the file?",
            "Is there anybody whom you give money to every month?",
        ),
        "cover": (
            "What should your family have if you died?",
            "How much life cover would you like to have?",
        ),
        "prepay": (
            "Would you like to pay anything extra on the mortgage?",
            "Should any money go into paying off the mortgage sooner?",
        ),
    }
)
"""Questions about a topic."""

FOLLOW_UPS: Final = Phrases(
    {
        "loss": (
            "What per cent could a bad year take before the loss is too much: 5, 10, 15 or 20?",
        ),
        "cushion": ("How many months of spending should the emergency fund cover: 3, 6 or 9?",),
        "age": ("At exactly what age would you like to stop working?",),
        "income": ("Which sum a month do you want to have in retirement?",),
        "study": ("What share of the studies exactly, half, three quarters or all of it?",),
        "project": ("What sum do you need for that expense in the next two years?",),
        "support": ("What sum a month do you give to your mother, or to anybody else?",),
        "cover": ("How many years of salary should your family have if you died?",),
        "prepay": ("What sum a month would you pay extra on the mortgage?",),
    }
)
"""Questions that ask for a figure when the answer gave none, or a vague one."""

_ASKED: Final = Patterns(
    {
        "loss": (r"\brisk\b|\bloss\b|\blose\b|\bbad year\b",),
        "cushion": (r"\bemergency\b|\breserve\b",),
        "age": (r"\bage\b|\bwhen would you like to (?:retire|stop)|\bstop working\b",),
        "income": (
            r"\b(?:income|money|sum)\b[^?]*\b(?:retirement|pensioners|retired)\b",
            r"\bretirement\b[^?]*\b(?:income|a month)\b",
        ),
        "study": (r"\bstudies\b|\buniversity\b|\bcollege\b",),
        "project": (r"\btwo years\b|\bexpense\b",),
        "support": (r"\bsupport\b|\bgive (?:money )?to\b",),
        "cover": (r"\blife (?:cover|insurance)\b|\bif you died\b",),
        "prepay": (r"\bmortgage\b",),
    }
)

_UNDERSTOOD: Final[Mapping[Topic, str]] = {
    "loss": "you can bear a loss of {n}% in a bad year",
    "cushion": "you want {months} of spending at hand",
    "age": "you want to stop working at {n}",
    "income": "in retirement you want {money} a month",
    "study": "you want to pay {n}% of the studies",
    "project": "you need {money} for what is coming up",
    "support": "your mother gets {money} a month",
    "cover": "the family should have {years} of salary",
    "prepay": "you want to pay {money} a month extra on the mortgage",
}
_UNDERSTOOD_NONE: Final[Mapping[Topic, str]] = {
    "study": "there are no plans for the child's studies",
    "project": "nothing big is coming up",
    "support": "you support nobody else",
    "cover": "there is no wish for more life cover",
    "prepay": "there is nothing extra on the mortgage",
}
_TAKEN: Final = ("I take it that ", "As I understand it, ", "I have planned for this: ")
_ASSUMED: Final = ("I had to assume that ", "Until you tell me otherwise I assume that ")
_IS_TAKEN: Final = Patterns(
    {"taken": (r"\bI take it that\b|\bas I understand\b|\bplanned for this\b|\bassumed?\b",)}
)


class Figure(msgspec.Struct, frozen=True):
    """Something that a plan leads to, as it was said.

    Attributes:
        topic: ``loss``: per cent lost in a bad year; ``age``: per cent of chance that retirement can
            be paid; ``cushion``: months that the reserve lasts; ``study``: per cent of chance that
            studies can be paid; ``cover``: years of salary that the family would have.
        value: the figure.
    """

    topic: Topic
    value: float


_FIGURES: Final = Phrases(
    {
        "loss": (
            (
                "In a bad year, one in twenty, you would lose {value}% of what is invested; ten years from now "
                "that would be {money}."
            ),
            (
                "One year in twenty takes {value}% of the investments or more, which would be {money} in ten "
                "years' time."
            ),
        ),
        "age": (
            "The chance to stop at {age} with {income} a month is {value}%.",
            "You can stop at {age} on {income} a month with a chance of {value}%.",
        ),
        "cushion": (
            "Without an income the reserve lasts {value} months.",
            "If both of you lost your work, the reserve would last {value} months.",
        ),
        "study": (
            "Studies cost {cost} here, and the chance that the plan pays your share is {value}%.",
            "To study costs {cost} here; your share of it is paid with a chance of {value}%.",
        ),
        "study0": ("Studies cost {cost} here, and the plan pays 0% of that.",),
        "cover": (
            "If you died, your family would have {value} years of your salary.",
            "Your death would leave the family with {value} years of your salary.",
        ),
    }
)
_READ: Final = Patterns(
    {
        "loss": (
            r"\b(?:bad year|year in twenty)\b[^.?!]*?(?P<n>\d{1,9}(?:\.\d{1,9})?) ?(?:%|per ?cent)",
        ),
        "age": (
            r"\b(?:chance|probability)\b[^.?!]*?\b(?:stop|retire)\b[^.?!]*?(?P<n>\d{1,9}) ?(?:%|per ?cent)",
            r"\b(?:stop|retire)\b[^.?!]*?(?:chance|probability) of (?P<n>\d{1,9}) ?(?:%|per ?cent)",
        ),
        "cushion": (r"\breserve\b[^?!]*?\blasts?\b[^?!]*?(?P<n>\d{1,9}(?:\.\d{1,9})?) months",),
        "study": (r"\bstud(?:y|ies)\b[^?!]*?\bcosts?\b[^?!]*?(?P<n>\d{1,9}) ?(?:%|per ?cent)",),
        "cover": (r"\b(?:died|death)\b[^?!]*?(?P<n>\d{1,9}(?:\.\d{1,9})?) years of",),
    }
)


def say_figure(topic: str, words: Random, **fields: object) -> str:
    """A sentence on what a plan leads to."""
    return _FIGURES.say(topic, words, **fields)


def say_understood(facts: Sequence[Fact], words: Random) -> str:
    """A sentence on what the client was taken to want, or on what had to be assumed."""
    told = [
        _UNDERSTOOD_NONE[f.topic]
        if not f.value and f.topic in _UNDERSTOOD_NONE
        else _UNDERSTOOD[f.topic].format(
            n=f.value,
            money=f"{f.value:,}",
            months=counted(f.value, "month", "months"),
            years=counted(f.value, "year", "years"),
        )
        for f in facts
    ]
    start = words.choice(_TAKEN if facts[0].sure else _ASSUMED)
    return f"{start}{'; '.join(told)}."


@lru_cache(maxsize=2048)
def read_questions(text: str) -> tuple[Topic, ...]:
    """The topics that a message asks about."""
    asked = {heard.key for heard in _ASKED.questions(text)}
    return tuple(topic for topic in TOPICS if topic in asked)


@lru_cache(maxsize=2048)
def read_understood(text: str) -> tuple[Fact, ...]:
    """The client's wishes that a message states or assumes."""
    found: list[Fact] = []
    for heard in _IS_TAKEN.read(text):
        for part in heard.sentence.split(";"):
            found.extend(read_facts(part))
    return tuple(found)


@lru_cache(maxsize=2048)
def read_figures(text: str) -> tuple[Figure, ...]:
    """The figures of a message, in order."""
    found = [
        (text.find(heard.sentence), Figure(topic, float(heard.fields["n"])))
        for heard in _READ.read(text)
        for topic in TOPICS
        if topic == heard.key
    ]
    return tuple(figure for _, figure in sorted(found, key=lambda pair: pair[0]))
