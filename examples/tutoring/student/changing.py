"""How a student's profile changes with what they take in between acts, for students on rules and on models."""

from __future__ import annotations

from typing import Final, final

from ....engine.session.decisions import ChangeProfile
from ....engine.session.view import View
from ....tasks.phrases import spelled
from ..maths.rules import Component
from ..maths.solving import components_in
from .fold import StudentFold
from .student import Student, profile_of

__all__ = ("StudentChanging", "StudentMemory")

_NAMED: Final = 3  # components that are named in the reason of a change


@final
class StudentMemory:
    """The session in a student's own view, read once.

    Attributes:
        fold: the source of the changes.
    """

    def __init__(self) -> None:
        self.fold = StudentFold()
        self._fed = 0
        self._now: Student | None = None

    def now(self, view: View) -> Student | None:
        """The student with all that they have seen by now; None if the view does not describe one."""
        fresh = view.records[self._fed :]
        if fresh:
            for record in fresh:
                self.fold.feed(record)
            self._fed = len(view.records)
            self._now = self.fold.now()
        return self._now


@final
class StudentChanging:
    """Says what a student has learned since their profile last changed; one for each session."""

    def __init__(self) -> None:
        self._memory = StudentMemory()
        self._topics: tuple[Component, ...] = ()

    def __call__(self, view: View) -> ChangeProfile | None:
        """The current profile; None if nothing was learned."""
        now, before = self._memory.now(view), self._memory.fold.student
        if now is None or before is None or now.knows == before.knows:
            return None
        if not self._topics:
            used = [c for item in self._memory.fold.items for c in components_in(item.problem)]
            self._topics = tuple(dict.fromkeys(used))
        gains = {one: now.knows[one] - before.knows[one] for one in now.knows}
        best = sorted((one for one in gains if gains[one] > 0.0), key=lambda one: -gains[one])
        reason = f"learned about {spelled(best[:_NAMED])}"
        return ChangeProfile(profile_of(now, self._topics), reason)
