"""From the command line, or a file and the command line, to the cells that an experiment runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from ...engine.errors import InvalidInput
from ...engine.models.gateway import Models
from ...engine.session.runner import Session
from ...engine.task import Cell, FoundTask, Setting, Task
from ..lookup import check_log
from ..tasks import OwnParts, default_agents, default_users, named_task, own_parts, session_of
from ..variants import variants_of
from .file import read_experiment
from .spec import Experiment

__all__ = ("Plan", "make_plan")


class Plan(msgspec.Struct, frozen=True):
    """An experiment, checked against its task.

    Attributes:
        experiment: what to run.
        task: the task itself.
        cells: every cell of the grid, in the order in which they are run.
        parts: what of it came out of files.
    """

    experiment: Experiment
    task: Task
    cells: Sequence[Cell]
    parts: OwnParts = OwnParts()

    def setting(self, models: Models | None) -> Setting:
        """What all cells share.

        Args:
            models: access to their models; None without models.
        """
        return self.parts.put_into(self.experiment.setting(models))

    def session(self, cell: Cell, setting: Setting) -> Session:
        """The session of a cell.

        Raises:
            InvalidInput: there is none.
        """
        return session_of(self.task, cell, setting)


def make_plan(
    task: str,
    *,
    text_actions: Sequence[str] | None,
    limits: Mapping[str, float | None],
    budget: Mapping[str, float | None],
    **options: object,
) -> Plan:
    """Merges a file, if there is one, with the options, which take precedence; and checks it all.

    Args:
        task: name of a task, or path of a file in TOML.
        text_actions: models that write their actions as text; None for those of the file.
        limits: of a session, by name; None for what was not given.
        budget: of all sessions together, likewise.
        options: other fields of ``Experiment``, likewise.

    Raises:
        InvalidInput: something is not valid. The message names the file if the mistake is there.
    """
    file = task if task.endswith(".toml") else None
    base = Experiment(task=task) if file is None else read_experiment(file)
    experiment = base.with_options(
        text_actions=text_actions, limits=limits, budget=budget, **options
    )
    with _attributed_to(file if options.get("dataset") is None else None):
        found = named_task(experiment.task, experiment.dataset)
    if file is not None:  # else all of it is defaults
        with _attributed_to(file):
            _resolve(base, found)
            base.setting()
    experiment, parts = _resolve(experiment, found)
    with _attributed_to(file if experiment.instances == base.instances else None):
        cells = list(experiment.cells(found.task))
    check_log(experiment.log)
    return Plan(experiment, found.task, cells, parts)


def _resolve(experiment: Experiment, found: FoundTask) -> tuple[Experiment, OwnParts]:
    """Loads agents and users that come out of files, fills in the task's own, and checks it all.

    Raises:
        InvalidInput: something is not valid.
    """
    task = found.task
    agents, own_agents = own_parts(
        "agent", experiment.agents, task, timeout=experiment.agent_timeout
    )
    users, own_users = own_parts("user", experiment.users, task)
    parts = OwnParts(
        task_origin=found.origin,
        agents=own_agents,
        users=own_users,
        variants=variants_of(experiment.agents, task),
    )
    resolved = msgspec.structs.replace(
        experiment,
        agents=default_agents(task) if agents is None else agents,
        users=default_users(task) if users is None else users,
    )
    resolved.check(task, parts)
    return resolved, parts


@contextmanager
def _attributed_to(file: str | None) -> Iterator[None]:
    """Puts the name of a file, if there is one, before the message of an error raised inside."""
    try:
        yield
    except InvalidInput as error:
        if file is None:
            raise
        raise InvalidInput(f"{file}: {error}") from None
