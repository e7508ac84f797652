"""A tutor's memory of its session: a fold of its view.

It reads the student's messages and the sheet, its own words and lessons, and what its look-ups found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple, final

from ....engine.errors import InvalidInput
from ....engine.events import JSON, ActionResolved, ActionTaken, MessageSent, SnapshotTaken
from ....engine.session.view import View
from ....engine.text import text_of
from ..language.answers import Said, read_said
from ..language.teaching import read_misconceptions, read_teaching
from ..maths.expressions import write_number
from ..maths.rules import Component
from ..maths.solving import components_in
from ..sheet import LOOK_AGAIN, RIGHT, Item, newly_answered, number_of, read_answers, read_problems
from ..student.learning import TEACH, Lesson, lesson_of
from .belief import Belief, Diagnosis

__all__ = ("Finding", "Memory", "Try")


class Try(NamedTuple):
    """An answer of the student's.

    Attributes:
        problem: to which problem.
        answer: as a number in text; empty if it is not one.
        number: the number of the item of the homework; 0 for an exercise.
    """

    problem: str
    answer: str
    number: int = 0


class Finding(NamedTuple):
    """A look-up's result for an answer."""

    right: bool
    answer: str
    components: tuple[Component, ...]
    causes: tuple[tuple[str, ...], ...]


@final
class Memory:
    """Follows the view of one tutor.

    Attributes:
        items: the current sheet, or the problems of the request before there is one.
        sheet: whether there is a sheet.
        fresh: answers of the student on which nothing was said yet.
        said: the student's last message, if the tutor has said nothing since.
        asked: problems that the tutor's last message asks for.
        told: how often each lesson was given.
        exercises: how many exercises were asked, by component.
        begged: how often the student asked for help with an item, by number.
        owes: whether the student acted after the tutor's last message.
        ever: whether the tutor has said anything.
        corrected: the misconception that the student says they have, if their last message corrects the
            tutor's guess at it, and the tutor has said nothing since; else empty.
    """

    def __init__(self) -> None:
        self.items: tuple[Item, ...] = ()
        self.sheet = False
        self.fresh: list[Try] = []
        self.said = Said()
        self.asked: tuple[str, ...] = ()
        self.told: Counter[Lesson] = Counter()
        self.exercises: Counter[Component] = Counter()
        self.begged: Counter[int] = Counter()
        self.owes = False
        self.ever = False
        self.corrected = ""
        self.made: dict[tuple[str, str, int], tuple[str, str]] = {}
        self._found: dict[tuple[str, str], Finding] = {}
        self._answers: dict[str, str] = {}
        self._seen: list[Try | Lesson | str] = []
        self._fed = 0

    def read(self, view: View) -> None:
        """Learns about everything new since the last call."""
        for record in view.records[self._fed :]:
            event = record.event
            if isinstance(event, MessageSent) and record.actor == view.me:
                self._spoke(event.text)
            elif isinstance(event, ActionTaken) and event.name == TEACH:
                self._taught(event.arguments)
            elif isinstance(event, MessageSent) and record.role == "human":
                self._heard(event.text)
            elif isinstance(event, SnapshotTaken):
                self._sheet(text_of(event.content), own=record.actor == view.me)
            elif isinstance(event, ActionResolved) and event.outcome == "ok":
                action = view.actions.get(event.action)
                if action is not None:
                    self._look_up(action.name, action.arguments, event.observation)
        self._fed = len(view.records)
        if not self.items:
            self.items = read_problems(view.request)

    @property
    def open_items(self) -> tuple[Item, ...]:
        """The items without an answer, or with one to look at again."""
        return tuple(one for one in self.items if not one.answer or one.mark == LOOK_AGAIN)

    def finding(self, tried: Try) -> Finding | None:
        """The look-up's finding about an answer; None if the tutor has not looked yet."""
        return self._found.get((tried.problem, tried.answer))

    def answer_to(self, problem: str) -> str | None:
        """The right answer to a problem, if a look-up has given it."""
        return self._answers.get(problem)

    def failed(self, number: int) -> int:
        """How often an item was answered wrongly."""
        tries = [one for one in self._seen if isinstance(one, Try) and one.number == number]
        found = [self.finding(one) for one in tries]
        return sum(1 for one in found if one is not None and not one.right)

    def tried(self, component: Component) -> bool:
        """Whether the student has answered a problem that this component comes first in."""
        tries = (one for one in self._seen if isinstance(one, Try))
        return any(component in components_in(one.problem)[:1] for one in tries)

    def belief(self) -> tuple[Belief, dict[Try, Diagnosis]]:
        """The beliefs about the student after all that was seen, and the causes of wrong answers."""
        belief, causes = Belief(), dict[Try, Diagnosis]()
        for one in self._seen:
            if isinstance(one, Lesson):
                belief.taught(one)
            elif isinstance(one, str):
                belief.told(one)
            elif (found := self.finding(one)) is not None and found.right:
                belief.right(found.components)
            elif found is not None:
                causes[one] = belief.wrong(found.components, found.causes)
        return belief, causes

    def marked(self) -> tuple[Item, ...]:
        """The sheet with a mark on each answer that was looked up."""
        return tuple(self._mark(item) for item in self.items)

    def _mark(self, item: Item) -> Item:
        if not item.answer or item.mark:
            return item
        found = self.finding(Try(item.problem, _plain(item.answer), item.number))
        if found is None:
            return item
        mark = RIGHT if found.right else LOOK_AGAIN
        return Item(item.number, item.problem, item.answer, mark)

    def _spoke(self, text: str) -> None:
        taught = read_teaching(text)
        numbered = {item.number: item.problem for item in self.items}
        items = tuple(numbered[number] for number in taught.items if number in numbered)
        self.asked = tuple(dict.fromkeys((*taught.asked, *items)))
        for problem in self.asked:
            if problem not in numbered.values():
                self.exercises.update(components_in(problem)[:1])
        self.fresh.clear()
        self.corrected = ""
        self.said, self.owes, self.ever = Said(), False, True

    def _taught(self, arguments: Mapping[str, JSON]) -> None:
        try:
            lesson = lesson_of(arguments)
        except InvalidInput:
            return  # it was refused
        self._seen.append(lesson)
        self.told[lesson] += 1

    def _heard(self, text: str) -> None:
        said = read_said(text, self.asked)
        if said.begs < 0:  # what was asked
            numbers = [item.number for item in self.items if item.problem in self.asked]
            said = said._replace(begs=numbers[-1] if numbers else 0, lost=not numbers)
        self.said, self.owes = said, True
        self.begged.update({said.begs, said.stuck} - {0})
        if read_problems(text):  # the request
            return
        for problem, answer in said.results:
            asked = problem or (self.asked[-1] if self.asked else "")
            if asked:
                self._tried(Try(asked, write_number(answer)))
        for number, answer in said.items:
            item = next((one for one in self.items if one.number == number), None)
            if item is not None and number_of(item.answer) != answer:
                self._tried(Try(item.problem, write_number(answer), number))
        told = read_misconceptions(text)
        self._seen += told
        if said.corrects and told:
            self.corrected = told[-1]

    def _sheet(self, text: str, *, own: bool) -> None:
        before, self.items, self.sheet = self.items, read_answers(text, self.items), True
        if own:
            return
        self.owes = True
        for item in newly_answered(before, self.items):
            self._tried(Try(item.problem, _plain(item.answer), item.number))

    def _tried(self, tried: Try) -> None:
        self.fresh.append(tried)
        self._seen.append(tried)

    def _look_up(self, name: str, arguments: Mapping[str, JSON], found: JSON) -> None:
        if not isinstance(found, Mapping):
            return
        if name == "MakeProblem":
            key = (
                str(arguments["component"]),
                str(arguments["kind"]),
                int(str(arguments["number"])),
            )
            self.made[key] = (str(found["problem"]), str(found["answer"]))
        elif name == "Solve":
            self._answers[str(arguments["problem"])] = str(found["answer"])
        elif name == "Check":
            tried = Try(str(arguments["problem"]), str(arguments["answer"]))
            self._check(tried, found)

    def _check(self, tried: Try, found: Mapping[str, JSON]) -> None:
        listed = found.get("explained_by")
        causes = tuple(
            tuple(str(part["misconception"]) for part in cause if isinstance(part, Mapping))
            for cause in (listed if isinstance(listed, list | tuple) else ())
            if isinstance(cause, list | tuple)
        )
        components = components_in(tried.problem)
        self._answers[tried.problem] = str(found["answer"])
        self._found[tried.problem, tried.answer] = Finding(
            found["right"] is True, str(found["answer"]), components, causes
        )


def _plain(answer: str) -> str:
    """An answer as a number in text; unchanged if it is not a number."""
    number: Fraction | None = number_of(answer)
    return answer if number is None else write_number(number)
