"""A student's learning so far: a fold over the session, the same for the student and for scorers.

The student takes lessons in when they act again or change their mind; unread lessons teach nothing.
A ``ProfileChanged`` of the student says the same, and replaces the computed state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import ActionTaken, MessageSent, ProfileChanged, SessionOpened, SnapshotTaken
from ....engine.records import Record
from ....engine.text import count_words, text_of
from ..language.answers import read_said
from ..language.teaching import Taught, read_teaching
from ..maths.solving import components_in
from ..sheet import RIGHT, Item, newly_answered, read_answers, read_problems
from .learning import TEACH, Lesson, lesson_of, practise, take_in
from .student import Student, student_of

__all__ = ("StudentFold",)

_SURE = 0.65
"""A student who is told that they were wrong thinks of the components that they know less well than that."""

_COPYING = 0.2
"""Share of the energy of an attempt that copying an answer takes."""


class _Heard(NamedTuple):
    """A message, lesson or sheet of a tutor that the student has not reacted to."""

    version: int
    words: int
    taught: Taught = Taught()
    marks: tuple[tuple[str, bool], ...] = ()
    lesson: Lesson | None = None


@final
class StudentFold:
    """Follows one session.

    Attributes:
        student: their state at their last act; None if the opening does not describe one.
        items: the current sheet; before there is one, the problems of the request.
        given: answers that they were given so far, by number.
    """

    def __init__(self) -> None:
        self.student: Student | None = None
        self.items: tuple[Item, ...] = ()
        self.given: dict[int, str] = {}
        self._human = ""
        self._last = ""
        self._asked: list[tuple[int, str]] = []
        self._pending: list[_Heard] = []

    def feed(self, record: Record) -> None:
        """Takes the next record."""
        event = record.event
        if isinstance(event, SessionOpened):
            self._opened(event)
        elif isinstance(event, MessageSent) and record.role == "agent":
            self._told(record.version, event.text)
        elif isinstance(event, ActionTaken) and event.name == TEACH and record.role == "agent":
            self._teaches(record.version, event)
        elif isinstance(event, MessageSent) and record.role == "human":
            self._said(record, event.text)
        elif isinstance(event, SnapshotTaken):
            self._sheet(record, text_of(event.content))
        elif isinstance(event, ProfileChanged) and event.owner == self._human:
            self.student = student_of(event.profile)
            heard = self.student.heard
            self._pending = [one for one in self._pending if one.version > heard]

    def now(self, seen: int | None = None) -> Student | None:
        """The student after they have taken in all messages and writing.

        Args:
            seen: trace version up to which; None for all.
        """
        student = self.student
        pending = [one for one in self._pending if seen is None or one.version <= seen]
        if student is None or not pending:
            return student
        judged: dict[str, bool] = {}
        lessons: list[Lesson] = []
        for one in pending:
            lessons += () if one.lesson is None else (one.lesson,)
            judged.update((problem or self._last, ok) for problem, ok in one.taught.judged)
            judged.update(one.marks)
        feedback = [
            lesson for problem, ok in judged.items() for lesson in _feedback(student, problem, ok)
        ]
        words = sum(one.words for one in pending)
        learned = take_in(student, [*feedback, *lessons], words)
        return msgspec.structs.replace(learned, heard=pending[-1].version)

    def _opened(self, event: SessionOpened) -> None:
        self._human = next((one.name for one in event.participants if one.role == "human"), "")
        private = event.private.get(self._human)
        if isinstance(private, Mapping):
            self.student = student_of(private)
        self.items = read_problems(event.request or "")

    def _told(self, version: int, text: str) -> None:
        taught = read_teaching(text)
        self._pending.append(_Heard(version, count_words(text), taught))
        problems = {item.number: item.problem for item in self.items}
        asked = [*taught.asked, *(problems[n] for n in taught.items if n in problems)]
        self._asked += ((version, one) for one in dict.fromkeys(asked))
        self.given.update((answer.number, str(answer.answer)) for answer in taught.answers)

    def _teaches(self, version: int, event: ActionTaken) -> None:
        try:
            lesson = lesson_of(event.arguments)
        except InvalidInput:
            return  # the act fails, and teaches nothing
        self._pending.append(_Heard(version, 0, lesson=lesson))

    def _said(self, record: Record, text: str) -> None:
        if not self.items:
            self.items = read_problems(text)
        asked = tuple(problem for version, problem in self._asked if _saw(record, version))
        said = read_said(text, asked)
        self._acts(record, float(len(said.results)))
        for problem, _ in said.results:
            self._last = problem or (asked[-1] if asked else self._last)

    def _sheet(self, record: Record, text: str) -> None:
        before, self.items = self.items, read_answers(text, self.items)
        if record.role == "agent":
            was = {item.number: (item.answer, item.mark) for item in before}
            marks = [
                (item.problem, item.mark == RIGHT)
                for item in self.items
                if item.mark and was.get(item.number) != (item.answer, item.mark)
            ]
            self._pending.append(_Heard(record.version, 0, marks=tuple(marks)))
            return
        effort = 0.0
        for item in newly_answered(before, self.items):
            copied = self.given.get(item.number) in item.answer.split()
            effort += _COPYING if copied else 1.0
            self._last = item.problem
        self._acts(record, effort)

    def _acts(self, record: Record, effort: float) -> None:
        """Updates the student after an act: they have taken in everything they saw, and worked."""
        student = self.now(record.version if record.seen is None else record.seen)
        self._pending = [one for one in self._pending if not _saw(record, one.version)]
        self._asked = [one for one in self._asked if not _saw(record, one[0])]
        if student is not None:
            self.student = practise(student, effort) if effort else student


def _saw(record: Record, version: int) -> bool:
    """Whether the actor of a record had seen a version."""
    return version <= (record.version if record.seen is None else record.seen)


def _feedback(student: Student, problem: str, ok: bool) -> list[Lesson]:
    """The lessons in being told that a problem was right or wrong."""
    used = components_in(problem)
    if ok:
        return [Lesson("right", one) for one in used]
    weak = [one for one in used if student.knows[one] < _SURE]
    return [Lesson("wrong", one) for one in weak or used]
