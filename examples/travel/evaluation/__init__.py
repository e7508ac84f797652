"""Scores a travel plan on TravelPlanner's eight commonsense and five hard constraints."""

from __future__ import annotations

from .evaluator import evaluate
from .results import COMMONSENSE, HARD, VARIANTS, ConstraintResult, Evaluation, Variant
from .submissions import score_submissions
from .summary import Scored, Summary, summarize

__all__ = (
    "COMMONSENSE",
    "HARD",
    "VARIANTS",
    "ConstraintResult",
    "Evaluation",
    "Scored",
    "Summary",
    "Variant",
    "evaluate",
    "score_submissions",
    "summarize",
)
