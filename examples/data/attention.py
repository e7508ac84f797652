"""How an analyst reads messages and reports: they notice, understand and believe parts of them.

At each look they take in so many words: first the messages since the last look, then the lines of
the report that they have not read yet, from the top. They miss the rest, unless it is still in the
report at a later look. They also tire: there is a limit on the words that they take in altogether. They
understand a finding about an interaction only with a chart of it. If two findings are on one topic,
they believe the one that they noticed last. They believe their own words and findings at no cost.

It is a fold of the records that the analyst can see, and depends on nothing else. Scorers and
simulated users share it.
"""

from __future__ import annotations

from copy import copy
from typing import Final, final

from ...engine.events import ActionTaken, MessageSent, SnapshotTaken
from ...engine.records import Record
from ...engine.rounds import is_act
from ...engine.text import count_words, lines_of
from ...tasks.phrases import sentences
from .analysis import LOOKS
from .facts import Advice, Claim, Names, Ruling, Topic
from .report import Assumed, Charted, ReportReader, Statement

__all__ = ("OWN_ANALYSIS", "Reading")

OWN_ANALYSIS = 60
"""Stamina, in words, that the analyst's own action takes."""

_LOOK: Final = 20
"""Stamina that a look at some raw rows takes."""


@final
class Reading:
    """Tracks everything an analyst has taken in so far.

    Args:
        names: the names of the survey.
        attention: words at a look.
        stamina: words altogether.

    Attributes:
        believed: the claim believed, by topic.
        advice: the recommendation noticed last.
        charted: topics whose chart was noticed.
        puzzling: claims noticed but not understood, because a chart is missing.
        left: words that they can still take in.
        unread: lines of the report that went unnoticed at the last look.
        looks: number of looks.
    """

    def __init__(self, names: Names, attention: int, stamina: int) -> None:
        self._reader = ReportReader(names)
        self._attention = attention
        self.left = stamina
        self.believed: dict[Topic, Claim] = {}
        self.advice: Advice | None = None
        self.charted: set[Topic] = set()
        self.puzzling: dict[Topic, Claim] = {}
        self.unread: tuple[str, ...] = ()
        self.looks = 0
        self._read: set[str] = set()
        self._messages: list[str] = []
        self._report: tuple[str, ...] = ()
        self._news = False

    def feed(self, record: Record) -> None:
        """Takes the next record; the analyst looks before they act themselves."""
        event = record.event
        if record.role == "human" and is_act(record):
            self.catch_up()
            if isinstance(event, ActionTaken):
                looks = event.arguments.get("sql") in LOOKS
                self.left = max(0, self.left - (_LOOK if looks else OWN_ANALYSIS))
            elif isinstance(event, SnapshotTaken):
                self._wrote(lines_of(event.content))
        elif record.role == "agent":
            if isinstance(event, MessageSent):
                self._messages.append(event.text)
                self._news = True
            elif isinstance(event, SnapshotTaken):
                self._report = tuple(lines_of(event.content))
                self._news = True

    @property
    def assumed(self) -> dict[Ruling, bool]:
        """The assumptions that were noticed and are still in the report."""
        noticed = (self._reader.read(line) for line in self._report if line in self._read)
        return {one.ruling: one.holds for one in noticed if isinstance(one, Assumed)}

    def copy(self) -> Reading:
        """The same state, to be led further on its own."""
        other = copy(self)
        other.believed = dict(self.believed)
        other.charted, other.puzzling = set(self.charted), dict(self.puzzling)
        other._read, other._messages = set(self._read), list(self._messages)
        return other

    def catch_up(self) -> None:
        """Reads the news, as far as attention and stamina go."""
        if not self._news:
            return
        self._news = False
        self.looks += 1
        began = budget = min(self._attention, self.left)
        messages, self._messages = self._messages, []
        for sentence in (one for text in messages for one in sentences(text)):
            budget -= count_words(sentence)
            if budget < 0:
                break
            self._notice(self._reader.read(sentence))
        fresh = [line for line in self._report if line.strip() and line not in self._read]
        read = 0
        for line in fresh:
            budget -= count_words(line)
            if budget < 0:
                break
            read += 1
            self._read.add(line)
            self._notice(self._reader.read(line))
        self.unread = tuple(fresh[read:])
        self.left -= began - max(budget, 0)

    def _wrote(self, lines: list[str]) -> None:
        for line in lines:
            if line not in self._read and line not in self._report:
                self._read.add(line)
                self._notice(self._reader.read(line), understood=True)
        self._report = tuple(lines)

    def _notice(self, statement: Statement | None, *, understood: bool = False) -> None:
        match statement:
            case Claim():
                topic = statement.topic
                if understood or topic.kind != "channel" or topic in self.charted:
                    self.believed[topic] = statement
                    self.puzzling.pop(topic, None)
                else:
                    self.puzzling[topic] = statement
            case Charted(topic):
                self.charted.add(topic)
                if topic in self.puzzling:
                    self.believed[topic] = self.puzzling.pop(topic)
            case Advice():
                self.advice = statement
            case _:
                pass
