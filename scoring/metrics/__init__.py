"""Metrics: from trajectories to the paper's numbers, under either convention."""

from __future__ import annotations

from .aggregate import LABELS as LABELS
from .aggregate import aggregate as aggregate
from .curves import effort_curve as effort_curve
from .results import Bucket as Bucket
from .results import Buckets as Buckets
from .results import Convention as Convention
from .results import Counts as Counts
from .results import CurvePoint as CurvePoint
from .results import Drop as Drop
from .results import Effort as Effort
from .results import EffortAxis as EffortAxis
from .results import Estimate as Estimate
from .results import Group as Group
from .results import Numbers as Numbers
from .results import SessionOutcomes as SessionOutcomes
from .results import SessionScore as SessionScore
from .results import Share as Share
from .survival import Hazard as Hazard

__all__ = (
    "LABELS",
    "Bucket",
    "Buckets",
    "Convention",
    "Counts",
    "CurvePoint",
    "Drop",
    "Effort",
    "EffortAxis",
    "Estimate",
    "Group",
    "Hazard",
    "Numbers",
    "SessionOutcomes",
    "SessionScore",
    "Share",
    "aggregate",
    "effort_curve",
)
