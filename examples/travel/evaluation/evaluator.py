"""Runs the checks of a variant on any plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....engine.errors import InvalidInput
from ..data.tables import Sandbox, Trip
from ..plan.plan import DayPlan, plan_to_json
from .commonsense import commonsense_checks
from .hard import HARD_CHECKS, total_cost
from .reading import Loose
from .results import VARIANTS, ConstraintResult, Evaluation, Variant, told
from .strict import evaluate_strictly

__all__ = ("evaluate",)

Checks = tuple[tuple[str, Callable[[Loose, Trip, Sandbox], ConstraintResult]], ...]

_COMMONSENSE: Mapping[Variant, Checks] = {
    "published": commonsense_checks(),
    "cogym": commonsense_checks(rooms_among_attractions=True),
}


def evaluate(
    plan: object, trip: Trip, sandbox: Sandbox, variant: Variant = "published"
) -> Evaluation:
    """Judge a plan.

    Args:
        plan: the plan of a TravelPlanner submission (a list of days as decoded from JSON), or a
            `Plan`. Any other JSON value is judged too: it fails, or the checks stop with an error.
        trip: the structured request.
        sandbox: all tables that count, not only those of the trip.
        variant: the rules of evaluation.

    Returns:
        The evaluation. No plan raises.

    Raises:
        InvalidInput: there is no such variant.
    """
    if variant not in VARIANTS:
        raise InvalidInput(f"unknown variant {variant!r}; choose from {', '.join(VARIANTS)}")
    if variant == "strict":
        return evaluate_strictly(plan, trip, sandbox)
    if isinstance(plan, tuple) and all(isinstance(day, DayPlan) for day in plan):
        plan = plan_to_json(plan)
    commonsense, commonsense_error = _judge(_COMMONSENSE[variant], plan, trip, sandbox)
    hard, hard_error = _judge(HARD_CHECKS, plan, trip, sandbox)
    return Evaluation(
        commonsense=commonsense,
        hard=hard,
        commonsense_error=commonsense_error,
        hard_error=hard_error,
        total_cost=None if hard is None else total_cost(plan, trip, sandbox),
    )


def _judge(
    checks: Checks, plan: object, trip: Trip, sandbox: Sandbox
) -> tuple[dict[str, ConstraintResult] | None, str | None]:
    verdicts: dict[str, ConstraintResult] = {}
    for name, check in checks:
        try:
            verdicts[name] = check(plan, trip, sandbox)
        # Any exception of the checks is a result of the evaluation, as in the original.
        except Exception as error:  # noqa: BLE001
            return None, told(f"{type(error).__name__}: {error}") + f" (in {name})"
    return verdicts, None
