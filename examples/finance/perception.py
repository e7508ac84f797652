"""A client's perception of a session: both sides' messages, and the figures that they were shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from ...engine.events import ActionResolved, MessageSent, ProfileChanged, SnapshotTaken
from ...engine.session.view import ActionSeen, View
from ...engine.text import count_words, text_of
from ...tasks.views import own_messages, trait
from .language.advice import Figure, read_figures, read_questions, read_understood
from .language.statements import read_answer, read_facts
from .plan import Plan, try_plan
from .world.household import Topic

__all__ = ("GOALS", "VISIBLE", "Perception")

_TAKEN_IN: Final = 2
"""Figures of one message that a client takes in; the others pass them by."""

_SINKS_IN: Final = 0.6
"""Share of the figures taken in that a client also takes to heart; another message may do it."""

_SETTLES: Final = 0.5
"""Share of the topics on which a client accepts a plan's proposal that comes before they spoke of it
(the default effect: people take a default for advice; Madrian and Shea 2001)."""

_EDITORS: Final = 0.6
"""Share of the clients with a persona that acts who do change a plan themselves."""

_STAMINA: Final = (1000, 2000)
"""Words that a client reads before they leave it at what there is, at least and at most."""

_MESSAGES: Final = (12, 16)
"""Their own messages after which they stop, at least and at most: forgotten words do not tire."""

_TYPING: Final = 4
"""Words that are read in the time in which one is typed."""

_TALK: Final = (2, 5)
"""The client's own messages before others talk to them, at least and at most."""

GOALS: Final[tuple[Topic, ...]] = ("age", "study")
"""The goals of which advisers state a chance."""

_PROTEST: Final = "chance of "
"""Words in every objection to a chance that is too small."""

VISIBLE: Final[tuple[Topic, ...]] = ("cushion", "project", "cover", "prepay", "study")
"""Topics that have a separate line in a plan."""

_COLUMNS: Final[Mapping[Topic, str]] = {
    "age": "retirement_chance",
    "loss": "bad_year",
    "cushion": "months_in_reserve",
    "cover": "years_of_salary",
}
"""The figures a client looks at in their own projection, in this order."""


@final
class Perception:
    """A fold of a view; one for each client and session.

    Attributes:
        tired: the client has read and typed enough.
        talk: number of their own messages after which others talk to them.
        told: the last thing that the client said plainly on each topic.
        hinted: topics on which they have said something, plainly or not.
        heeded: the wishes that they had told before the agent's last message.
        understood: their wishes as the agent last stated them, by topic.
        current: the figures of the plan that stands, as far as they were taken in.
        seen: the lowest and the highest figure that they ever took to heart, by topic.
        edits: they are one who would change a plan themselves.
        explains: the topic on which they have changed the plan, until they have said so.
        accepted: topics on which they go along with what the first plan proposed.
        protested: goals of which they have said that the chance is too small.
        chances: the chances of their goals in per cent, as they last took them in.
        chances_before: the same when they last said something.
    """

    def __init__(self, view: View) -> None:
        mood = trait(view, "mood")
        self._view = view
        self._settles = frozenset(topic for topic in VISIBLE if mood.random() < _SETTLES)
        self._stamina = mood.randint(*_STAMINA)
        self.talk = mood.randint(*_TALK)
        self.edits = mood.random() < _EDITORS
        self._most = mood.randint(*_MESSAGES)
        self._read = 0
        self._words = 0
        self._drafted = False
        self._plan: Plan | None = None
        self.explains: Topic | None = None
        self.told: dict[Topic, int] = {}
        self.hinted: set[Topic] = set()
        self.heeded: dict[Topic, int] = {}
        self.understood: dict[Topic, int] = {}
        self.current: dict[Topic, float] = {}
        self.seen: dict[Topic, tuple[float, float]] = {}
        self.accepted: frozenset[Topic] = frozenset()
        self.protested: set[Topic] = set()
        self.chances: dict[Topic, float] = {}
        self.chances_before: dict[Topic, float] = {}
        self._asked: tuple[Topic, ...] = ()

    @property
    def tired(self) -> bool:
        """Whether they have read and typed enough."""
        return self._words > self._stamina or len(own_messages(self._view)) > self._most

    def follow(self) -> None:
        """Learns about everything the view has shown since the last call."""
        view = self._view
        for record in view.records[self._read :]:
            event, mine = record.event, record.actor == view.me
            if isinstance(event, SnapshotTaken):
                self._take_plan(text_of(event.content), mine=mine)
            elif isinstance(event, MessageSent) and not mine:
                self._read_message(event.text, record.version)
            elif isinstance(event, MessageSent) and event.text != view.request:
                self._say(event.text)
            elif isinstance(event, ActionResolved) and event.action in view.actions:
                self._look(view.actions[event.action])
            elif isinstance(event, ProfileChanged):
                self.chances.clear()  # they belong to earlier wishes
        self._read = len(view.records)

    def _take_plan(self, text: str, *, mine: bool) -> None:
        """Reads a plan, another participant's or their own."""
        before, self._plan = self._plan, try_plan(text)
        self.current = {}
        if mine:
            self.explains = _changed(before, self._plan)
            return
        self._words += count_words(text)
        if not self._drafted:
            self._drafted = True
            self.accepted = self._settles - self.hinted

    def _read_message(self, text: str, version: int) -> None:
        """Reads another participant's message."""
        self._words += count_words(text)
        self._asked = read_questions(text)
        self.heeded = dict(self.told)
        self.understood.update({fact.topic: fact.value for fact in read_understood(text)})
        for figure in read_figures(text)[:_TAKEN_IN]:
            chance = trait(self._view, f"{figure.topic}/{version}").random()
            self._take_in(figure, heartily=chance < _SINKS_IN)

    def _say(self, text: str) -> None:
        """Notes their own message."""
        self.explains = None
        self.chances_before = dict(self.chances)
        self._words += _TYPING * count_words(text)
        facts = read_facts(text)
        if not facts and len(self._asked) == 1:  # they know what they have answered
            answer = read_answer(text, self._asked[0])
            facts = () if answer is None else (answer,)
        for fact in facts:
            self.hinted.add(fact.topic)
            if fact.sure:
                self.told[fact.topic] = fact.value
        if _PROTEST in text:
            self.protested.add("study" if any(f.topic == "study" for f in facts) else "age")
        self._asked = ()

    def _look(self, action: ActionSeen) -> None:
        """Learns from their own action: a projection."""
        resolved = action.resolved
        row = resolved.observation if resolved is not None and action.name == "Project" else None
        if not isinstance(row, Mapping):
            return
        found = [(topic, row.get(column)) for topic, column in _COLUMNS.items()]
        for topic, value in found[:_TAKEN_IN]:
            if isinstance(value, int | float):
                self._take_in(Figure(topic, float(value)), heartily=True)

    def _take_in(self, figure: Figure, *, heartily: bool) -> None:
        self.current[figure.topic] = figure.value
        if figure.topic in GOALS:
            self.chances[figure.topic] = figure.value
        if heartily:
            low, high = self.seen.get(figure.topic, (figure.value, figure.value))
            self.seen[figure.topic] = (min(low, figure.value), max(high, figure.value))


def _changed(before: Plan | None, after: Plan | None) -> Topic | None:
    """The first topic on whose line two plans differ."""
    if before is None or after is None:
        return None
    lines: Mapping[Topic, bool] = {
        "project": before.project != after.project,
        "cushion": before.emergency != after.emergency,
        "cover": before.cover != after.cover,
        "prepay": before.prepay != after.prepay,
    }
    return next((topic for topic, differs in lines.items() if differs), None)
