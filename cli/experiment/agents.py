"""Which agents of an experiment are the task's, and which of these work alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a command's --help loads this module
    from ...engine.task import Task

__all__ = ("is_alone", "is_of_task")


def is_of_task(agent: str, task: Task) -> bool:
    """Whether the task has an agent of this kind; a variant is named as ``KIND:SETTING``."""
    return agent.partition(":")[0] in task.agents


def is_alone(agent: str, task: Task) -> bool:
    """Whether it works without a human, as far as the task says."""
    return is_of_task(agent, task) and task.automated(agent)
