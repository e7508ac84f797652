"""Questions about topics: asked in many ways, and read by key words near a name of the survey."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Final, final

import msgspec

from ....tasks.phrases import Phrases, sentences
from ..facts import KINDS, TABLES, Kind, Names, Topic

__all__ = ("PLAIN", "TopicReader", "TopicsRead", "say_topic", "wordings_of")

PLAIN: Final = Phrases(
    {
        "favourite": (
            "which {subject} do people in {about} like best?",
            "what is the favourite {subject} in {about}?",
            "which {subject} is most popular in {about}?",
            "what do people in {about} prefer?",
            "what is the best-liked {subject} in {about}?",
            "what are the people of {about} most fond of: which is their favourite?",
            "and {about}: which one is liked best there?",
            "tell me which {subject} comes out best in {about}.",
        ),
        "price": (
            "is {about} overpriced anywhere?",
            "does the price of {about} differ between regions?",
            "where do we charge more for {about} than elsewhere?",
            "does {about} cost more in some region?",
            "how do the prices of {about} compare between regions?",
            "is the price of {about} the same everywhere?",
            "do some pay a higher price for {about} than others?",
            "I wonder if {about} is more expensive in one region than in the rest.",
        ),
        "age": (
            "do younger or older people like {about} more?",
            "does age matter for {about}?",
            "who likes {about} more, the young or the old?",
            "which generation rates {about} higher?",
            "is there a difference between age groups for {about}?",
            "how do the ages compare on {about}?",
            "is {about} more for the old or for the young?",
        ),
        "channel": (
            "in which channel do the age groups differ over {about}?",
            "is there one channel where young and old disagree about {about}?",
            "does the gap between the ages for {about} come from a single channel?",
            "which channel makes the difference between young and old for {about}?",
            "do the ages differ on {about} in every channel, or in one only?",
            "through which channel do young and old part ways on {about}?",
        ),
        "quality": (
            "how many of the {about} are wrong?",
            "how many rows of {about} have errors?",
            "how clean is the table of {about}?",
            "can I trust the {about}?",
            "what about the quality of the {about}?",
            "are there many mistakes in the {about}?",
        ),
    },
)
"""Ways to ask that can be read."""

ODD: Final = Phrases(
    {
        "favourite": ("what goes down well in {about}?", "tell me about {about}."),
        "price": ("are we ripping anybody off with {about}?", "what about {about}?"),
        "age": ("is {about} one for students or for pensioners?", "what about {about}?"),
        "channel": ("does it depend on how they buy {about}?", "what about {about}?"),
        "quality": ("is there much rubbish among the {about}?", "what about the {about}?"),
    }
)
"""Ambiguous ways to ask: a reader who goes by words cannot tell the topic."""

_WORDS: Final[Mapping[Kind, re.Pattern[str]]] = {
    "quality": re.compile(r"\b(?:wrong|errors?|clean|trust|mistakes?|quality|dirty)\b"),
    "channel": re.compile(r"\bchannels?\b"),
    "price": re.compile(r"\b(?:(?:over)?price[sd]?|charge|costs?|expensive|cheap(?:er)?)\b"),
    "age": re.compile(r"\b(?:(?:young|old)(?:er)?|ages?|generations?)\b"),
    "favourite": re.compile(r"\b(?:likes?|liked|favou?rites?|popular|prefer|best)\b"),
}
"""By what a question of a kind is known; the first that fits counts."""


class TopicsRead(msgspec.Struct, frozen=True):
    """The questions in a message, as far as they were understood.

    Attributes:
        topics: the topics asked about.
        vague: names that are mentioned in an unclear question.
    """

    topics: tuple[Topic, ...] = ()
    vague: tuple[str, ...] = ()


_OPENINGS: Final = (
    "",
    "",
    "",
    "One more thing: ",
    "Next question: ",
    "What I would like to know: ",
)
_LEARNED: Final = ("Interesting. ", "Good to know. ", "I see. ", "Now I wonder: ")
"""Openings of those who have just learned something."""


def say_topic(
    topic: Topic, subject: str, words: Random, *, odd: bool = False, learned: bool = False
) -> str:
    """A question about a topic; an odd one may well not be understood.

    Args:
        topic: what it is about.
        subject: of the survey.
        words: chooses the words.
        odd: whether it is an odd one.
        learned: whether the analyst has learned something from the last answer.
    """
    phrases = ODD if odd else PLAIN
    opening = words.choice((*_OPENINGS, *_LEARNED) if learned else _OPENINGS)
    asked = phrases.say(topic.kind, words, subject=subject, about=topic.about)
    return opening + (asked[:1].lower() + asked[1:] if opening.endswith(": ") else asked)


def wordings_of(topic: Topic, subject: str) -> tuple[str, ...]:
    """All ways to ask about a topic, without openings: by them one knows one's own question."""
    fields = {"subject": subject, "about": topic.about}
    return (*PLAIN.variants(topic.kind, **fields), *ODD.variants(topic.kind, **fields))


@final
class TopicReader:
    """Reads what messages ask: a key word of a kind, and a name that this kind can be about.

    Args:
        names: the names of the survey.
    """

    def __init__(self, names: Names) -> None:
        tables = {table: table for table in TABLES}
        products = {name.lower(): name for name in names.products}
        self._about: dict[Kind, Mapping[str, str]] = dict.fromkeys(KINDS, products)
        self._about["favourite"] = {name.lower(): name for name in names.regions}
        self._about["quality"] = tables
        self._written = {**products, **tables, **self._about["favourite"]}
        known = sorted(self._written)
        self._name = re.compile(rf"\b(?:{'|'.join(map(re.escape, known))})\b")

    def read(self, text: str) -> TopicsRead:
        """Reads the questions in a message."""
        topics: dict[Topic, None] = {}
        vague: dict[str, None] = {}
        for sentence in sentences(text.lower()):
            mentioned = self._name.findall(sentence)
            found = self._topic(sentence, mentioned)
            if found is not None:
                topics[found] = None
            else:
                vague.update((self._written[name], None) for name in mentioned)
        return TopicsRead(tuple(topics), tuple(vague))

    def mentioned(self, text: str, kind: Kind) -> tuple[str, ...]:
        """The names in a text that a kind of topic can be about."""
        can = self._about[kind]
        found = (can[name] for name in self._name.findall(text.lower()) if name in can)
        return tuple(dict.fromkeys(found))

    def _topic(self, sentence: str, mentioned: list[str]) -> Topic | None:
        if not mentioned:
            return None
        for kind, pattern in _WORDS.items():
            if pattern.search(sentence) is None:
                continue
            can = self._about[kind]
            about = next((can[name] for name in mentioned if name in can), None)
            if about is not None:
                return Topic(kind, about)
        return None
