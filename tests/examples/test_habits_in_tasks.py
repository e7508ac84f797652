"""The habits of the shipped agents: each changes what is said or done in a transcript, in every task."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import product

import pytest
from duolog.agents.habits import HABITS
from duolog.engine.events import ActionTaken, MessageSent, SessionOpened, SnapshotTaken
from duolog.engine.task import AgentVariant, Cell, Setting, Task
from duolog.engine.text import text_of
from duolog.examples.data.data_task import data_task
from duolog.examples.data.language.messages import AGENT
from duolog.examples.data.language.rulings import asked_rulings
from duolog.examples.finance.finance_task import finance_task
from duolog.examples.finance.language.advice import FOLLOW_UPS, read_figures, read_questions
from duolog.examples.finance.language.advice import read_understood as planned_for
from duolog.examples.proof.language.agent import PHRASES, taken_for_core
from duolog.examples.proof.language.agent import read_questions as asked_of_claims
from duolog.examples.proof.proof_task import proof_task
from duolog.examples.travel.language.messages import understand_question
from duolog.examples.travel.language.reports import UNDERSTOOD, read_price
from duolog.examples.travel.travel_task import travel_task
from duolog.examples.tutoring.language.teaching import read_misconceptions, read_teaching
from duolog.examples.tutoring.tutoring_task import tutoring_task
from duolog.tasks.phrases import Phrases
from duolog.testing import Played, played

TASKS: dict[str, Task] = {
    "travel": travel_task(),
    "data": data_task(),
    "finance": finance_task(),
    "proof": proof_task(),
    "tutoring": tutoring_task(),
}


def said(one: Played) -> list[str]:
    """The agent's messages."""
    events = [record.event for record in one.trace if record.role == "agent"]
    return [event.text for event in events if isinstance(event, MessageSent)]


def before_output(one: Played) -> list[str]:
    """The agent's messages before its first output."""
    found: list[str] = []
    for record in one.trace:
        if isinstance(record.event, SnapshotTaken):
            break
        if record.role == "agent" and isinstance(record.event, MessageSent):
            found.append(record.event.text)
    return found


def in_messages(pattern: str) -> Callable[[Played], int]:
    return lambda one: sum(len(re.findall(pattern, text)) for text in said(one))


def in_output(pattern: str) -> Callable[[Played], int]:
    def count(one: Played) -> int:
        events = [record.event for record in one.trace if record.role == "agent"]
        texts = [text_of(e.content) for e in events if isinstance(e, SnapshotTaken)]
        return sum(len(re.findall(pattern, text)) for text in texts)

    return count


def read_by(read: Callable[[str], object]) -> Callable[[Played], int]:
    return lambda one: sum(bool(read(text)) for text in said(one))


def asked_again(read: Callable[[str], tuple[str, ...]]) -> Callable[[Played], int]:
    """How many topics were asked about more than once."""
    return lambda one: sum(
        n > 1 for n in Counter(topic for text in said(one) for topic in read(text)).values()
    )


def phrased(*wordings: str) -> Callable[[Played], int]:
    starts = tuple(wording.split("{")[0] for wording in wordings)
    return lambda one: sum(any(start in text for start in starts if start) for text in said(one))


def taken(action: str) -> Callable[[Played], int]:
    return lambda one: sum(
        isinstance(r.event, ActionTaken) and r.event.name == action
        for r in one.trace
        if r.role == "agent"
    )


def asks_of_claims(about: str) -> Callable[[Played], int]:
    return read_by(lambda text: any(asked.about == about for asked in asked_of_claims(text)))


def exercises(one: Played) -> int:
    return sum(len(read_teaching(text).asked) for text in said(one))


def refutations(one: Played) -> int:
    return sum(len(read_misconceptions(text)) for text in said(one))


def says(variants: Phrases, *keys: str) -> Callable[[Played], int]:
    """How many messages are worded in one of the ways of saying these things."""
    return phrased(*(text for key in keys for text in variants.variants(key, labels="{")))


FOLLOW_UP = says(FOLLOW_UPS, *FOLLOW_UPS.keys)

SHOWS: dict[tuple[str, str], tuple[str, str, Callable[[Played], int]]] = {
    ("travel", "assumptions"): (
        "proactive",
        "1",
        read_by(lambda t: any(opening in t for opening in UNDERSTOOD)),
    ),
    ("travel", "doubts"): ("proactive", "1", read_by(read_price)),
    ("travel", "goals"): ("proactive", "2", read_by(lambda t: "generic" in understand_question(t))),
    ("travel", "level"): ("lazy", "1", asked_again(understand_question)),
    ("data", "assumptions"): ("proactive", "0", in_output("Assumption: ")),
    ("data", "doubts"): ("proactive", "1", read_by(asked_rulings)),
    ("data", "goals"): ("proactive", "1", says(AGENT, "next")),
    ("data", "level"): ("proactive", "0", says(AGENT, "rephrase")),
    ("finance", "assumptions"): ("proactive", "2", read_by(planned_for)),
    ("finance", "doubts"): ("proactive", "2", read_by(read_figures)),
    ("finance", "goals"): ("proactive", "5", asked_again(read_questions)),
    ("finance", "level"): ("proactive", "2", FOLLOW_UP),
    ("proof", "assumptions"): ("proactive", "1", read_by(taken_for_core)),
    ("proof", "doubts"): ("lazy", "2", says(PHRASES, "unchecked")),
    ("proof", "goals"): ("proactive", "0", asks_of_claims("anything")),
    ("proof", "level"): ("feedback", "3", taken("Verify")),
    ("tutoring", "assumptions"): ("proactive", "1", refutations),
    ("tutoring", "doubts"): ("proactive", "5", lambda one: -refutations(one)),
    ("tutoring", "goals"): ("proactive", "1", exercises),
    ("tutoring", "level"): ("proactive", "1", lambda one: len(before_output(one))),
}
"""With whom and on which instance of seed 3 a habit shows, and how often it does in a session."""

ONE_STAGE = {("proof", "level")}  # the others show in a two-stage agent


def test_every_habit_is_looked_for_in_every_task() -> None:
    assert set(SHOWS) == set(product(TASKS, HABITS))


@pytest.mark.parametrize(("task", "habit"), SHOWS)
async def test_a_habit_shows_in_what_is_said_and_done(task: str, habit: str) -> None:
    user, instance, count = SHOWS[task, habit]
    kind = "one-stage" if (task, habit) in ONE_STAGE else "two-stage"
    found: dict[bool, int] = {}
    for on in (True, False):
        name = f"{kind}:{'' if on else 'no-'}{habit}"
        variant = AgentVariant(settings={"habits": {habit: on}})
        cell = Cell(agent=name, user=user, instance=instance, seed=3)
        one = await played(TASKS[task].session(cell, Setting(variants={name: variant})))
        opened = one.trace[0].event
        assert isinstance(opened, SessionOpened)
        assert opened.config["variant"] == {"settings": {"habits": {habit: on}}, "origin": None}
        found[on] = count(one)
    assert found[True] > found[False]
    assert found[False] <= 0 or (task, habit) in PARTLY


PARTLY = {("finance", "goals"), ("proof", "level"), ("tutoring", "goals"), ("tutoring", "level")}
"""Those that without the habit show less often, since something else is said in the same words."""
