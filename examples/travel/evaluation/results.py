"""The result of an evaluation: an outcome per constraint, two rates, and the total cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

__all__ = (
    "COMMONSENSE",
    "HARD",
    "VARIANTS",
    "ConstraintResult",
    "Evaluation",
    "EvaluationJson",
    "Variant",
    "failed",
    "not_applicable",
    "passed",
    "told",
)

Variant = Literal["published", "strict", "cogym"]
"""The rules: TravelPlanner's published evaluator, a corrected version of it, or Collaborative
Gym's copy (which looks accommodations up among the attractions in the sandbox check)."""

VARIANTS: tuple[Variant, ...] = ("published", "strict", "cogym")

COMMONSENSE: tuple[str, ...] = (
    "is_reasonable_visiting_city",
    "is_valid_restaurants",
    "is_valid_attractions",
    "is_valid_accommodation",
    "is_valid_transportation",
    "is_valid_information_in_current_city",
    "is_valid_information_in_sandbox",
    "is_not_absent",
)
"""TravelPlanner's names of the commonsense constraints, in the order in which they are checked."""

HARD: tuple[str, ...] = (
    "valid_cuisine",
    "valid_room_rule",
    "valid_transportation",
    "valid_room_type",
    "valid_cost",
)
"""TravelPlanner's names of the hard constraints, in the order in which they are checked."""

_LONGEST_REASON = 500

EvaluationJson: TypeAlias = dict[str, object]


class ConstraintResult(msgspec.Struct, frozen=True, array_like=True):
    """The outcome of one constraint.

    Attributes:
        passed: whether it holds; None if the request makes no such demand.
        reason: why it does not hold; None if it does, or does not apply.
    """

    passed: bool | None
    reason: str | None = None


passed = ConstraintResult(True)
not_applicable = ConstraintResult(None)


def failed(reason: str) -> ConstraintResult:
    """The outcome of a constraint that does not hold."""
    return ConstraintResult(False, told(reason))


def told(reason: str) -> str:
    """A reason that can be encoded, whatever text of a plan it quotes: short, and in UTF-8."""
    shown = reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 3]}..."
    # JSON may hold halves of a surrogate pair, which no file takes.
    return shown.encode("utf-8", "backslashreplace").decode("utf-8")


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of all constraints for one plan.

    A kind of constraints (commonsense or hard) that could not be checked to the end is None, and
    its error says why: then its rate is 0, as Collaborative Gym counts it.

    Attributes:
        commonsense: verdict by constraint, in the order of `COMMONSENSE`.
        hard: verdict by constraint, in the order of `HARD`.
        commonsense_error: what stopped the commonsense checks.
        hard_error: what stopped the checks of hard constraints.
        total_cost: dollars for everybody and everything that the plan names and the sandbox
            prices; None where the hard constraints could not be checked.
    """

    commonsense: Mapping[str, ConstraintResult] | None
    hard: Mapping[str, ConstraintResult] | None
    commonsense_error: str | None = None
    hard_error: str | None = None
    total_cost: float | None = None

    @property
    def commonsense_pass_rate(self) -> float:
        """Share of the applicable commonsense constraints that hold, in [0, 1]."""
        return _rate(self.commonsense)

    @property
    def preference_pass_rate(self) -> float:
        """Share of the applicable hard constraints that hold, in [0, 1]."""
        return _rate(self.hard)

    @property
    def performance(self) -> float:
        """The mean of the two rates."""
        return (self.commonsense_pass_rate + self.preference_pass_rate) / 2

    def to_json(self, row_index: int | None = None) -> EvaluationJson:
        """The evaluation as plain JSON values, one line of ``travel evaluate --json``.

        Args:
            row_index: which instance the plan is for; left out if None.
        """
        start: EvaluationJson = {} if row_index is None else {"row_index": row_index}
        return start | {
            "commonsense": _plain(self.commonsense),
            "hard": _plain(self.hard),
            "commonsense_error": self.commonsense_error,
            "hard_error": self.hard_error,
            "commonsense_pass_rate": self.commonsense_pass_rate,
            "preference_pass_rate": self.preference_pass_rate,
            "performance": self.performance,
            "total_cost": self.total_cost,
        }


def _rate(verdicts: Mapping[str, ConstraintResult] | None) -> float:
    outcomes = [v.passed for v in (verdicts or {}).values() if v.passed is not None]
    return sum(outcomes) / len(outcomes) if outcomes else 0.0


def _plain(
    verdicts: Mapping[str, ConstraintResult] | None,
) -> dict[str, list[bool | str | None]] | None:
    if verdicts is None:
        return None
    return {name: [verdict.passed, verdict.reason] for name, verdict in verdicts.items()}
