"""Rulings: what agents ask of them, how analysts state them, and how each reads the other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Final

from ....tasks.phrases import Phrases, sentences
from ..facts import RULINGS, Ruling

__all__ = ("ask_ruling", "asked_rulings", "names_ruling", "read_rulings", "say_ruling")

_QUESTIONS: Final = Phrases(
    {
        "pilot": (
            "Should answers of the pilot wave count?",
            "Do you want the pilot wave in?",
            "Does the pilot wave count?",
        ),
        "staff": (
            "Should answers of staff count?",
            "Do you want staff in?",
            "Some who answered are staff: do they count?",
        ),
        "zeros": (
            "Is a rating of 0 a real rating?",
            "There are ratings of 0: do they count?",
            "Should ratings of 0 count?",
        ),
        "airport": (
            "Should prices at airports count?",
            "Do you want stores at airports in?",
            "Do the airports count?",
        ),
        "within": (
            "Should age groups be compared within each channel?",
            "Do you want ages compared channel by channel?",
            "Ages differ between channels: should I compare within each channel?",
        ),
    }
)

_SAID: Final[Mapping[bool, Phrases]] = {
    True: Phrases(
        {
            "pilot": (
                "the pilot wave counts like the rest.",
                "keep the pilot in, please.",
                "yes, include the pilot.",
                "the pilot is real data, so it counts.",
                "please do include the pilot wave.",
            ),
            "staff": (
                "staff count like anybody else.",
                "keep the staff in, please.",
                "yes, include staff.",
                "our staff count, too.",
                "include the staff as well, please.",
            ),
            "zeros": (
                "a rating of 0 is a real rating.",
                "people do give a 0, so it counts.",
                "keep the zeros in, please.",
                "whoever gives a 0 means it, so it counts.",
                "include the zeros, please.",
            ),
            "airport": (
                "the airports count like any store.",
                "keep the airports in, please.",
                "yes, include the airports.",
                "airport stores count for me.",
                "please include airports like all others.",
            ),
            "within": (
                "compare the ages within each channel.",
                "compare like with like, channel by channel.",
                "yes, split it by channel before you compare ages.",
                "look at the ages within each channel, please.",
                "take each channel by itself for the ages.",
            ),
        }
    ),
    False: Phrases(
        {
            "pilot": (
                "please leave the pilot out.",
                "the pilot was a dry run, so drop it.",
                "no, the pilot must not count.",
                "drop the pilot, please.",
                "I would exclude the pilot.",
            ),
            "staff": (
                "please leave staff out.",
                "staff should not count.",
                "no, ignore what our own staff say.",
                "ignore staff, they are not customers.",
                "drop the staff, please.",
            ),
            "zeros": (
                "a 0 means no answer, so leave it out.",
                "ratings of 0 should not count.",
                "ignore the zeros: those people gave no answer.",
                "a 0 is no answer at all.",
                "please drop the zeros.",
            ),
            "airport": (
                "please leave the airports out.",
                "prices at airports should not count.",
                "ignore the airports, somebody else sets their prices.",
                "please ignore airports.",
                "drop the airports, they are a case apart.",
            ),
            "within": (
                "compare the ages over all channels together.",
                "do not split the ages by channel.",
                "no, take all channels together for the ages.",
                "put all channels together when you compare ages.",
                "don't split by channel for that.",
            ),
        }
    ),
}

_ODD: Final[Mapping[bool, Phrases]] = {
    True: Phrases(
        {
            "pilot": ("the pilot is as good as anything else we have.",),
            "staff": ("staff are people too, aren't they.",),
            "zeros": ("some do hate it that much that it is a 0.",),
            "airport": ("an airport is a store, I would say.",),
            "within": ("the channel explains half of what you see in the ages.",),
        }
    ),
    False: Phrases(
        {
            "pilot": ("the pilot? That was us trying things out.",),
            "staff": ("staff are not exactly impartial.",),
            "zeros": ("0 is what the form sends by itself.",),
            "airport": ("airports play by rules of their own.",),
            "within": ("people pick a channel because of their age anyway.",),
        }
    ),
}

_ABOUT: Final[Mapping[Ruling, re.Pattern[str]]] = {
    "pilot": re.compile(r"\bpilot\b"),
    "staff": re.compile(r"\bstaff\b"),
    "zeros": re.compile(r"\b0\b|\bzeros?\b"),
    "airport": re.compile(r"\bairports?\b"),
    "within": re.compile(
        r"\ball channels\b|\btogether\b|\b(?:do not|don't) split\b|"
        r"\bwithin\b|\bby channel\b|\beach channel\b|\blike with like\b"
    ),
}
_CHANNEL: Final = re.compile(r"\bchannels?\b")
_AGAINST: Final = re.compile(
    r"\bleave\b.*\bout\b|\bdrop\b|\bignore\b|\bexclude\b|\bwithout\b|"
    r"\b(?:must|should|do|does) not count\b|\bdon't count\b|\bno answer\b"
)
_FOR: Final = re.compile(r"\bcounts?\b|\bkeep\b|\binclude\b|\breal rating\b")
_TOGETHER: Final = re.compile(r"\ball channels\b|\btogether\b|\b(?:do not|don't) split\b")
_YES: Final = re.compile(r"(?:yes|yeah|sure|right|they do|it does)\b")
_NO: Final = re.compile(r"(?:no|nope|they don't|it doesn't)\b")


def ask_ruling(ruling: Ruling, words: Random) -> str:
    """A question about a ruling, which yes or no answers."""
    return _QUESTIONS.say(ruling, words)


@lru_cache(maxsize=1024)
def asked_rulings(text: str) -> tuple[Ruling, ...]:
    """The rulings that a message asks about."""
    asked = [s.lower() for s in sentences(text) if s.endswith("?")]
    return tuple(r for r in RULINGS if any(_ABOUT[r].search(sentence) for sentence in asked))


def names_ruling(plain: str) -> bool:
    """Whether a text, in small letters, has a word that belongs to a ruling."""
    return any(about.search(plain) for about in (*_ABOUT.values(), _CHANNEL))


def say_ruling(ruling: Ruling, words: Random, *, holds: bool, odd: bool = False) -> str:
    """A ruling, stated; in an odd way, it may well not be understood."""
    return (_ODD if odd else _SAID)[holds].say(ruling, words)


def read_rulings(text: str, asked: tuple[Ruling, ...] = ()) -> dict[Ruling, bool]:
    """The rulings that a message states.

    Args:
        text: the message.
        asked: the rulings that were asked about before it: a plain yes or no is about the first.
    """
    found: dict[Ruling, bool] = {}
    plain = text.lower().replace("’", "'").strip()
    for sentence in sentences(plain):
        if sentence.endswith("?"):
            continue
        for ruling, about in _ABOUT.items():
            if about.search(sentence) is None:
                continue
            if ruling == "within":
                found[ruling] = _TOGETHER.search(sentence) is None
            elif _AGAINST.search(sentence):
                found[ruling] = False
            elif _FOR.search(sentence):
                found[ruling] = True
    if not found and asked and _YES.match(plain):
        found[asked[0]] = True
    elif not found and asked and _NO.match(plain):
        found[asked[0]] = False
    return found
