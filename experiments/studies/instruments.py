"""Questionnaires of studies: published instruments with their words, your own items, and their scores.

NASA-TLX: Hart and Staveland (1988), *Development of NASA-TLX*. The raw score is the mean of the six scales
(Hart 2006); the weighted score weighs each by how often the person chose it in the 15 pairs. ASQ: Lewis
(1991), *Psychometric evaluation of an after-scenario questionnaire*; 1 is the best answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, Literal, TypeAlias, final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON
from ...engine.text import suggestion

__all__ = ("KINDS", "TLX_SCALES", "Item", "ItemType", "checked_answers", "items_of", "scores_of")

ItemType: TypeAlias = Literal["scale", "choice", "number", "text"]

KINDS: Final = ("nasa-tlx", "satisfaction", "items")
"""Kinds of questionnaires."""

_LONGEST: Final = 10_000  # characters of an answer


@final
class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One item of a questionnaire.

    Attributes:
        name: the name of the item, as the export has it.
        text: the question.
        title: a short name above the question.
        type: ``scale`` from ``low`` to ``high``, ``choice`` of ``choices``, ``number``, or ``text``.
        low: lower end of a scale (1 if it is not given), or least number.
        high: upper end of a scale (7 if it is not given), or greatest number.
        step: between two points of a scale.
        labels: what the two ends of a scale are called.
        choices: what can be chosen.
        required: whether it must be answered.
    """

    name: str
    text: str
    title: str = ""
    type: ItemType = "scale"
    low: int | None = None
    high: int | None = None
    step: int = 1
    labels: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    required: bool = False

    @property
    def points(self) -> range:
        """The points of a scale."""
        return range(self._low, self._high + 1, self.step)

    @property
    def _low(self) -> int:
        return 1 if self.low is None else self.low

    @property
    def _high(self) -> int:
        return 7 if self.high is None else self.high

    def check(self, at: str) -> None:
        """Checks the item.

        Args:
            at: the key at which it is in the file.

        Raises:
            InvalidInput: it cannot be asked so.
        """
        if not self.name or not self.name.replace("_", "").isalnum() or not self.name.isascii():
            raise InvalidInput(f"{at}.name = {self.name!r}: use letters, digits and _")
        if not self.text.strip():
            raise InvalidInput(f"{at}.text is empty: write the question")
        if self.type == "scale":
            low, high = self._low, self._high
            if self.step < 1 or high <= low or (high - low) % self.step:
                raise InvalidInput(
                    f"{at}: a scale from low = {low} to high = {high} cannot have "
                    f"step = {self.step}"
                )
            if len(self.points) > 101:
                raise InvalidInput(f"{at}: a scale has at most 101 points, not {len(self.points)}")
            if len(self.labels) not in (0, 2):
                raise InvalidInput(
                    f"{at}.labels has {len(self.labels)} texts: give one for each end of the scale"
                )
        if self.type == "choice" and len(set(self.choices)) < 2:
            raise InvalidInput(f"{at}.choices needs two different texts or more")
        if self.type != "choice" and self.choices:
            raise InvalidInput(f'{at}.choices belongs to type = "choice", not {self.type!r}')

    def take(self, value: JSON) -> JSON:
        """An answer, checked.

        Raises:
            InvalidInput: it cannot be an answer to this item.
        """
        if self.type == "choice":
            if value not in self.choices:
                raise InvalidInput(f"{self.name} = {value!r}{suggestion(str(value), self.choices)}")
        elif self.type == "text":
            if not isinstance(value, str) or len(value) > _LONGEST:
                raise InvalidInput(f"{self.name} takes a text of at most {_LONGEST:,} characters")
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInput(f"{self.name} expects a number, got {value!r}")
        elif self.type == "scale" and value not in self.points:
            raise InvalidInput(
                f"{self.name} expects {self._low} to {self._high} in steps of {self.step}, got {value}"
            )
        elif self.low is not None and value < self.low:
            raise InvalidInput(f"{self.name} expects at least {self.low}, got {value}")
        elif self.high is not None and value > self.high:
            raise InvalidInput(f"{self.name} expects at most {self.high}, got {value}")
        return value


TLX_SCALES: Final[Mapping[str, tuple[str, str]]] = {
    "mental": ("Mental Demand", "How mentally demanding was the task?"),
    "physical": ("Physical Demand", "How physically demanding was the task?"),
    "temporal": ("Temporal Demand", "How hurried or rushed was the pace of the task?"),
    "performance": (
        "Performance",
        "How successful were you in accomplishing what you were asked to do?",
    ),
    "effort": ("Effort", "How hard did you have to work to accomplish your level of performance?"),
    "frustration": (
        "Frustration",
        "How insecure, discouraged, irritated, stressed, and annoyed were you?",
    ),
}
"""The six scales of NASA-TLX: name, title and question."""

_PAIRS: Final = tuple(combinations(TLX_SCALES, 2))
_ASQ: Final = {
    "ease": "Overall, I am satisfied with the ease of completing the tasks in this scenario.",
    "time": "Overall, I am satisfied with the amount of time it took to complete the tasks in this "
    "scenario.",
    "support": "Overall, I am satisfied with the support information (online help, messages, "
    "documentation) when completing the tasks.",
}


def items_of(kind: str, own: Sequence[Item], *, weights: bool) -> tuple[Item, ...]:
    """The items of a questionnaire.

    Args:
        kind: the kind of the questionnaire.
        own: items of your own, which follow the published ones.
        weights: ask the 15 pairs of NASA-TLX, too.
    """
    items: list[Item] = []
    if kind == "nasa-tlx":
        for name, (title, text) in TLX_SCALES.items():
            poles = ("Perfect", "Failure") if name == "performance" else ("Very Low", "Very High")
            items.append(
                Item(name=name, title=title, text=text, low=0, high=100, step=5, labels=poles)
            )
        for one, other in _PAIRS if weights else ():
            titles = (TLX_SCALES[one][0], TLX_SCALES[other][0])
            text = "Which contributed more to the workload of the task?"
            name = f"pair_{one}_{other}"
            items.append(Item(name=name, text=text, type="choice", choices=titles))
    elif kind == "satisfaction":
        poles = ("Strongly agree", "Strongly disagree")
        items += [Item(name=name, text=text, labels=poles) for name, text in _ASQ.items()]
    return (*items, *own)


def checked_answers(items: Sequence[Item], answers: Mapping[str, JSON]) -> dict[str, JSON]:
    """The answers to a questionnaire, in the order of its items; skipped ones are left out.

    Raises:
        InvalidInput: an item is not one of them, needs an answer, or cannot have this one.
    """
    known = {item.name: item for item in items}
    for name in answers:
        if name not in known:
            raise InvalidInput(f"unknown item {name!r}{suggestion(name, known)}")
    given = {
        name: item.take(answers[name])
        for name, item in known.items()
        if answers.get(name) not in (None, "")
    }
    missing = [
        item.title or item.text for item in items if item.required and item.name not in given
    ]
    if missing:
        raise InvalidInput(f"please answer: {missing[0]}")
    return given


def scores_of(kind: str, answers: Mapping[str, JSON]) -> dict[str, float | None]:
    """The scores of a questionnaire; None if an answer that the score needs is missing.

    ``raw`` (0 to 100) is the mean of the six NASA-TLX scales; ``weighted`` their mean by the weights from the
    15 pairs; ``mean`` (1, best, to 7) that of the ASQ.
    """
    if kind == "nasa-tlx":
        scales = {name: _number(answers.get(name)) for name in TLX_SCALES}
        values = [value for value in scales.values() if value is not None]
        whole = len(values) == len(scales)
        raw = sum(values) / len(values) if whole else None
        chosen = [answers.get(f"pair_{one}_{other}") for one, other in _PAIRS]
        weighted = None
        if whole and None not in chosen:
            weights = {name: chosen.count(title) for name, (title, _) in TLX_SCALES.items()}
            weighted = sum(weights[name] * (value or 0.0) for name, value in scales.items())
            weighted /= len(_PAIRS)
        return {"raw": raw, "weighted": weighted}
    if kind == "satisfaction":
        agreed = [_number(answers.get(name)) for name in _ASQ]
        given = [value for value in agreed if value is not None]
        return {"mean": sum(given) / len(given) if len(given) == len(_ASQ) else None}
    return {}


def _number(value: JSON) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
