"""Process measures of a group of sessions: the mean of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..trajectory.points import Trajectory
from .results import Estimate
from .sample import Column, Sample

__all__ = ("PROCESS_MEASURES", "process_columns", "process_of")

PROCESS_MEASURES: Final = (
    "agent_initiatives",
    "human_initiatives",
    "initiative_entropy",
    "confirmations_asked",
    "confirmations_answered",
    "approved",
    "denied",
    "halts",
    "interruptions",
    "peak_reading",
    "hesitation",
    "clarifications",
    "reworked_lines",
    "inquiries",
    "loops",
    "looping_acts",
)
"""Fields of ``Process`` that are averaged over sessions, in the order in which they are shown."""

_ABSENT = "no session has messages of a human and an agent to measure it by"


def process_columns(members: Sequence[Trajectory]) -> dict[str, Column]:
    """Each measure per session; None where a session has none."""
    return {
        _column(name): [
            None if item.process is None else getattr(item.process, name) for item in members
        ]
        for name in PROCESS_MEASURES
    }


def process_of(sample: Sample) -> Mapping[str, Estimate]:
    """The mean measures, from a sample that holds the columns of ``process_columns``."""
    return {name: sample.estimate(_column(name), absent=_ABSENT) for name in PROCESS_MEASURES}


def _column(name: str) -> str:
    return f"process {name}"
