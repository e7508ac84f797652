"""The rule-driven tutor: marks, explains, asks, and keeps or gives away answers, by what it reads.

In a single step it reacts to what is in front of it; where it plans first, it follows a plan for this
student: see ``tutor.script``. Alone, without a student, it does the homework. Its whole memory is
recomputed from the view.
"""

from __future__ import annotations

from typing import final

from ...agents.habits import Habits
from ...agents.mind import Intent
from ...engine.session.decisions import NOTHING, Act, Decision, Finish, Say, Submit
from ...engine.session.view import View
from ..kit.views import awaits_answer, nudged, words_of
from .language.teaching import TEACHING
from .sheet import answered, write_sheet
from .tutor.memory import Memory
from .tutor.script import Script, Style, checks, diagnostic, needed, write_script

__all__ = ("TutorAgent",)


@final
class TutorAgent:
    """What a tutor does next, by rules; one for each session.

    Args:
        habits: ``assumptions``: it says what it takes the student to do wrong; ``doubts``: but not where
            it is unsure of that; ``goals``: learning is the goal behind the homework, so it has what it has
            taught, and what is still weak, practised by exercises; ``level``: it finds out first what the student knows, and teaches what is weakest.
    """

    def __init__(self, habits: Habits) -> None:
        self._habits = habits
        self._memory = Memory()

    async def step(self, view: View, *, alone: bool) -> Decision:
        """Marks what was written, and reacts to it; alone, does the homework."""
        self._memory.read(view)
        if view.in_flight:
            return NOTHING
        if alone:
            return self._do_homework()
        work = self._work(view, "reactive")
        if work is not None and not isinstance(work.verbs[0], Submit):
            return work
        if work is None and not self._memory.owes:
            return self._end(view)
        if work is not None:
            self._memory.items = self._memory.marked()
        script = write_script(self._memory, "reactive", words_of(view), self._habits)
        if script.acts:
            return Decision(script.acts)
        said = Say(_joined(script) or TEACHING.say("done", words_of(view)))
        return Decision((*(work.verbs if work is not None else ()), said))

    async def plan(self, view: View) -> Intent:
        """Finds out first what the student does not know; then looks up, marks, and speaks."""
        self._memory.read(view)
        if view.in_flight:
            return "wait"
        if awaits_answer(view) and not self._memory.owes:
            return "act" if nudged(view) else "wait"
        if self._work(view, "planned") is not None:
            return "act"
        if self._memory.owes:
            return "message"
        return "act" if nudged(view) else "wait"

    async def message(self, view: View) -> Decision:
        """What there is to say, with a task for the student."""
        script = self._script(view)
        said = _joined(script) or TEACHING.say("done", words_of(view))
        return Decision((Say(said),))

    async def report(self, view: View, *, final: bool) -> Decision:
        """What there is to say, and no task: the student goes on by themselves."""
        script = self._script(view)
        key = "go on" if self._memory.open_items else "done"
        return Decision((Say(f"{script.text} {TEACHING.say(key, words_of(view))}".strip()),))

    async def act(self, view: View) -> Decision:
        """Look-ups, then the sheet with its marks."""
        work = self._work(view, "planned")
        if work is not None:
            return work
        if not self._memory.sheet:
            return Decision((Submit(write_sheet(self._memory.items)),))
        return self._end(view)

    def estimate(self, view: View) -> float | None:
        """How likely the student knows what the homework needs, by their answers."""
        self._memory.read(view)
        known = self._memory.belief()[0].known
        wanted = needed(self._memory)
        return sum(known[one] for one in wanted) / max(len(wanted), 1)

    def _work(self, view: View, style: Style) -> Decision | None:
        """The look-ups to make, or the sheet to submit; None if there is nothing to do."""
        memory = self._memory
        looked_up = checks(memory)
        if looked_up:
            return Decision(looked_up)
        question = self._first_question() if style == "planned" and not memory.sheet else None
        if not memory.sheet and question is None:
            return Decision((Submit(write_sheet(memory.marked())),))
        if memory.sheet and memory.marked() != memory.items:
            return Decision((Submit(write_sheet(memory.marked())),))
        if style == "planned" and memory.owes:
            script = self._script(view)
            return Decision(script.acts) if script.acts else None
        return None

    def _script(self, view: View) -> Script:
        """What to say by the plan: a first question before there is a sheet."""
        memory = self._memory
        script = write_script(memory, "planned", words_of(view), self._habits)
        if memory.sheet or script.acts or memory.said.unclear:
            return script
        question = self._first_question()
        if question is None:
            return script
        return Script(question.acts, script.text, question.ask)

    def _first_question(self) -> Script | None:
        return diagnostic(self._memory) if self._habits.level else None

    def _do_homework(self) -> Decision:
        """Solves what is set, and writes it down."""
        memory = self._memory
        answers = {item.number: memory.answer_to(item.problem) for item in memory.items}
        missing = [item for item in memory.items if answers[item.number] is None]
        if missing:
            return Decision(tuple(Act("Solve", {"problem": item.problem}) for item in missing))
        if memory.sheet:
            return Decision((Finish("the homework is done"),))
        found = {number: answer for number, answer in answers.items() if answer is not None}
        return Decision((Submit(write_sheet(answered(memory.items, found))),))

    def _end(self, view: View) -> Decision:
        """Waits; ends the session where everybody does."""
        if nudged(view) and not self._memory.owes:
            return Decision((Finish("there is nothing left to do"),))
        return NOTHING


def _joined(script: Script) -> str:
    return f"{script.text} {script.ask}".strip()
