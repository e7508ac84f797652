"""How much a student learns from messages and attempts: P(T) of knowledge tracing, by kind of lesson.

A lesson about a component moves P(L) by ``P(L) += (1 - P(L)) * T``. Seven opportunities with feedback
are typical for mastery (Koedinger et al. 2023), which is T of about 0.15 for practice alone; help may
be worth more or less. The directions come from the literature, the sizes are our choice:

- an answer teaches nothing (Bastani et al. 2025: pupils who got answers did worse afterwards);
- a hint makes a next attempt possible, and teaches little by itself (Aleven & Koedinger 2000);
- an explanation that takes up the very error that was made teaches most (refutation: Tippett 2010), and
  one that refutes an error that was not made teaches less than a plain one;
- a worked example helps those who do not know yet (Sweller & Cooper 1985; Kalyuga et al. 2003);
- all of it works better after the student's own failure than before any try (VanLehn et al. 2003;
  Schwartz & Bransford 1998), and less well in a long message (cognitive load: Sweller 1988), when
  repeated, or with a tired student.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..maths.rules import MISCONCEPTIONS, Component
from ..maths.solving import components_in
from .student import Student, tiredness

__all__ = ("TEACH", "Lesson", "LessonKind", "Teach", "lesson_of", "practise", "take_in")

LessonKind: TypeAlias = Literal["right", "wrong", "hint", "explanation", "example", "answer"]
"""A tutor's treatment of a component; ``right`` and ``wrong`` are feedback on an attempt."""

_T: Final[Mapping[str, float]] = {
    "answer": 0.0,
    "right": 0.24,
    "wrong": 0.08,
    "hint": 0.10,
    "explanation": 0.30,
    "example": 0.35,
    "refutation": 0.60,
    "strange refutation": 0.12,
}
"""P(T) of a lesson, for a rested student of average pace after an unsuccessful try."""

_UNTRIED: Final = 0.5
"""Factor for what is taught before the student has found out that they need it."""

_AGAIN: Final = 0.6
"""Factor for each time that the same was said before."""

_LONG: Final = 90
"""Words of a message up to which all of it is taken in."""

_DULL: Final = 0.4
"""Share of P(T) that is lost to a student who is tired out."""

_READING: Final = 150.0
"""Words that take as much energy to read as an attempt."""


class Lesson(NamedTuple):
    """Something taught about a component.

    Attributes:
        kind: the kind of lesson.
        component: about which.
        refutes: the misconception that an explanation takes up, if it does.
    """

    kind: LessonKind
    component: Component
    refutes: str = ""


class Teach(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Teach a rule by an example that the student works through. Only this act teaches; what is said
    next to it is for the student to read.
    """

    skill: Annotated[Component, msgspec.Meta(description="The rule.")]
    example: Annotated[
        str, msgspec.Meta(description="A problem that takes the rule.", examples=["7 - (-2)"])
    ]
    how: Annotated[
        Literal["explanation", "example", "hint"],
        msgspec.Meta(
            description="explanation: what went wrong, and the rule; example: the problem solved step by "
            "step; hint: a question that leads on."
        ),
    ] = "explanation"
    refutes: Annotated[
        str,
        msgspec.Meta(description="The misconception that an explanation takes up, by its name."),
    ] = ""


TEACH: Final = Teach.__name__
"""Name of the act by which a tutor teaches."""


def lesson_of(arguments: Mapping[str, JSON]) -> Lesson:
    """The lesson in an act of teaching.

    Raises:
        InvalidInput: there is no such rule or misconception, or the example does not take the rule.
    """
    try:
        taught = msgspec.convert(arguments, Teach)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"Teach(skill, example, how, refutes): {error}") from None
    if taught.skill not in components_in(taught.example):
        raise InvalidInput(
            f"{taught.example!r} is not an example of {taught.skill}: take a problem that needs the rule"
        )
    if taught.refutes:
        known = [name for name, one in MISCONCEPTIONS.items() if one.component == taught.skill]
        if taught.how != "explanation" or taught.refutes not in known:
            raise InvalidInput(
                f"{taught.refutes!r} cannot be refuted here: an explanation of {taught.skill} takes up "
                f"one of {', '.join(known)}"
            )
    return Lesson(taught.how, taught.skill, taught.refutes)


def practise(student: Student, effort: float = 1.0) -> Student:
    """The student after some work, which tires them; whether it was right is not known yet."""
    return msgspec.structs.replace(student, spent=round(student.spent + effort, 3))


def take_in(student: Student, lessons: Sequence[Lesson], words: int) -> Student:
    """The student after a message with the given lessons and number of words."""
    knows, told = dict(student.knows), dict(student.told)
    erred = list(student.erred)
    taught = {lesson.component for lesson in lessons if lesson.kind not in ("right", "wrong")}
    load = max(1, len(taught)) * max(1.0, words / _LONG)
    awake = 1.0 - _DULL * tiredness(student)
    for lesson in lessons:
        component = lesson.component
        if lesson.kind == "wrong" and component not in erred:
            erred.append(component)
        effect = _effect(student, lesson) * student.pace * awake
        if lesson.kind not in ("right", "wrong"):
            effect *= 1.0 if component in erred else _UNTRIED
            thing = f"{lesson.kind}/{component}/{lesson.refutes}"
            effect *= _AGAIN ** told.get(thing, 0) / load
            told[thing] = told.get(thing, 0) + 1
        known = knows[component]
        knows[component] = round(known + (1.0 - known) * min(effect, 1.0), 4)
    return msgspec.structs.replace(
        student,
        knows=knows,
        told=told,
        erred=tuple(erred),
        spent=round(student.spent + words / _READING, 3),
    )


def _effect(student: Student, lesson: Lesson) -> float:
    if lesson.kind != "explanation" or not lesson.refutes:
        return _T[lesson.kind]
    own = student.believes[lesson.component] == lesson.refutes
    return _T["refutation" if own else "strange refutation"]
