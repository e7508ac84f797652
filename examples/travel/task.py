"""Travel planning as a task: its instances, on an invented world or on TravelPlanner's files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from ...agents.habits import Habits
from ...agents.rules_file import shipped_rules
from ...engine.scorers.protocol import Scorer
from ..kit.task import Case, KitTask, TaskSpec
from .actions import ACTIONS
from .briefing import TRAVEL_BRIEF
from .data.sources import DatasetInstances, InstanceSource, InventedInstances
from .data.tables import Sandbox
from .rule_agent import travel_agent
from .rule_user import changing_traveller, human_alone, travel_user
from .utility import TRAVEL, asking_travel_utility, travel_utility

__all__ = ("travel_task",)

_CONTROL: Final = shipped_rules(__package__)


def travel_task(dataset: str | None = None) -> KitTask[Sandbox]:
    """Plan a trip: a short request, hidden preferences, searches, and a shared plan (paper, 4.1).

    Args:
        dataset: a file or directory with TravelPlanner's instances and tables; None for an invented
            world, which the seed decides.

    Raises:
        InvalidInput: the data set cannot be used.
    """
    files = None if dataset is None else DatasetInstances(dataset)
    generated = lru_cache(maxsize=4)(InventedInstances)

    def source(seed: int) -> InstanceSource:
        return files or generated(seed)

    def case(name: str, seed: int) -> Case[Sandbox]:
        instance, sandbox = source(seed).instance(name)
        return Case(
            request=instance.request,
            private={"profile": list(instance.preferences)},
            truth={"trip": msgspec.to_builtins(instance.trip)},
            world=sandbox,
        )

    return KitTask(
        TaskSpec(
            name=TRAVEL,
            description="plan a trip together: hidden preferences, searches, a shared day-by-day plan",
            brief=TRAVEL_BRIEF,
            case=case,
            environment=ACTIONS.environment,
            utility=travel_utility,
            asking=asking_travel_utility,
            agent=travel_agent,
            control=_CONTROL,
            habits=Habits(goals=False),
            user=travel_user,
            alone=human_alone,
            changing=changing_traveller,
            witness=lambda name, seed: source(seed).witness(name),
            names=lambda count, seed: source(seed).names(count),
            source=lambda seed: source(seed).name,
            audit=_audit,
        )
    )


def _audit() -> Sequence[Scorer]:
    from ...users.audit import SimulatorAudit  # rules need nothing of it
    from .user_audit import TRAVEL_CHECKS

    return (SimulatorAudit(TRAVEL_CHECKS),)
