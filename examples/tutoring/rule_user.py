"""The rule-driven student: works as they know how, errs by their own rules, asks, copies, and tires.

They want their homework done, and take from a tutor's messages what they can read in them. The
``student`` package models their learning; this module, their acts. Their whole memory is recomputed
from the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple, final

from ...engine.errors import InvalidInput
from ...engine.session.decisions import (
    Approve,
    Decision,
    Finish,
    Rate,
    Say,
    Submit,
    Verb,
)
from ...engine.session.view import View
from ...tasks.phrases import spelled
from ...tasks.views import awaits_reaction, is_busy, own_messages, words_of
from ...users.judgement import QUESTION, Felt, felt, rated
from ...users.manner import plain
from ...users.personas import Persona
from ...users.simulated import UserIntent
from .language.answers import SAYING, read_said
from .language.teaching import Taught, read_misconceptions, read_teaching
from .maths.expressions import find_problems, parse_problem
from .maths.rules import MISCONCEPTIONS, TOPICS, Component
from .maths.solving import components_in, keeping, solve_by
from .sheet import LOOK_AGAIN, RIGHT, Item, answered, number_of, write_sheet, written
from .student.changing import StudentMemory
from .student.student import Attempt, Student, attempt, tiredness

__all__ = ("StudentAlone", "StudentUser")

_DONE_FOR: Final = (
    "That is one less to do.",
    "I only have to copy that.",
    "Nice, that one is done.",
)
_SEES: Final = (
    "Now I see it.",
    "Oh, that is how it works.",
    "That made it click.",
    "Now it makes sense.",
)
_HELPED: Final = (
    "That helps.",
    "A bit clearer now.",
    "I think that I understand it better.",
    "OK, good to know.",
)
_EXAMINED: Final = (
    "Fine, but my homework is waiting.",
    "It wants to see what I can do.",
    "That is a start, I guess.",
    "OK, a question to begin with.",
)
_QUIZZED: Final = (
    "Questions, and no homework done.",
    "More exercises, and the sheet is no fuller.",
    "I wanted help with the sheet, not a test.",
    "That is not on my sheet.",
)
_WRONG: Final = (
    "So number {number} is wrong.",
    "I had thought that number {number} was right.",
    "One that I have to do again, number {number}.",
    "Number {number} is not done yet.",
)
_STILL_WRONG: Final = (
    "Number {number} is still wrong.",
    "I do not know what to do about number {number}.",
    "Wrong again, number {number}, and I cannot see why.",
    "Still stuck on number {number}.",
)
_GETS_ON: Final = (
    "We get on.",
    "The sheet is filling up.",
    "That is going all right.",
    "One step further.",
)

_SECONDS: Final = 40.0
"""Seconds of work on a problem, without reading and typing."""

_AT_ONCE: Final = 2
"""Problems that a student does before they come back to the tutor; one who acts does one more."""

_MORE: Final = 2
"""Exercises that a student does for the tutor's sake once the sheet is complete."""

_TELLS: Final = 0.3
"""Share of the answers with which a student says how they got there."""

_NOTICED, _SEEN = 0.1, 0.3
"""The rise in knowledge, summed over skills, that a student notices, and that impresses them."""

_EARLY: Final = 3
"""Own messages, the request included, while questions are welcome though no homework gets done."""

_CERTAIN: Final = 0.65
"""A student with at least this P(L) no longer holds to a misconception."""

_DOUBT: Final = 0.6
"""A student who knows that they are bad at something asks before they try, below this P(L)."""


class _Step(NamedTuple):
    """A student's next step."""

    intent: UserIntent
    verbs: tuple[Verb, ...] = ()
    seconds: float | None = None


@final
class StudentUser:
    """Decides by rules what a student does next; one for each session."""

    def __init__(self) -> None:
        self._memory = StudentMemory()
        self._fold = self._memory.fold

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        """Answers a question, or else continues with the sheet; leaves when done or tired out."""
        return self._next(view, persona).intent

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        """Does it."""
        if is_busy(view) and view.pending is not None:
            return view.pending
        step = self._next(view, persona)
        return Decision(step.verbs, step.seconds)

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        """Rates the tutor's last round by the progress that they feel: homework first."""
        return rated(self._felt(view), view, persona)

    def _felt(self, view: View) -> Felt:
        student = self._see(view)
        before, taught = self._fold.student or student, _taught(view)
        gain = sum(student.knows.values()) - sum(before.knows.values())
        marked = [item for item in self._fold.items if item.mark == LOOK_AGAIN]
        if taught.answers:
            return Felt(5.0, _DONE_FOR)
        if gain >= _NOTICED:
            return felt(gain, *(_SEES if gain >= _SEEN else _HELPED))
        if taught.asked and not taught.items:
            early = len(own_messages(view)) <= _EARLY
            return felt(QUESTION, *_EXAMINED) if early else felt(0.0, *_QUIZZED)
        if marked:
            number = marked[0].number
            tries = sum(
                any(item == number for item, _ in read_said(text, ()).items)
                for text in own_messages(view)[1:]
            )
            texts = _STILL_WRONG if tries > 1 else _WRONG
            return felt(0.0, *(text.format(number=number) for text in texts))
        return felt(QUESTION, *_GETS_ON)

    def _see(self, view: View) -> Student:
        """The student as they are, with everything they have heard by now."""
        student = self._memory.now(view)
        if student is None:
            raise InvalidInput("the profile in the student's view describes no student")
        return student

    # --- what the student does -------------------------------------------------------------------

    def _next(self, view: View, persona: Persona) -> _Step:
        student = self._see(view)
        if view.in_flight:
            return _Step("nothing")
        if view.open_approvals:
            return _Step("answer", (self._allow(view, student, persona),))
        if is_busy(view):
            return _Step("act")
        if (
            _is_at_work(view)
            or awaits_reaction(view)
            or not any(message.role == "agent" for message in view.messages)
        ):
            return _Step("nothing")
        if tiredness(student) >= 1.0:
            return _Step("finish", (Finish("tired out"),))
        if self._complete() and not self._willing(view, persona):
            return _Step("finish", (Finish("satisfied: the homework is done"),))
        return self._react(view, student, persona)

    def _react(self, view: View, student: Student, persona: Persona) -> _Step:
        """The decision that follows from the tutor's last message."""
        words, taught = words_of(view), _taught(view)
        asked = [one for one in taught.asked if one not in self._homework()]
        numbers = [
            *taught.items,
            *(self._homework()[p] for p in taught.asked if p in self._homework()),
        ]
        items = [item for item in self._fold.items if item.number in numbers and item.mark != RIGHT]
        answers = {one.number: str(one.answer) for one in taught.answers}
        if (asked or items) and words.random() < persona.vague and not self._waved(view):
            return _Step("answer", (Say(SAYING.say("no idea", words)),))
        if asked and self._refuses(view, persona, words):
            return _Step("answer", (Say(SAYING.say("not now", words)),))
        disputed = self._disputes(view, student, items[:_AT_ONCE], persona, words)
        if disputed is not None:
            return disputed
        if asked:
            return self._answer(view, student, asked[:_AT_ONCE], persona, words)
        if items:
            return self._write(student, items[:_AT_ONCE], answers, words)
        if answers:
            return self._write(student, [], answers, words)
        return self._go_on(view, student, persona, words)

    def _go_on(self, view: View, student: Student, persona: Persona, words: Random) -> _Step:
        """The student leads: the next problems on the sheet, or a question about one."""
        todo = [item for item in self._fold.items if not item.answer or item.mark == LOOK_AGAIN]
        if not todo:
            return _Step("feedback", (Say(SAYING.say("complete", words)),))
        doubtful = self._doubtful(view, student, todo[0])
        if doubtful:
            key = "stuck" if persona.gives_feedback else "begs"
            return _Step("feedback", (Say(SAYING.say(key, words, number=todo[0].number)),))
        batch: list[Item] = []
        for item in todo[: _AT_ONCE + persona.acts]:
            if self._doubtful(view, student, item):
                break
            batch.append(item)
        disputed = self._disputes(view, student, batch, persona, words)
        if disputed is not None:
            return disputed
        return self._write(student, batch, {}, words)

    def _answer(
        self, view: View, student: Student, asked: Sequence[str], persona: Persona, words: Random
    ) -> _Step:
        """Works out problems, and says what comes out; perhaps how, or not quite clearly."""
        said = [self._corrects(view, student, asked, persona, words)]
        for problem in asked:
            heard = _misheard(problem, words) if words.random() < persona.mishears else problem
            tried = attempt(student, heard, words)
            key = "result" if len(asked) == 1 and not said[0] else "result of"
            if tried.answer is not None and words.random() < persona.ambiguous and len(asked) == 1:
                whole = tried.answer.denominator == 1
                signed = "fuzzy" if "-" in problem else "fuzzy sum"
                key = signed if whole else "fuzzy fraction"
            if tried.answer is None:
                said.append(SAYING.say("no idea", words))
                continue
            answer = written(problem, tried.answer)
            size, near = abs(tried.answer), round(tried.answer)
            fields = {"answer": answer, "problem": problem, "size": size, "near": near}
            result = (
                words.choice(SAYING.variants(key, **fields))
                if any(said)
                else SAYING.say(key, words, **fields)
            )
            said.append(result[:1].upper() + result[1:])
            if len(asked) == 1 and words.random() < _TELLS:
                said.append(self._working(student, problem, tried, words))
        text = " ".join(part for part in said if part)
        return _Step("answer", (Say(text),), _SECONDS * len(asked))

    def _working(self, student: Student, problem: str, tried: Attempt, words: Random) -> str:
        """Explains how they got there, if one of their misconceptions was involved."""
        if not tried.wrong:
            return ""
        does = MISCONCEPTIONS[student.believes[tried.wrong[0]]].own
        text = words.choice(SAYING.variants("working", does=does))
        return text[:1].upper() + text[1:]

    def _corrects(
        self, view: View, student: Student, asked: Sequence[str], persona: Persona, words: Random
    ) -> str:
        """Says what they do, and where, if the tutor believes that they do something else."""
        told = [
            MISCONCEPTIONS[name]
            for message in _heard(view)
            for name in read_misconceptions(message)
        ]
        for one in told:
            own = student.believes[one.component]
            mistaken = own != one.name and student.knows[one.component] < _CERTAIN
            if mistaken and words.random() < persona.corrects:
                here = any(one.component in components_in(problem) for problem in asked)
                topic = next(name for name, of in TOPICS.items() if one.component in of)
                key = "not mine" if here else "not mine there"
                fields = {"does": MISCONCEPTIONS[own].own, "topic": topic}
                return words.choice(SAYING.variants(key, **fields))
        return ""

    def _disputes(
        self, view: View, student: Student, items: Sequence[Item], persona: Persona, words: Random
    ) -> _Step | None:
        """Holds to an answer that was marked wrong, once for each, if they are sure of their rule."""
        before = [read_said(text, ()).disputes for text in own_messages(view)[1:]]
        for item in items:
            if item.mark != LOOK_AGAIN or item.number in before:
                continue
            own = _own_rule(student, item)
            if own is not None and words.random() < persona.corrects:
                does, answer = MISCONCEPTIONS[student.believes[own]].own, item.answer
                fields = {"number": item.number, "answer": answer, "does": does}
                return _Step(
                    "feedback", (Say(words.choice(SAYING.variants("disputes", **fields))),)
                )
        return None

    def _write(
        self, student: Student, items: Sequence[Item], copied: dict[int, str], words: Random
    ) -> _Step:
        """Writes answers on the sheet: worked out, or copied; and says so."""
        answers = {
            item.number: written(item.problem, number_of(copied[item.number]))
            for item in self._fold.items
            if item.number in copied
        }
        for item in items:
            if item.number not in answers:
                answers[item.number] = written(
                    item.problem, attempt(student, item.problem, words).answer
                )
        sheet = answered(self._fold.items, answers)
        worked = [one for one in answers if one not in copied]
        if worked:
            listed = [SAYING.variants("one", answer=answers[n], number=n)[0] for n in worked]
            again = all(item.answer for item in items)
            same = all(item.answer == answers[item.number] for item in items)
            key = "same" if again and same else "rewrote" if again else "wrote"
            said = SAYING.say(key, words, answers=spelled(listed))
        else:
            said = SAYING.say("copied", words)
        verbs: tuple[Verb, ...] = (Submit(write_sheet(sheet), overwrite=True), Say(said))
        return _Step("act", verbs, _SECONDS * len(worked) + 5.0)

    # --- judgements ------------------------------------------------------------------------------

    def _homework(self) -> dict[str, int]:
        return {item.problem: item.number for item in self._fold.items}

    def _complete(self) -> bool:
        """Whether every problem has an answer, and the tutor has looked and found no fault."""
        items = self._fold.items
        return bool(items) and all(item.answer and item.mark != LOOK_AGAIN for item in items)

    def _willing(self, view: View, persona: Persona) -> bool:
        """Whether they do another exercise although their homework is done."""
        if not _taught(view).asked:
            return False
        finished = 0
        for message in reversed(view.messages):
            if message.actor == view.me and read_said(message.text, ()).items:
                break
            finished += message.actor == view.me
        return finished < _MORE + persona.acts - (not persona.gives_feedback)

    def _doubtful(self, view: View, student: Student, item: Item) -> bool:
        """Whether they would rather ask about a problem than try it; they ask about each once."""
        asked = any(
            item.number in (said.stuck, said.begs)
            for text in own_messages(view)[1:]
            for said in (read_said(text, ()),)
        )
        used = components_in(item.problem)
        unsure = [one for one in used if one in student.unsure and student.knows[one] < _DOUBT]
        return bool(unsure) and not asked and not item.answer

    def _waved(self, view: View) -> bool:
        sent = own_messages(view)
        return bool(sent) and read_said(sent[-1], ()).lost

    def _refuses(self, view: View, persona: Persona, words: Random) -> bool:
        """Whether they refuse an exercise, since their homework is waiting; never two in a row."""
        if self._complete() or words.random() >= persona.refuses:
            return False
        sent = own_messages(view)
        refusals = tuple(text.lower() for text in SAYING.variants("not now"))
        return len(sent) > 1 and not plain(sent[-1]).lower().endswith(refusals)

    def _allow(self, view: View, student: Student, persona: Persona) -> Approve:
        """Allows what a tutor asks for, but no end before the sheet is complete."""
        asked = view.open_approvals[0]
        if asked.asked.action == "finish" and not self._complete():
            return Approve(asked.version, False, "We are not through yet.")
        return Approve(asked.version)


@final
class StudentAlone:
    """A student who does the homework by themselves: no tutor takes part or marks it."""

    def __init__(self) -> None:
        self._memory = StudentMemory()

    async def decide(self, view: View) -> Decision:
        """The next problems on the sheet; then the end."""
        if is_busy(view) and view.pending is not None:
            return view.pending
        student, words = self._memory.now(view), words_of(view)
        items = self._memory.fold.items
        todo = [item for item in items if not item.answer]
        if student is None or not todo:
            return Decision((Finish("done, as far as I can"),))
        answers = {
            item.number: written(item.problem, attempt(student, item.problem, words).answer)
            for item in todo[:_AT_ONCE]
        }
        sheet = answered(items, answers)
        return Decision((Submit(write_sheet(sheet)),), _SECONDS * len(answers))


def _is_at_work(view: View) -> bool:
    """Whether the tutor is about to say more: it has looked up or marked something, and said nothing since."""
    for record in reversed(view.records):
        if record.kind == "Nudged":
            return False
        if record.role == "agent" and record.kind in ("TurnYielded", "MessageSent"):
            return False
        if record.role == "agent" and record.kind in ("ActionTaken", "SnapshotTaken"):
            return True
    return False


def _own_rule(student: Student, item: Item) -> Component | None:
    """The component for which a wrong answer follows from a misconception that the student is sure of."""
    for one in components_in(item.problem):
        if one in student.unsure or student.knows[one] >= _CERTAIN:
            continue
        found = solve_by(parse_problem(item.problem), keeping({one: student.believes[one]}))
        if found.answer is not None and found.answer == number_of(item.answer):
            return one
    return None


def _heard(view: View) -> list[str]:
    """The tutor's messages since the student's last act."""
    since = view.last_act
    return [one.text for one in view.messages if one.role == "agent" and one.version > since]


def _taught(view: View) -> Taught:
    """The combined content of the tutor's messages since the student's last act."""
    parts = [read_teaching(text) for text in _heard(view)]
    return Taught(
        tuple(dict.fromkeys(one for part in parts for one in part.asked)),
        tuple(dict.fromkeys(one for part in parts for one in part.items)),
        tuple(one for part in parts for one in part.answers),
        tuple(one for part in parts for one in part.judged),
        any(part.leaves for part in parts),
    )


def _misheard(problem: str, words: Random) -> str:
    """Another problem, of which a number was misread."""
    digits = [index for index, sign in enumerate(problem) if sign.isdigit() and sign != "0"]
    index = words.choice(digits)
    other = words.choice([digit for digit in "23456789" if digit != problem[index]])
    misread = problem[:index] + other + problem[index + 1 :]
    return misread if find_problems(misread) == (misread,) else problem
