"""The rule-driven analyst's assistant: queries, asks what only people know, reports what is asked."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import final

from ...agents.habits import Habits
from ...engine.session.decisions import Act, Decision, Submit
from ...engine.session.view import View
from ...engine.text import lines_of
from ...tasks.rule_agent import Question, Standing
from .analysis import SHEETS, Sheet, chart_of, query_for, relevant, sheet_of
from .facts import ADVISED, RULINGS_OF, Ruling, Rulings, Topic, advice_on
from .knowledge import Known, Memory
from .language.messages import AGENT, propose
from .language.rulings import ask_ruling
from .report import say_advice, say_assumption, say_claim

__all__ = ("HAND_OVER", "LOOK", "DataPlanner")

_OVERVIEW = 2  # findings to begin with, if the question is not understood
_NULL = ("too few", "nowhere", "alike", "none")


def needed_queries(known: Known) -> list[str]:
    """Queries that are missing to answer what was asked, and to see which rulings decide that."""
    wishes = known.wishes
    topics = [*wishes.topics, *([wishes.advice] if wishes.advice else [])]
    sheets: dict[Sheet, None] = dict.fromkeys(sheet_of(topic.kind) for topic in topics)
    if known.alone or wishes.more or not topics:
        sheets = dict.fromkeys(SHEETS)
    wanted = {query_for(sheet, r): None for sheet in sheets for r in _variants(sheet, known)}
    return [sql for sql in wanted if sql not in known.findings.rows]


def needed_charts(known: Known) -> list[tuple[str, str]]:
    """Missing charts, as title and SQL, for interactions, which readers understand only with a chart."""
    wanted = [chart_of(topic, known.rulings) for topic in _charted(known)]
    return [(title, sql) for title, sql in wanted if sql not in known.charts]


def deciding(topic: Topic, known: Known) -> tuple[Ruling, ...]:
    """The open rulings that change the answer to a topic."""
    claim = known.claim(topic)
    found: list[Ruling] = []
    for ruling in RULINGS_OF[topic.kind]:
        if ruling in known.wishes.rulings:
            continue
        other = known.claim(topic, _turned(ruling, known))
        if claim is not None and other is not None and claim.answer != other.answer:
            found.append(ruling)
    return tuple(found)


def related(known: Known) -> Topic | None:
    """A topic that is not in the report, next to the one asked last, with an answer worth telling."""
    told = {*_focus(known), *known.proposed}
    return next((topic for topic in _near(known) if topic not in told), None)


def neighbours(known: Known) -> list[Topic]:
    """The topics answered by the same queries as the topics asked about."""
    sheets = {sheet_of(topic.kind) for topic in known.wishes.topics}
    return [topic for topic in known.claims() if sheet_of(topic.kind) in sheets]


def _focus(known: Known) -> list[Topic]:
    """The report's topics: those asked about, and others that people may have missed."""
    asked = list(known.wishes.topics)
    others = [topic for topic in (*_near(known), *_notable(known)) if topic not in asked]
    more = known.wishes.more or (0 if asked else _OVERVIEW)
    return [*asked, *list(dict.fromkeys(others))[:more]]


def _near(known: Known) -> list[Topic]:
    """Notable topics about the same region or product as the one asked last, or as its answer."""
    if not known.wishes.topics:
        return []
    last = known.wishes.topics[-1]
    claim = known.claim(last)
    near = {last.about, claim.answer if claim else ""}
    return [topic for topic in _notable(known) if topic != last and topic.about in near]


def _notable(known: Known) -> list[Topic]:
    """The topics with an answer worth telling."""
    return [topic for topic, claim in known.claims().items() if claim.answer not in _NULL]


def draft(known: Known, *, assumptions: bool = True) -> str:
    """The report on what is known.

    Args:
        known: the agent's knowledge.
        assumptions: whether it names the rulings that it uses, if they decide a finding.
    """
    if known.alone:
        return "\n".join(full_report(known))
    lines = list(dict.fromkeys(_short(known, assumptions=assumptions)))
    fresh = [line for line in lines if line not in known.before]
    return "\n".join([*fresh, *(line for line in lines if line in known.before), *known.theirs])


def _short(known: Known, *, assumptions: bool) -> Iterator[str]:
    """The topics asked about, latest first, with their assumptions; and a recommendation."""
    focus = list(reversed(_focus(known)))
    for topic in focus:
        yield from _finding(topic, known)
        for ruling in deciding(topic, known) if assumptions else ():
            yield say_assumption(ruling, holds=known.rulings[ruling])
        if topic == focus[0]:
            yield from _advice(known)


def full_report(known: Known) -> Iterator[str]:
    """Everything: the question first, then all that was found, and at the end how and by what."""
    claims = known.claims()
    asked = [topic for topic in known.wishes.topics if topic in claims]
    for topic in asked:
        yield from _finding(topic, known)
    yield from _advice(known)
    for topic in claims:
        if topic not in asked:
            yield from _finding(topic, known)
    for ruling, holds in known.rulings.items():
        yield say_assumption(ruling, holds=holds)
    for sheet in SHEETS:
        yield f"Method: {query_for(sheet, known.rulings)}"


def _finding(topic: Topic, known: Known) -> Iterator[str]:
    claim = known.claim(topic)
    if claim is None or topic in known.settled:
        return
    yield say_claim(claim)
    chart = known.charts.get(chart_of(topic, known.rulings)[1]) if _is_drawn(topic) else None
    if chart is not None:
        yield chart


def _advice(known: Known) -> Iterator[str]:
    """The recommendation: on what was wanted, else on the first thing that was asked."""
    topics = (known.wishes.advice, *known.wishes.topics)
    topic = next((t for t in topics if t is not None and t.kind in ADVISED), None)
    claim = None if topic is None else known.claim(topic)
    if claim is not None:
        yield say_advice(advice_on(claim))


def _charted(known: Known) -> list[Topic]:
    if known.alone:
        return [topic for topic in known.claims() if topic.kind == "channel"]
    asked = [topic for topic in _focus(known) if topic.kind == "channel"]
    more = [Topic("channel", name) for name in known.wishes.charts]
    return list(dict.fromkeys([*asked, *more]))


def _is_drawn(topic: Topic) -> bool:
    return topic.kind == "channel"


def _variants(sheet: Sheet, known: Known) -> Iterator[Rulings]:
    yield known.rulings
    if not known.alone:
        for ruling in relevant(sheet):
            if ruling not in known.wishes.rulings:
                yield _turned(ruling, known)


def _turned(ruling: Ruling, known: Known) -> Rulings:
    return {**known.rulings, ruling: not known.rulings[ruling]}


# --- the rule-driven analyst's assistant ----------------------------------------------------------


LOOK = ("Please have a look.", "Have a look, please.", "See what you think.")
"""Ends of a message on a new report that asks nothing; short, because every word costs attention."""

HAND_OVER = "That is as far as I get."
"""The end of its last message."""


@final
class DataPlanner:
    """Decides what an agent looks up, asks and reports about a survey; one for each session.

    Args:
        habits: ``assumptions``: its report says by which rulings it goes; ``doubts``: it asks about those
            that decide a finding; ``goals``: it asks where to look next; ``level``: it asks again where a
            message was not clear to it, and proposes nothing to a human who wants less to read.
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
        """Asks what was meant, then about a ruling that decides a topic, then where to look next."""
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
    """Whether a nonempty report has other lines than the current one; their order does not count."""
    return bool(text) and set(lines_of(text)) != set(lines_of(view.snapshot_text))
