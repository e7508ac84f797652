"""Messages other than topics and rulings: requests, complaints, wishes for advice, and agents' messages."""

from __future__ import annotations

import re
from random import Random
from typing import Final, final

import msgspec

from ....tasks.phrases import Phrases
from ..facts import Kind, Names, Ruling, Topic
from .rulings import names_ruling, read_rulings
from .topics import PLAIN, TopicReader

__all__ = (
    "AGENT",
    "HUMAN",
    "Message",
    "MessageReader",
    "asks_to_rephrase",
    "propose",
    "say_advice_wish",
    "say_request",
)

_REQUESTS: Final = (
    "We have run a survey about {subject}. {question} Please look into it and write up what you find.",
    "Here is our {subject} survey. {question} I need a report that I can act upon.",
    "Can you look into the survey about {subject} for me? {question}",
    "I have to decide something about our {subject}. {question} The survey should tell.",
)

HUMAN: Final = Phrases(
    {
        "favourite": (
            "what would you promote in {about}, then?",
            "so what do you recommend for {about}?",
            "what shall we do in {about}, in your opinion?",
            "what would you promote in {about} if you were me?",
            "and what do you recommend that we do in {about}?",
        ),
        "price": (
            "what would you recommend for the price of {about}?",
            "so what shall we do about the price of {about}?",
            "should we change the price of {about}, in your opinion?",
            "what do you recommend as to the price of {about}?",
        ),
        "age": (
            "who should we offer {about} to, then?",
            "so which age do you recommend to offer {about} to?",
            "who should we sell {about} to, in your opinion?",
        ),
        "chart": (
            "I don't follow the point about {about}. Can you show me a chart of that?",
            "I can't picture that for {about}. A chart would help.",
        ),
        "long": (
            "this is more than I can take in. Please keep it short.",
            "that is too long for me. Just the main points, please.",
        ),
        "yes": ("yes, please.", "yes, do that.", "yes, go on.", "sure, go on.", "yes, I do."),
        "no": ("no, thank you.", "no, not now."),
        "added": (
            "I have looked that up myself, it stands in the report now.",
            "I have added what I found myself.",
            "I found that out myself and put it into the report.",
            "one line of the report is mine now, I looked that up myself.",
        ),
        "done": ("no, that is all. Thank you.", "nothing else, thanks."),
    }
)
"""Other things that analysts say."""

AGENT: Final = Phrases(
    {
        "first": ("Here is a first answer.", "I have put a first answer into the report."),
        "changed": (
            "The report is updated.",
            "I have updated the report.",
            "Done, see the report.",
        ),
        "unchanged": ("The report stands as it is.", "Nothing to add to the report."),
        "ruled": ("Thanks, the report goes by that now.", "Noted: I have gone through it again."),
        "kept": ("Thanks. That changes nothing here.", "Noted, it makes no difference here."),
        "lost": ("I did not get that, sorry.", "Sorry, I could not follow."),
        "rephrase": ("Could you put it another way?", "What do you mean exactly?"),
        "which": ("What is it about {name} that you want to know?",),
        "propose": ("Shall I look into this next: {question}", "Do you also wonder: {question}"),
        "next": ("What do you want to know next?", "Where shall I look next?"),
    }
)
"""Other things that agents say."""

_ADVICE: Final = re.compile(
    r"\brecommend\b|\bshall we\b|\bshould we\b|\bwould you promote\b|\bin your opinion\b"
)
_CHART: Final = re.compile(r"\bcharts?\b|\bshow me\b|\bpicture\b")
_LONG: Final = re.compile(r"\btoo long\b|\bshort\b|\bmain points\b|\btoo much\b")
_YES: Final = re.compile(r"^(?:yes|yeah|sure|please do|go on)\b")
_NO: Final = re.compile(r"^(?:no|nothing)\b")
_ADDED: Final = re.compile(r"\bmyself\b")
_REPHRASE: Final = re.compile(r"\banother way\b|\bwhat do you mean\b|\bthat you want to know\?")
_PROPOSED: Final = re.compile(r"\b(?:look into this next|also wonder): ")


class Message(msgspec.Struct, frozen=True):
    """A message as an agent understood it.

    Attributes:
        topics: the topics asked about.
        vague: names of which it is not clear what is asked.
        rulings: the rulings stated.
        advice: the topic on which a recommendation is wanted.
        charts: products of which a chart is wanted.
        short: the report is too long.
        agreed: it begins with a yes.
        declined: it begins with a no.
        added: they say that they have changed the report.
        specific: it names something of the survey, be it understood or not.
    """

    topics: tuple[Topic, ...] = ()
    vague: tuple[str, ...] = ()
    rulings: dict[Ruling, bool] = {}
    advice: Topic | None = None
    charts: tuple[str, ...] = ()
    short: bool = False
    agreed: bool = False
    declined: bool = False
    added: bool = False
    specific: bool = False

    @property
    def understood(self) -> bool:
        """Whether anything was."""
        said = self.topics or self.rulings or self.advice or self.charts
        return bool(said) or self.short or self.agreed or self.declined or self.added


def say_request(topic: Topic, subject: str, words: Random) -> str:
    """The request that a session begins with: one narrow question."""
    asked = PLAIN.variants(topic.kind, subject=subject, about=topic.about)
    question = words.choice(asked)
    question = question[:1].upper() + question[1:]
    return words.choice(_REQUESTS).format(subject=subject, question=question)


def say_advice_wish(topic: Topic, words: Random) -> str:
    """A wish for a recommendation that rests on a topic."""
    return HUMAN.say(topic.kind, words, about=topic.about)


@final
class MessageReader:
    """Reads messages by their words, as an agent.

    Args:
        names: the names of the survey.
    """

    def __init__(self, names: Names) -> None:
        self._topics = TopicReader(names)
        self._read: dict[tuple[str, tuple[Ruling, ...]], Message] = {}

    def read(self, text: str, asked: tuple[Ruling, ...] = ()) -> Message:
        """Reads a message.

        Args:
            text: the message.
            asked: the rulings that were asked about just before it.
        """
        found = self._read.get((text, asked))
        if found is None:
            found = self._read[text, asked] = self._understand(text, asked)
        return found

    def proposed(self, text: str) -> Topic | None:
        """The topic that a message proposes to look into."""
        found = _PROPOSED.search(text)
        topics = self.read(text[found.end() :]).topics if found else ()
        return topics[0] if topics else None

    def _understand(self, text: str, asked: tuple[Ruling, ...]) -> Message:
        plain = text.lower().replace("’", "'")
        rulings = read_rulings(text, asked)
        short = _LONG.search(plain) is not None
        if _CHART.search(plain):
            products = self._topics.mentioned(plain, "channel")
            return Message(charts=products, rulings=rulings, short=short)
        if _ADVICE.search(plain):
            return Message(advice=self._advised(plain), rulings=rulings)
        read = self._topics.read(text)
        return Message(
            topics=read.topics,
            vague=() if rulings or read.topics else read.vague,
            rulings=rulings,
            short=short,
            agreed=_YES.search(plain) is not None,
            declined=_NO.search(plain) is not None,
            added=_ADDED.search(plain) is not None,
            specific=bool(read.topics or read.vague) or names_ruling(plain),
        )

    def _advised(self, plain: str) -> Topic | None:
        regions = self._topics.mentioned(plain, "favourite")
        products = self._topics.mentioned(plain, "price")
        if regions:
            return Topic("favourite", regions[0])
        kind: Kind = "price" if "price" in plain else "age"
        return Topic(kind, products[0]) if products else None


def asks_to_rephrase(text: str) -> bool:
    """Whether a message says that one was not understood."""
    return _REPHRASE.search(text.lower()) is not None


def propose(topic: Topic, subject: str, words: Random) -> str:
    """A proposal to look into a topic."""
    question = words.choice(PLAIN.variants(topic.kind, subject=subject, about=topic.about))
    return AGENT.say("propose", words, question=question)
