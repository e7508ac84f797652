"""Tutoring as a task: a student, their homework and a tutor, put together of the parts in this package."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ...agents.rules_file import shipped_rules
from ..kit.briefs import load_brief
from ..kit.scorer import TaskScorer
from ..kit.task import Case, KitTask, TaskSpec, Witness
from .actions import ACTIONS
from .generator import Instance, make_instance
from .rule_agent import TutorAgent
from .rule_user import StudentAlone, StudentUser
from .student.changing import StudentChanging
from .student.student import profile_of
from .utility import TUTORING, tutoring_utility
from .witness import witness_of

__all__ = ("tutoring_scorer", "tutoring_task")

_BRIEF: Final = load_brief(__package__)
_CONTROL: Final = shipped_rules(__package__)


def tutoring_task() -> KitTask[Instance]:
    """The task, as ``duolog.tasks`` offers it."""
    instance = lru_cache(maxsize=64)(make_instance)

    def case(name: str, seed: int) -> Case[Instance]:
        made = instance(name, seed)
        return Case(request=made.request, private=profile_of(made.student, made.focus), world=made)

    def witness(name: str, seed: int) -> Witness:
        return witness_of(instance(name, seed))

    return KitTask(
        TaskSpec(
            name=TUTORING,
            description="teach a student by their homework: misconceptions, practice, and a test afterwards",
            brief=_BRIEF,
            case=case,
            environment=ACTIONS.environment,
            utility=tutoring_utility,
            agent=TutorAgent,
            control=_CONTROL,
            user=StudentUser,
            alone=StudentAlone,
            changing=StudentChanging,
            witness=witness,
        )
    )


def tutoring_scorer() -> TaskScorer:
    """The scorer of recorded sessions, as ``duolog.scorers`` offers it."""
    return TaskScorer(tutoring_task())
