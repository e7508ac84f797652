"""The numbers of TravelPlanner's leaderboard, over many plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from .results import COMMONSENSE, ConstraintResult, Evaluation

__all__ = ("Scored", "Summary", "summarize")


class Scored(msgspec.Struct, frozen=True):
    """A submitted plan with its evaluation.

    Attributes:
        row_index: the instance that it is for.
        delivered: whether there is a plan at all.
        asked: how many hard constraints the request makes, its budget included.
        evaluation: the outcomes for the plan.
    """

    row_index: int
    delivered: bool
    asked: int
    evaluation: Evaluation

    def to_json(self) -> dict[str, object]:
        """One line of ``travel evaluate --json``."""
        return self.evaluation.to_json(self.row_index)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """TravelPlanner's leaderboard (Xie et al. 2024, section 3.4), shares in [0, 1] of all plans.

    As there, a plan that was not delivered fails everything, and hard constraints count only
    where the plan is complete and lies within the sandbox. Where the published script would have
    ended with an exception, the constraints of that kind count as failed, with the errors counted.

    Attributes:
        plans: number of plans.
        delivery_rate: share of plans that are not empty.
        commonsense_micro: passed commonsense constraints, of eight a plan.
        commonsense_macro: plans that pass all commonsense constraints.
        hard_micro: passed hard constraints, of those that the requests make.
        hard_macro: plans that pass all hard constraints.
        final_pass_rate: plans that pass everything.
        commonsense_errors: plans whose commonsense constraints could not be checked to the end.
        hard_errors: the same for hard constraints.
        performance: mean of the plans' performance, the utility of Collaborative Gym's travel
            task; no part of the leaderboard.
    """

    plans: int
    delivery_rate: float
    commonsense_micro: float
    commonsense_macro: float
    hard_micro: float
    hard_macro: float
    final_pass_rate: float
    commonsense_errors: int
    hard_errors: int
    performance: float

    def rows(self) -> tuple[tuple[str, float], ...]:
        """The leaderboard's columns by their names there."""
        return (
            ("Delivery Rate", self.delivery_rate),
            ("Commonsense Constraint Micro Pass Rate", self.commonsense_micro),
            ("Commonsense Constraint Macro Pass Rate", self.commonsense_macro),
            ("Hard Constraint Micro Pass Rate", self.hard_micro),
            ("Hard Constraint Macro Pass Rate", self.hard_macro),
            ("Final Pass Rate", self.final_pass_rate),
        )


def summarize(scored: Iterable[Scored]) -> Summary:
    """Adds up the evaluations of many plans, one by one, without keeping them."""
    plans = delivered = commonsense_errors = hard_errors = 0
    commonsense_passed = commonsense_all = hard_passed = hard_asked = hard_all = final = 0
    performance = 0.0
    for one in scored:
        evaluation = one.evaluation
        plans += 1
        delivered += one.delivered
        hard_asked += one.asked
        performance += evaluation.performance
        commonsense_errors += evaluation.commonsense is None
        hard_errors += evaluation.hard is None
        commonsense = (one.delivered and evaluation.commonsense) or {}
        # The published script looks at the hard constraints of no other plan.
        counts = all(_holds(commonsense, gate) for gate in _GATES)
        hard = (counts and evaluation.hard) or {}
        commonsense_passed += _passes(commonsense)
        hard_passed += _passes(hard)
        sensible = bool(commonsense) and not _failures(commonsense)
        fulfils = bool(hard) and not _failures(hard)
        commonsense_all += sensible
        hard_all += fulfils
        final += sensible and fulfils

    return Summary(
        plans=plans,
        delivery_rate=_share(delivered, plans),
        commonsense_micro=_share(commonsense_passed, plans * len(COMMONSENSE)),
        commonsense_macro=_share(commonsense_all, plans),
        hard_micro=_share(hard_passed, hard_asked),
        hard_macro=_share(hard_all, plans),
        final_pass_rate=_share(final, plans),
        commonsense_errors=commonsense_errors,
        hard_errors=hard_errors,
        performance=_share(performance, plans),
    )


_GATES = ("is_not_absent", "is_valid_information_in_sandbox")


def _holds(verdicts: Mapping[str, ConstraintResult], name: str) -> bool:
    return name in verdicts and verdicts[name].passed is True


def _passes(verdicts: Mapping[str, ConstraintResult]) -> int:
    return sum(verdict.passed is True for verdict in verdicts.values())


def _failures(verdicts: Mapping[str, ConstraintResult]) -> int:
    return sum(verdict.passed is False for verdict in verdicts.values())


def _share(part: float, whole: int) -> float:
    return part / whole if whole else 0.0
