"""The cells of the study of agents: tasks, held-out instances, people and agents.

Rules were written, and the adaptive agent's were fitted, on seeds 1 to 5. None of the seeds here
was looked at for either.
"""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ("AGENTS", "FULL", "PERSONAS", "TASKS", "TINY", "WEAK", "Size")

TASKS: Final = ("travel", "data", "finance", "tutoring", "proof")
PERSONAS: Final = ("proactive", "feedback", "lazy")
AGENTS: Final = ("one-stage", "two-stage", "adaptive")
WEAK: Final = ("looper", "polisher", "flatterer")
"""Agents in which the failures that the paper describes occur by themselves."""


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How much is played.

    Attributes:
        tasks: which tasks.
        seeds: the seeds of the worlds.
        instances: the instances of each seed, with each person and agent.
        ablated: instances of each seed for agents with one habit changed and for weak agents.
        trained: the seeds that rules are fitted on, where the value of asking is looked at.
        asked: how many of those, with each person, are forked at several shares of the work.
        gallery: instances of the gallery's seed, with each agent of its pages.
        resamples: for bootstrap intervals.
    """

    tasks: tuple[str, ...] = TASKS
    seeds: tuple[int, ...] = (21, 22)
    instances: int = 75
    ablated: int = 25
    trained: tuple[int, ...] = (1, 2, 3, 4, 5)
    asked: int = 8
    gallery: int = 100
    resamples: int = 2000


FULL: Final = Size()
TINY: Final = Size(
    tasks=("travel", "data"),
    seeds=(21,),
    instances=2,
    ablated=1,
    trained=(1,),
    asked=1,
    gallery=2,
    resamples=50,
)
"""As much as a test has time for; its numbers mean nothing."""
