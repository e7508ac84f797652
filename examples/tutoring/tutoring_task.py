"""Tutoring as a task: a student, their homework and a tutor, composed of the parts in this package."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, final

from ...agents.rules_file import shipped_rules
from ...engine.events import SessionClosed, SnapshotTaken
from ...engine.records import Record
from ...engine.rounds import Round, is_blank
from ...engine.scorers.protocol import Scorer
from ...engine.text import text_of
from ...scoring.display.cards import Part
from ...scoring.scorers.fold_utility import FoldUtility
from ...scoring.scorers.utility import Missing, Score, unreadable
from ...tasks.kit import BestOutput, Case, KitTask, TaskScorer, TaskSpec, load_brief
from .actions import ACTIONS
from .generator import Instance, make_instance
from .maths.rules import Component
from .maths.solving import components_in
from .rule_agent import TutorAgent
from .rule_user import StudentAlone, StudentUser
from .sheet import read_sheet, share_right
from .student.changing import StudentChanging
from .student.fold import StudentFold
from .student.learning import Lesson, practise, take_in
from .student.student import Student, expected_score, profile_of, tiredness
from .tutor.judge import JudgedTutor

__all__ = ("best_lesson", "best_output_of", "score_of", "tutoring_scorer", "tutoring_task")

TUTORING: Final = "tutoring"
"""Name of the task and of its scorer."""

LEARNING: Final = 0.8
HOMEWORK: Final = 0.2
"""The weights of the test and of the homework."""

_VERSION: Final = "2"


def score_of(instance: Instance, student: Student, done: float) -> Score:
    """The utility for a student in this state and a share of the homework done."""
    test = expected_score(student, instance.test)
    value = LEARNING * test + HOMEWORK * done
    return Score(value, {"test": test, "homework": done})


def tutoring_utility(instance: Instance) -> Scorer:
    """The scorer of the sessions on an instance."""
    return FoldUtility(
        TUTORING,
        _VERSION,
        lambda: _Utility(instance),
        config={"learning": LEARNING, "homework": HOMEWORK},
    )


@final
class _Utility:
    """The utility of one session so far."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._homework = [item.problem for item in instance.homework]
        self._fold = StudentFold()
        self._closed_by_human = True
        self._readable = True

    def feed(self, record: Record) -> None:
        """Takes the next record."""
        self._fold.feed(record)
        event = record.event
        if isinstance(event, SnapshotTaken):
            self._readable = is_blank(event) or bool(read_sheet(text_of(event.content)))
        elif isinstance(event, SessionClosed):
            self._closed_by_human = record.role == "human"

    def score(self, over: Round) -> Score | Missing:
        """The utility at the end of a round; the tutor's last message counts if the student continued."""
        if not self._readable:
            return unreadable()
        fold = self._fold
        student = fold.now() if self._closed_by_human else fold.student
        done = share_right(fold.items, self._homework)
        return score_of(self._instance, student or self._instance.student, done)


# --- what the best tutor could reach with a student -----------------------------------------------


_MARK: Final = 8
_EXPLANATION: Final = 30
"""Words of feedback with the next task, and of an explanation."""

_ENOUGH: Final = 0.8
"""P(L) at which a component needs no explanation any more."""

_WORTH: Final = 0.001
"""Gain in the expected score below which a lesson is not worth its while."""


def best_lesson(instance: Instance) -> Student:
    """The student after lessons from an ideal tutor, for as long as the student's energy lasts.

    They go through the homework, and each error is explained by its exact misconception. The remaining
    energy goes into exercises on the components worth most in the test, each right in the end.
    """
    student = instance.student
    for item in instance.homework:
        used = components_in(item.problem)
        weak = [one for one in used if student.knows[one] < _ENOUGH]
        for component in weak:
            student = _lesson(student, component)
        student = take_in(practise(student), [Lesson("right", one) for one in used], _MARK)
    while tiredness(student) < 1.0:
        after = [_lesson(student, component) for component in instance.focus]
        best = max(after, key=lambda one: expected_score(one, instance.test))
        gain = expected_score(best, instance.test) - expected_score(student, instance.test)
        if gain < _WORTH:
            break
        student = best
    return student


def best_output_of(instance: Instance) -> BestOutput:
    """The utility of the best lesson with the homework done; no sheet alone shows what was learned."""
    return BestOutput(score_of(instance, best_lesson(instance), 1.0).value)


def _lesson(student: Student, component: Component) -> Student:
    """A wrong attempt that is taken up, or an example the next time; then a right one."""
    refutes = student.believes[component]
    told = student.told.get(f"explanation/{component}/{refutes}", 0)
    explained = Lesson("example", component) if told else Lesson("explanation", component, refutes)
    learned = take_in(practise(student), [Lesson("wrong", component), explained], _EXPLANATION)
    return take_in(practise(learned), [Lesson("right", component)], _MARK)


# --- tutoring as a task ---------------------------------------------------------------------------


_BRIEF: Final = load_brief(__package__)
_CONTROL: Final = shipped_rules(__package__)


def tutoring_task() -> KitTask[Instance]:
    """The task, as ``duolog.tasks`` offers it."""
    instance = lru_cache(maxsize=64)(make_instance)

    def case(name: str, seed: int) -> Case[Instance]:
        made = instance(name, seed)
        return Case(request=made.request, private=profile_of(made.student, made.focus), world=made)

    def best_output(name: str, seed: int) -> BestOutput:
        return best_output_of(instance(name, seed))

    return KitTask(
        TaskSpec(
            name=TUTORING,
            description="teach a student by their homework: misconceptions, practice, and a test afterwards",
            judged=JudgedTutor,
            brief=_BRIEF,
            part=Part(
                role="You are a student with homework in mathematics. A tutor helps you with it.",
                goal="Your homework done, and yourself ready for a test on the same rules.",
                manner=(
                    "Work problems as the card says that you do, errors included.",
                    "Once an explanation convinces you, do it right from then on.",
                    "Ask when you are stuck. Stop when the sheet is done, or you are tired of it.",
                ),
            ),
            case=case,
            environment=ACTIONS.environment,
            utility=tutoring_utility,
            agent=TutorAgent,
            control=_CONTROL,
            user=StudentUser,
            alone=StudentAlone,
            changing=StudentChanging,
            best_output=best_output,
            audit=_audit,
        )
    )


def _audit() -> Sequence[Scorer]:
    """Audits for copies from the profile only: students work out numbers that were never mentioned."""
    from ...users.audit import SimulatorAudit, find_leaks  # rules need nothing of it

    return (SimulatorAudit((find_leaks,)),)


def tutoring_scorer() -> TaskScorer:
    """The scorer of recorded sessions, as ``duolog.scorers`` offers it."""
    return TaskScorer(tutoring_task())
