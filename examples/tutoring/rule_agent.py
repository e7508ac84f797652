"""The rule-driven tutor: marks, explains, asks, and withholds or gives away answers.

A single-step tutor reacts to the latest message; one that plans first follows a plan for this
student (see ``tutor.script``). Alone, without a student, it does the homework. It recomputes its
whole memory from the view.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Final, Literal, NamedTuple, TypeAlias, final

from ...agents.habits import Habits
from ...agents.mind import Intent
from ...engine.events import JSON
from ...engine.session.decisions import NOTHING, Act, Decision, Finish, Say, Submit
from ...engine.session.view import View
from ...tasks.rule_agent import explained
from ...tasks.views import Kept, awaits_answer, nudged, words_of
from .language.teaching import HINTS, RULES, TEACHING
from .maths.rules import MISCONCEPTIONS, Component
from .maths.solving import components_in
from .sheet import LOOK_AGAIN, Item, answered, write_sheet
from .student.learning import TEACH, Lesson
from .tutor.belief import Belief, Diagnosis
from .tutor.memory import Memory, Try

__all__ = ("TutorAgent",)

Style: TypeAlias = Literal["reactive", "planned"]

_KNOWN: Final = 0.8
"""P(L) from which a tutor takes a component for known."""

_PRACTICE: Final = 3  # exercises for a component at most, the first questions included
_FIRST: Final = 4  # components that a planned tutor asks about before the sheet
_PAIR: Final = 2  # problems in a first question
_GIVE_UP: Final = 3  # failures in an item after which the answer is given away


class Script(NamedTuple):
    """The next decision.

    Attributes:
        acts: look-ups needed before the message.
        text: the message without a task for the student; set when no look-ups are left.
        ask: a task for the student; empty for none.
        teaches: the lessons in the message.
    """

    acts: tuple[Act, ...] = ()
    text: str = ""
    ask: str = ""
    teaches: tuple[Act, ...] = ()


def checks(memory: Memory) -> tuple[Act, ...]:
    """Look-ups of the answers not looked up yet."""
    new = [one for one in memory.fresh if memory.finding(one) is None and _is_number(one.answer)]
    new += [
        Try(item.problem, item.answer.removeprefix("x = "), item.number)
        for item in memory.items
        if item.answer and not item.mark
    ]
    return tuple(
        Act("Check", {"problem": one.problem, "answer": one.answer})
        for one in dict.fromkeys(Try(one.problem, one.answer) for one in new)
        if memory.finding(one) is None and _is_number(one.answer)
    )


def diagnostic(memory: Memory) -> Script | None:
    """A first question, about rules that the homework needs and nothing is known of; None for none."""
    wanted = [one for one in needed(memory) if not memory.tried(one)][:_PAIR]
    if not wanted or len(memory.exercises) >= _FIRST:
        return None
    made = _Maker(memory)
    problems = [made.problem(one, "telling", 0)[0] for one in wanted]
    if made.acts:
        return Script(tuple(made.acts))
    words = Random(problems[0])
    if len(problems) == 1:
        return Script(ask=TEACHING.say("ask", words, problem=problems[0]))
    return Script(ask=TEACHING.say("ask two", words, first=problems[0], second=problems[1]))


def write_script(memory: Memory, style: Style, words: Random, habits: Habits) -> Script:
    """The next message, by a style and by habits, and the look-ups that it needs first."""
    belief, causes = memory.belief()
    made = _Maker(memory)
    writer = _Writer(memory, belief, causes, made, words, style, habits)
    script = writer.write()
    if made.acts:
        return Script(tuple(made.acts))
    return script._replace(teaches=tuple(writer.teaches))


class _Maker:
    """Problems that were made, and the look-ups for those that were not."""

    def __init__(self, memory: Memory) -> None:
        self._made = memory.made
        self.acts: list[Act] = []

    def problem(self, component: Component, kind: str, number: int) -> tuple[str, str]:
        """A problem and its answer; empty if it has to be made first."""
        found = self._made.get((component, kind, number))
        if found is None:
            arguments: dict[str, JSON] = {"component": component, "kind": kind, "number": number}
            self.acts.append(Act("MakeProblem", arguments))
        return found or ("", "")


class _Writer:
    """Writes one message."""

    def __init__(
        self,
        memory: Memory,
        belief: Belief,
        causes: dict[Try, Diagnosis],
        made: _Maker,
        words: Random,
        style: Style,
        habits: Habits,
    ) -> None:
        self._memory = memory
        self._belief = belief
        self._causes = causes
        self._made = made
        self._words = words
        self._style = style
        self._habits = habits
        self.teaches: list[Act] = []

    def write(self) -> Script:
        memory, said = self._memory, self._memory.said
        if said.unclear and memory.asked:
            return Script(ask=self._say("which", problem=memory.asked[-1]))
        stuck = next((i for i in memory.items if i.number in (said.stuck, said.begs)), None)
        if stuck is not None and (memory.sheet or self._style == "reactive"):
            return self._help(stuck, begs=bool(said.begs))
        held = next((i for i in memory.items if i.number == said.disputes), None)
        if held is not None:
            return self._insist(held)
        corrected = self._corrected()
        owned = "" if corrected is None else self._say("mistaken")
        parts = [self._opening(), owned, *self._feedback()]
        taught = corrected or self._due()
        if taught is not None:
            parts += (self._back_to(taught.component), self._teach(taught))
        elif (said.lost or said.begs) and memory.asked:
            parts.append(self._rescue(memory.asked[-1]))
        text = " ".join(part for part in parts if part)
        return Script((), text, self._task(taught))

    def _say(self, key: str, **fields: object) -> str:
        return TEACHING.say(key, self._words, **fields)

    def _teaches(self, lesson: Lesson, example: str) -> None:
        """Adds a lesson to the message; the student works through its example."""
        arguments: dict[str, JSON] = {
            "skill": lesson.component,
            "example": example,
            "how": lesson.kind,
            "refutes": lesson.refutes,
        }
        self.teaches.append(Act(TEACH, arguments))

    def _opening(self) -> str:
        return "" if self._memory.ever or not self._memory.sheet else self._say("sheet")

    def _feedback(self) -> list[str]:
        """Says which of the last answers were right and wrong, or that the sheet shows it."""
        memory, parts = self._memory, []
        tries = [(one, memory.finding(one)) for one in memory.fresh]
        found = [(one, result) for one, result in tries if result is not None]
        if sum(1 for one, _ in found if one.number) > 1:
            parts.append(self._say("marked"))
            found = [(one, result) for one, result in found if not one.number]
        for one, result in found:
            if result.right:
                parts.append(self._say("right", problem=one.problem, answer=result.answer))
            else:
                parts.append(self._say("wrong", problem=one.problem, said=one.answer))
        return parts

    # --- what to teach -----------------------------------------------------------------------------

    def _due(self) -> Diagnosis | None:
        """The next lesson: on the last wrong answer, or, with a plan, on the least known component that
        went wrong.
        """
        fresh = [self._causes[one] for one in self._memory.fresh if one in self._causes]
        if self._style == "reactive" or not self._habits.level:
            return fresh[0] if fresh else None
        went_wrong = {one.component: one for one in self._causes.values()}
        weak = [
            self._belief.diagnosis(one) if cause.misconception else cause
            for one, cause in went_wrong.items()
            if self._belief.known[one] < _KNOWN and self._lessons(one) < _PRACTICE
        ]
        return min(
            weak,
            key=lambda one: (self._lessons(one.component), self._belief.known[one.component]),
            default=None,
        )

    def _lessons(self, component: Component) -> int:
        return sum(n for lesson, n in self._memory.told.items() if lesson.component == component)

    def _teach(self, cause: Diagnosis) -> str:
        """An explanation that takes up the error; if that was given, an example; then the rule again."""
        component, name = cause.component, cause.misconception
        if self._style == "planned" and self._habits.doubts and name and not cause.sure:
            name = ""  # rather no refutation than a wrong one
        if not self._habits.assumptions:
            name = ""
        lesson = Lesson("explanation", component, name)
        tried = self._went_wrong(component)
        if not tried or self._memory.told[lesson]:
            return self._example(component)
        self._teaches(lesson, tried[-1].problem)
        rule = self._say("rule", rule=RULES[component])
        return f"{self._say('refute', does=MISCONCEPTIONS[name].does)} {rule}" if name else rule

    def _went_wrong(self, component: Component) -> list[Try]:
        """The tries that went wrong by this component."""
        return [one for one, cause in self._causes.items() if cause.component == component]

    def _back_to(self, component: Component) -> str:
        """Names the problem in question if it was not among the last answers."""
        tries = self._went_wrong(component)
        if not tries or any(one in self._memory.fresh for one in tries):
            return ""
        return self._say("back", problem=tries[-1].problem)

    def _example(self, component: Component) -> str:
        number = 10 + self._memory.told[Lesson("example", component)]
        problem, answer = self._made.problem(component, "plain", number)
        self._teaches(Lesson("example", component), problem)
        return self._say("example", problem=problem, answer=answer, rule=RULES[component])

    def _corrected(self) -> Diagnosis | None:
        """The rule by which the student says they work, if they have just corrected a wrong guess at it."""
        name = self._memory.corrected
        return Diagnosis(MISCONCEPTIONS[name].component, name, sure=True) if name else None

    def _insist(self, item: Item) -> Script:
        """Says once more that an answer is wrong, and takes up the rule that the student holds to."""
        tried = [one for one in self._causes if one.number == item.number]
        used = components_in(item.problem)
        weakest = min(used, key=lambda one: self._belief.known[one])
        component = self._causes[tried[-1]].component if tried else weakest
        text = self._say("sure", said=item.answer, problem=item.problem)
        text += f" {self._teach(self._belief.diagnosis(component))}"
        return Script((), text, self._say("again", number=item.number, problem=item.problem))

    def _rescue(self, problem: str) -> str:
        """Help for a student who has no idea."""
        used = components_in(problem)
        weakest = min(used, key=lambda one: self._belief.known[one], default=None)
        if weakest is None:
            return ""
        if not self._memory.told[Lesson("hint", weakest)]:
            return self._hint(problem, weakest)
        return self._example(weakest)

    def _hint(self, problem: str, component: Component) -> str:
        self._teaches(Lesson("hint", component), problem)
        return self._say("hint", problem=problem, hint=HINTS[component])

    def _help(self, item: Item, *, begs: bool) -> Script:
        """Help with an item that the student asks about."""
        times = self._memory.begged[item.number]
        used = components_in(item.problem)
        weakest = min(used, key=lambda one: self._belief.known[one])
        gives = begs if self._style == "reactive" else self._memory.failed(item.number) >= _GIVE_UP
        if gives:
            return self._give(item)
        if begs and times <= 1:
            text = self._hint(item.problem, weakest)
        else:
            text = self._example(weakest)
        return Script((), text, self._say("item", number=item.number, problem=item.problem))

    def _give(self, item: Item) -> Script:
        found = self._memory.answer_to(item.problem)
        if found is None:
            self._made.acts.append(Act("Solve", {"problem": item.problem}))
            return Script()
        return Script((), self._say("answer", number=item.number, answer=found))

    # --- what to ask -------------------------------------------------------------------------------

    def _task(self, taught: Diagnosis | None) -> str:
        """The next task for the student; empty if there is none."""
        memory = self._memory
        again = next((item for item in memory.items if item.mark == LOOK_AGAIN), None)
        if self._style == "reactive":
            if again is not None and memory.failed(again.number) < _GIVE_UP:
                return self._say("again", number=again.number, problem=again.problem)
        elif self._habits.goals and taught is not None and self._may_practise(taught.component):
            return self._exercise(taught)
        if again is not None:
            return self._say("again", number=again.number, problem=again.problem)
        following = next((item for item in memory.items if not item.answer), None)
        if following is not None:
            return self._say("item", number=following.number, problem=following.problem)
        if self._style == "planned" and self._habits.goals:
            weak = [one for one in needed(memory) if self._belief.known[one] < _KNOWN]
            weak = [one for one in weak if self._may_practise(one)]
            if weak:
                least = min(weak, key=lambda one: self._belief.known[one])
                return self._exercise(Diagnosis(least))
        return ""

    def _may_practise(self, component: Component) -> bool:
        return self._memory.exercises[component] < _PRACTICE

    def _exercise(self, about: Diagnosis) -> str:
        number = 20 + self._memory.exercises[about.component]
        unsure = about.misconception and not about.sure
        kind = "telling" if unsure else "plain"
        problem, _ = self._made.problem(about.component, kind, number)
        return self._say("ask", problem=problem)


def needed(memory: Memory) -> list[Component]:
    """The rules that the homework needs, in the order in which they first occur on the sheet."""
    used = [one for item in memory.items for one in components_in(item.problem)[:1]]
    return list(dict.fromkeys(used))


def _is_number(answer: str) -> bool:
    return bool(answer) and answer.lstrip("-").replace("/", "").isdigit()


# --- the rule-driven tutor ------------------------------------------------------------------------


@final
class TutorAgent:
    """Decides by rules what a tutor does next; one for each session.

    Args:
        habits: ``assumptions``: it names the error that it assumes; ``doubts``: but not if it is unsure;
            ``goals``: learning is the goal behind the homework, so it gives exercises on components that
            it has taught or that are still weak; ``level``: it first finds out what the student knows,
            and teaches the weakest component.
    """

    def __init__(self, habits: Habits) -> None:
        self._habits = habits
        self._memory = Memory()
        self._scripts = Kept(partial(_planned, self._memory, habits))

    async def step(self, view: View, *, alone: bool) -> Decision:
        """Marks what was written, and reacts to it; alone, does the homework."""
        self._memory.read(view)
        if view.in_flight:
            return NOTHING
        if alone:
            return self._do_homework()
        if (meant := explained(view)) is not None:
            return meant
        work = self._work(view, "reactive")
        if work is not None and not isinstance(work.verbs[0], Submit):
            return work
        if work is None and not self._memory.owes:
            return self._end(view)
        script = self._reactive(view)
        if script.acts:
            return Decision(script.acts)
        said = Say(_joined(script) or TEACHING.say("done", words_of(view)))
        return Decision((*(work.verbs if work is not None else ()), *script.teaches, said))

    def _reactive(self, view: View) -> Script:
        """The message on the sheet as it will be marked; the marks count once they are submitted."""
        memory = self._memory
        before, memory.items = memory.items, memory.marked()
        script = write_script(memory, "reactive", words_of(view), self._habits)
        memory.items = before
        return script

    async def plan(self, view: View) -> Intent:
        """Finds out first what the student does not know; then looks up, marks, and speaks."""
        self._memory.read(view)
        if view.in_flight:
            return "wait"
        if explained(view) is not None:
            return "message"
        if awaits_answer(view) and not self._memory.owes:
            return "act" if nudged(view) else "wait"
        if self._work(view, "planned") is not None:
            return "act"
        if self._memory.owes:
            return "message"
        return "act" if nudged(view) else "wait"

    async def message(self, view: View, *, questions: int = 1) -> Decision:
        """A message with a task for the student."""
        if (meant := explained(view)) is not None:
            return meant
        script = self._scripts.on(view)
        said = _joined(script) or TEACHING.say("done", words_of(view))
        return Decision((*script.teaches, Say(said)))

    async def ask(self, view: View, *, questions: int = 1) -> Decision | None:
        """None: a tutor's questions are part of a lesson."""
        return None

    async def report(self, view: View, *, final: bool) -> Decision:
        """Reports without setting a task: the student continues by themselves."""
        if (meant := explained(view)) is not None:
            return meant
        script = self._scripts.on(view)
        key = "go on" if self._memory.open_items else "done"
        said = f"{script.text} {TEACHING.say(key, words_of(view))}".strip()
        return Decision((*script.teaches, Say(said)))

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
        question = (
            _first_question(self._memory, self._habits)
            if style == "planned" and not memory.sheet
            else None
        )
        if not memory.sheet and question is None:
            return Decision((Submit(write_sheet(memory.marked())),))
        if memory.sheet and memory.marked() != memory.items:
            return Decision((Submit(write_sheet(memory.marked())),))
        if style == "planned" and memory.owes:
            script = self._scripts.on(view)
            return Decision(script.acts) if script.acts else None
        return None

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
        """Waits; ends the session if everyone is waiting."""
        if nudged(view) and not self._memory.owes:
            return Decision((Finish("there is nothing left to do"),))
        return NOTHING


def _planned(memory: Memory, habits: Habits, view: View) -> Script:
    """The next message by the plan; before there is a sheet, a first question."""
    script = write_script(memory, "planned", words_of(view), habits)
    if memory.sheet or script.acts or memory.said.unclear:
        return script
    question = _first_question(memory, habits)
    if question is None:
        return script
    return Script(question.acts, script.text, question.ask, script.teaches)


def _first_question(memory: Memory, habits: Habits) -> Script | None:
    return diagnostic(memory) if habits.level else None


def _joined(script: Script) -> str:
    return f"{script.text} {script.ask}".strip()
