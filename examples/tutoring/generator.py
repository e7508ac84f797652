"""Invents students with their homework and the test that is to come, from a seed: as many as wanted."""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from ...tasks.kit import index_of
from ...tasks.phrases import Phrases
from .maths.making import make_plain, make_transfer
from .maths.rules import COMPONENTS, TOPICS, Component, misconceptions_of
from .sheet import Item
from .student.student import Student

__all__ = ("Instance", "make_instance")

_TOPIC: Final = 2  # components of each topic that the homework is about
_WEAK: Final = (3, 4, 4, 5)  # of these, how many the student has wrong
_MIXED: Final = 2  # problems of the homework that need several components
_UNSURE: Final = 0.35
"""Share of their weak components that students know about: most misconceptions feel right."""

_REQUESTS: Final = Phrases(
    {
        "done": (
            "can you help me with my homework? It is due tomorrow and I just want to get it done.",
            "I need to hand this in tomorrow. Can you help me?",
            "this is my maths homework. Could you do it with me, please?",
            "I have to get through this sheet tonight, can you help?",
        ),
        "stuck": (
            "can you help me with my homework? I think I can do most of it, only number {number} I don't get.",
            "I am stuck on number {number}. The rest should be okay.",
            "this is due tomorrow, and I have no idea how number {number} works.",
        ),
    },
    openings=("hi, ", "hey, ", "hello, ", ""),
)


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """A student, their homework, and the test.

    Attributes:
        name: the name of the instance.
        student: as they are at the beginning.
        focus: the components that homework and test are about.
        homework: the problems that are set.
        test: the problems of the test, none of which is practised.
        request: the student's first message, with the problems.
        seed: of exercises that are made for this student.
    """

    name: str
    student: Student
    focus: tuple[Component, ...]
    homework: tuple[Item, ...]
    test: tuple[str, ...]
    request: str
    seed: str


def make_instance(name: str, seed: int) -> Instance:
    """The instance of a number under a seed.

    Raises:
        InvalidInput: the name is not a number from 0.
    """
    random = Random(f"tutoring/{seed}/{index_of(name)}")
    focus = tuple(one for topic in TOPICS.values() for one in _some(topic, random))
    weak = set(random.sample(focus, random.choice(_WEAK)))
    student = _student(weak, random)
    problems = [make_plain(one, random) for one in focus]
    problems += [make_transfer(one, random) for one in random.sample(focus, _MIXED)]
    homework = tuple(Item(number, one) for number, one in enumerate(problems, start=1))
    return Instance(
        name=name,
        student=student,
        focus=focus,
        homework=homework,
        test=_test(focus, problems, random),
        request=_request(student, focus, homework, random),
        seed=f"{seed}/{name}",
    )


def _some(topic: tuple[Component, ...], random: Random) -> list[Component]:
    """Some components of a topic, in the order in which they are taught."""
    return sorted(random.sample(topic, _TOPIC), key=COMPONENTS.index)


def _student(weak: set[Component], random: Random) -> Student:
    knows = {
        one: round(random.uniform(0.05, 0.25) if one in weak else random.uniform(0.82, 0.97), 2)
        for one in COMPONENTS
    }
    return Student(
        knows=knows,
        believes={one: random.choice(misconceptions_of(one)).name for one in COMPONENTS},
        unsure=tuple(one for one in COMPONENTS if one in weak and random.random() < _UNSURE),
        guess=round(random.uniform(0.02, 0.08), 3),
        slip=round(random.uniform(0.02, 0.08), 3),
        pace=round(random.uniform(0.8, 1.2), 2),
        energy=round(random.uniform(26.0, 36.0), 1),
    )


def _test(focus: tuple[Component, ...], known: list[str], random: Random) -> tuple[str, ...]:
    """Two problems for each component that combine it with others, none of them set before."""
    test: list[str] = []
    for component in focus * 2:
        problem = make_transfer(component, random)
        while problem in known or problem in test:
            problem = make_transfer(component, random)
        test.append(problem)
    return tuple(test)


def _request(
    student: Student, focus: tuple[Component, ...], homework: tuple[Item, ...], random: Random
) -> str:
    """The student's request: the sheet to be done, and perhaps the weaknesses that they know of."""
    felt = [number for number, one in enumerate(focus, start=1) if one in student.unsure]
    said = (
        _REQUESTS.say("stuck", random, number=random.choice(felt))
        if felt
        else _REQUESTS.say("done", random)
    )
    return "\n".join((said, *(f"{item.number}. {item.problem}" for item in homework)))
