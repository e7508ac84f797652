"""A tutor's beliefs about a student: Bayesian knowledge tracing, and likely misconceptions.

The probability that a component is known follows Corbett & Anderson (1995): Bayes' rule on each answer,
then a step for each lesson. A wrong answer is attributed to the misconceptions that lead to exactly
that answer, weighted by the beliefs at that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final, NamedTuple, TypeAlias, final

from ..maths.rules import COMPONENTS, MISCONCEPTIONS, Component, misconceptions_of
from ..student.learning import Lesson

__all__ = ("Belief", "Cause", "Diagnosis")

_KNOWN: Final = 0.5
_GUESS: Final = 0.1
_SLIP: Final = 0.1
"""P(L) before anything is seen, P(G) and P(S): within the bounds 0.3 and 0.1 that are usual for the two."""

_LEARNED: Final = {
    "answer": 0.0,
    "right": 0.1,
    "wrong": 0.05,
    "hint": 0.05,
    "explanation": 0.2,
    "example": 0.2,
}
"""P(T) as the tutor assumes it."""

_DOUBT: Final = 0.01
"""The least that P(L) and its opposite ever are."""

_SURE: Final = 3.0
"""A diagnosis is sure if it is this many times likelier than the next one."""

Cause: TypeAlias = tuple[str, ...]
"""Misconceptions that together lead to an answer."""


class Diagnosis(NamedTuple):
    """The likely cause of a wrong answer.

    Attributes:
        component: the component most likely not known.
        misconception: the likeliest misconception; empty if none explains the answer.
        sure: whether all other causes are much less likely.
    """

    component: Component
    misconception: str = ""
    sure: bool = False


@final
class Belief:
    """The tutor's current beliefs.

    Attributes:
        known: P(L) of each component.
    """

    def __init__(self) -> None:
        self.known: dict[Component, float] = dict.fromkeys(COMPONENTS, _KNOWN)
        self._shares = {
            one.name: 1.0 / len(misconceptions_of(one.component)) for one in MISCONCEPTIONS.values()
        }

    def right(self, components: Sequence[Component]) -> None:
        """Learns from a right answer to a problem with these components."""
        for one in components:
            known = self.known[one]
            likely = known * (1.0 - _SLIP)
            self._set(one, likely / (likely + (1.0 - known) * _GUESS))

    def wrong(self, components: Sequence[Component], causes: Sequence[Cause]) -> Diagnosis:
        """Learns from a wrong answer to a problem, and what may have led to it."""
        weights = [self._likelihood(components, cause) for cause in causes]
        slipped = prod(self.known[one] for one in components) * _SLIP * _GUESS
        total = sum(weights) + slipped
        if not causes:
            return self._unexplained(components)
        by_component: dict[Component, float] = {}
        by_name: dict[str, float] = {}
        for cause, weight in zip(causes, weights, strict=True):
            for name in cause:
                component = MISCONCEPTIONS[name].component
                by_component[component] = by_component.get(component, 0.0) + weight
                by_name[name] = by_name.get(name, 0.0) + weight
        for component in components:
            self._set(component, 1.0 - by_component.get(component, 0.0) / total)
        for component, guilt in by_component.items():
            for one in misconceptions_of(component):
                found = by_name.get(one.name, 0.0) / guilt
                self._lean(one.name, found, guilt / total)
        return self.diagnosis(max(by_component, key=lambda one: by_component[one]))

    def diagnosis(self, component: Component) -> Diagnosis:
        """The misconception that the tutor believes to be in a component's place."""
        ranked = sorted(misconceptions_of(component), key=lambda one: -self._shares[one.name])
        first, second = self._shares[ranked[0].name], self._shares[ranked[1].name]
        return Diagnosis(component, ranked[0].name, first >= _SURE * second)

    def told(self, misconception: str) -> None:
        """Learns that the student says themselves what they do."""
        for one in misconceptions_of(MISCONCEPTIONS[misconception].component):
            self._lean(one.name, float(one.name == misconception), 1.0)

    def taught(self, lesson: Lesson) -> None:
        """Learns that something was taught."""
        known = self.known[lesson.component]
        self._set(lesson.component, known + (1.0 - known) * _LEARNED[lesson.kind])

    def _set(self, component: Component, known: float) -> None:
        """Nothing is ever quite certain."""
        self.known[component] = min(max(known, _DOUBT), 1.0 - _DOUBT)

    def _lean(self, name: str, found: float, weight: float) -> None:
        """Moves the share of a misconception among those of its component towards what was found."""
        weight *= 1.0 - _GUESS
        self._shares[name] = (1.0 - weight) * self._shares[name] + weight * found

    def _likelihood(self, components: Sequence[Component], cause: Cause) -> float:
        guilty: Mapping[Component, str] = {MISCONCEPTIONS[name].component: name for name in cause}
        likely = 1.0
        for one in components:
            known = self.known[one]
            if one not in guilty:
                likely *= known
                continue
            likely *= (1.0 - known) * self._shares[guilty[one]]
        return likely

    def _unexplained(self, components: Sequence[Component]) -> Diagnosis:
        """A wrong answer that no misconception explains: somewhere something is not known, or slipped."""
        for one in components:
            known = self.known[one]
            doubt = (1.0 - known) * (1.0 - _GUESS) / len(components)
            self._set(one, known * (_SLIP + 0.5) / (known * (_SLIP + 0.5) + doubt))
        weakest = min(components, key=lambda one: self.known[one], default=COMPONENTS[0])
        return Diagnosis(weakest)
