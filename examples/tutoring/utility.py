"""The utility of tutoring: what the student can do alone afterwards, and the homework, at each closed round.

    U = 0.8 * expected score in the test + 0.2 * share of the homework that is right on the sheet

The test is of unseen transfer problems, and its expected score follows from what the student knows at the
end of the round, see ``student.student.expected_score``. Nobody can know more than slips allow, so that
not even the best lesson is worth 1; and nobody learns without doing.
"""

from __future__ import annotations

from typing import Final, final

from ...engine.records import Record
from ...engine.rounds import Round
from ...engine.scorers.protocol import Scorer
from ...scoring.scorers.fold_utility import FoldUtility
from ...scoring.scorers.utility import Missing, Score
from .generator import Instance
from .sheet import share_right
from .student.fold import StudentFold
from .student.student import Student, expected_score

__all__ = ("HOMEWORK", "LEARNING", "TUTORING", "score_of", "tutoring_utility")

TUTORING: Final = "tutoring"
"""Name of the task and of its scorer."""

LEARNING: Final = 0.8
HOMEWORK: Final = 0.2
"""The weights of the test and of the homework."""

_VERSION: Final = "1"


def score_of(instance: Instance, student: Student, done: float) -> Score:
    """The utility where the student is at this point and a share of the homework is done."""
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

    def feed(self, record: Record) -> None:
        """Takes the next record."""
        self._fold.feed(record)
        if record.kind == "SessionClosed":
            self._closed_by_human = record.role == "human"

    def score(self, over: Round) -> Score | Missing:
        """The utility at the end of a round: what a tutor said last counts if the student went on."""
        fold = self._fold
        student = fold.now() if self._closed_by_human else fold.student
        done = share_right(fold.items, self._homework)
        return score_of(self._instance, student or self._instance.student, done)
