"""The rule-driven analyst's assistant: queries, asks what only people know, reports what is asked."""

from __future__ import annotations

from random import Random
from typing import final

from ...agents.habits import Habits
from ...engine.session.decisions import Act, Decision, Submit
from ...engine.session.view import View
from ...engine.text import lines_of
from ..kit.rule_agent import Question, Standing
from .drafting import deciding, draft, needed_charts, needed_queries, neighbours, related
from .facts import Ruling
from .knowledge import Known, Memory
from .language.messages import AGENT, propose
from .language.rulings import ask_ruling

__all__ = ("HAND_OVER", "LOOK", "DataPlanner")

LOOK = "Please have a look."
"""What ends a message that asks nothing: every word costs attention."""

HAND_OVER = "That is as far as I get."
"""What ends its last one."""


@final
class DataPlanner:
    """What an agent finds out, asks and reports about a survey; one for each session.

    Args:
        habits: ``assumptions``: its report says by which rulings it goes; ``doubts``: it asks about those
            that decide a finding; ``goals``: it asks where to look next; ``level``: it asks again where a
            message was not clear to it, and proposes nothing to somebody who wants less to read.
    """

    def __init__(self, habits: Habits) -> None:
        self._habits = habits
        self._memory = Memory()

    def know(self, view: View) -> Known:
        """Messages understood, tables selected."""
        return self._memory.recall(view)

    def work(self, known: Known, view: View) -> Decision | None:
        """The schema, then the queries and charts that are missing, then the report."""
        if known.names is None:
            return Decision((Act("Schema"),)) if not _tried(view) else None
        queries = needed_queries(known)
        if queries:
            return Decision(tuple(Act("Query", {"sql": sql}) for sql in queries))
        charts = needed_charts(known)
        if charts:
            return Decision(tuple(Act("Chart", {"sql": s, "title": t}) for t, s in charts))
        text = draft(known, assumptions=self._habits.assumptions)
        if not _says_more(text, view):
            return None
        return Decision((Submit(text),))

    def question(self, known: Known, words: Random) -> Question | None:
        """What was meant; then a ruling that decides what was asked; then where to look next."""
        if known.names is None:
            return None
        habits = self._habits
        if habits.level and known.wishes.vague is not None:
            return Question(AGENT.say("which", words, name=known.wishes.vague))
        if habits.level and known.wishes.lost:
            return Question(AGENT.say("rephrase", words))
        ruling = _open_ruling(known) if habits.doubts else None
        if ruling is not None:
            return Question(ask_ruling(ruling, words), first=True)
        if not known.before or not habits.goals:
            return None
        topic = related(known)
        if topic is not None and not (habits.level and known.wishes.short):
            return Question(propose(topic, known.names.subject, words))
        return Question(AGENT.say("next", words))

    def estimate(self, known: Known) -> float:
        """By how much was asked and answered: each further answer adds less."""
        answered = sum(known.claim(topic) is not None for topic in known.wishes.topics)
        return answered / (answered + 2)

    def report(self, known: Known, words: Random, standing: Standing) -> str:
        """In a few words: the report speaks for itself, and reading tires."""
        if known.wishes.lost:
            return AGENT.say("lost", words)
        if known.wishes.ruled and standing != "first":
            return AGENT.say("ruled" if standing == "changed" else "kept", words)
        return AGENT.say(standing, words)


def _open_ruling(known: Known) -> Ruling | None:
    """A ruling that decides something that was asked, and was not asked about yet.

    Before there is a report, one that decides anything in the same tables will do: who asks before
    they write need not write again.
    """
    asked = list(reversed(known.wishes.topics))
    topics = asked if known.before else [*asked, *neighbours(known)]
    for topic in topics:
        for ruling in deciding(topic, known):
            if ruling not in known.asked:
                return ruling
    return None


def _tried(view: View) -> bool:
    return any(action.name == "Schema" for action in view.actions.values())


def _says_more(text: str, view: View) -> bool:
    """Whether a report says anything else than the one that stands there, in whatever order."""
    return bool(text) and set(lines_of(text)) != set(lines_of(view.snapshot_text))
