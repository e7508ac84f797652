"""From options, or a file and options, to the cells that an experiment runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from ..agents.external.address import ExternalTerms
from ..engine.errors import InvalidInput
from ..engine.events import SessionOpened
from ..engine.log.contract import EventLog
from ..engine.log.open import open_log
from ..engine.models.gateway import Models
from ..engine.session.runner import Session
from ..engine.task import Cell, FoundTask, Setting, Task
from .manifest import (
    Manifest,
    check_designs,
    design_of,
    make_manifest,
    stamped,
)
from .parts import (
    OwnParts,
    default_agents,
    default_users,
    guarded_task,
    named_task,
    origins_of,
    own_parts,
    session_of,
    variants_of,
)
from .spec import Experiment, describes_experiments, read_experiments

__all__ = (
    "PROBLEMS",
    "Plan",
    "check_design",
    "check_log",
    "check_unchanged",
    "make_plans",
    "manifest_of",
)


PROBLEMS: Final = 30
"""The problems under each seed that a manifest has a digest of, at most."""


class Plan(msgspec.Struct, frozen=True):
    """An experiment, checked against its task.

    Attributes:
        experiment: what to run.
        task: the task itself.
        cells: every cell of the grid, in the order in which they are run.
        parts: what of it came out of files.
        design: digest of the design that its sessions carry; None if only options describe it.
        pool: whether the log may hold sessions of the same task and another design.
    """

    experiment: Experiment
    task: Task
    cells: Sequence[Cell]
    parts: OwnParts = OwnParts()
    design: str | None = None
    pool: bool = False

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
        session = session_of(self.task, cell, setting)
        if self.design is None:
            return session
        return msgspec.structs.replace(session, opened=stamped(session.opened, self.design))

    def sample(self, problems: int = 0) -> Iterator[SessionOpened]:
        """The openings of a session of every kind of player, and of one on each of the first problems.

        Args:
            problems: how many under each seed.

        Raises:
            InvalidInput: a session cannot be set up.
        """
        setting = self.setting(self.experiment.reach(None))
        counts = Counter[int]()
        posed: dict[tuple[int, str], Cell] = {}
        for cell in self.cells:
            if (cell.seed, cell.instance) not in posed and counts[cell.seed] < problems:
                counts[cell.seed] += 1
                posed[cell.seed, cell.instance] = cell
        for cell in dict.fromkeys([*self.experiment.sample(self.task), *posed.values()]):
            yield self.session(cell, setting).opened


def make_plans(
    task: str | Task,
    *,
    text_actions: Sequence[str] | None,
    limits: Mapping[str, float | None],
    budget: Mapping[str, float | None],
    pool: bool = False,
    **options: object,
) -> tuple[Plan, ...]:
    """Merges a file, if there is one, with the options, which take precedence; and checks it all.

    There is one plan for each task of the file, and one for a task alone.

    Args:
        task: a task, or its name, or the path of a file of experiments.
        text_actions: models that write their actions as text; None for those of the file.
        limits: the limits of a session, by name; None for what was not given.
        budget: the budget of all sessions together, likewise.
        pool: whether the log may hold sessions of another design.
        options: other fields of ``Experiment``, likewise.

    Raises:
        InvalidInput: something is not valid. The message names the file if the mistake is there.
    """
    named = task if isinstance(task, str) else task.name
    file = named if describes_experiments(named) else None
    bases = (Experiment(task=named),) if file is None else read_experiments(file)
    plans = []
    for base in bases:
        experiment = base.with_options(
            text_actions=text_actions, limits=limits, budget=budget, **options
        )
        with _attributed_to(file if options.get("dataset") is None else None):
            found = (
                named_task(experiment.task, experiment.dataset)
                if isinstance(task, str)
                else guarded_task(task)
            )
        plans.append(_plan(file, base, experiment, found))
    if file is not None:
        design = design_of([plan.experiment for plan in plans])
        plans = [msgspec.structs.replace(one, design=design, pool=pool) for one in plans]
    return tuple(plans)


def _plan(file: str | None, base: Experiment, experiment: Experiment, found: FoundTask) -> Plan:
    if file is not None:  # else all of it is defaults
        with _attributed_to(file):
            _resolve(base, found)
            base.setting()
    experiment, parts = _resolve(experiment, found)
    with _attributed_to(file if experiment.instances == base.instances else None):
        cells = list(experiment.cells(found.task))
    check_log(experiment.log)
    return Plan(experiment, found.task, cells, parts)


def check_log(where: str) -> None:
    """Checks that sessions can be written to a log and others read them there, without opening it.

    Raises:
        InvalidInput: a URL that names no store, a directory, or a log in memory.
    """
    if not where:
        raise InvalidInput("the name of the log is empty")
    if where.startswith("memory:"):
        raise InvalidInput(f"{where} would be gone when this is done; name a log in a file")
    if "://" not in where and Path(where).is_dir():
        raise InvalidInput(f"{where} is a directory; name a file for the log")
    open_log(where)


def _resolve(experiment: Experiment, found: FoundTask) -> tuple[Experiment, OwnParts]:
    """Loads agents and users that come out of files, fills in the task's own, and checks it all.

    Raises:
        InvalidInput: something is not valid.
    """
    task = found.task
    agents, own_agents = own_parts(
        "agent",
        experiment.agents,
        task,
        terms=ExternalTerms(experiment.agent_timeout, experiment.agent_env),
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


def manifest_of(plans: Sequence[Plan], described: object = None) -> Manifest | None:
    """The manifest of a run; None if only options describe it.

    Args:
        plans: what is run.
        described: the file that describes it, if it is one.

    Raises:
        InvalidInput: the file cannot be read, or a session cannot be set up.
    """
    if any(plan.design is None for plan in plans):
        return None
    file = described if isinstance(described, str) else None
    openings = [opened for plan in plans for opened in plan.sample(PROBLEMS)]
    return make_manifest([plan.experiment for plan in plans], openings, file=file)


async def check_design(log: EventLog, plan: Plan) -> None:
    """Refuses a log that holds sessions of the same task and another design, unless they may be pooled.

    Raises:
        InvalidInput: it does.
    """
    if plan.design is not None and not plan.pool:
        await check_designs(log, plan.task.name, plan.design)


async def check_unchanged(log: EventLog, task: str, parts: OwnParts) -> None:
    """Compares the files of a run with those of a session of the same players that the log holds.

    Installed packages have versions instead. A fork may use any file, so forks are skipped.

    Args:
        log: the log that is to be run into.
        task: name of the task.
        parts: what came out of files.

    Raises:
        InvalidInput: a file has changed since.
    """
    now = {"agent": parts.agents, "user": parts.users}
    unseen = {("task", task)} if parts.task_origin is not None else set()
    unseen |= {(role, name) for role, own in now.items() for name in own}
    async for summary in log.sessions():
        if not unseen:
            return
        mine = {(role, str(summary.group.get(role))) for role in now} | {("task", summary.task)}
        if summary.task != task or not unseen & mine or summary.state == "forgotten":
            continue
        async for record in log.read(summary.session):
            opened = record.event
            break
        else:
            continue
        if not isinstance(opened, SessionOpened) or opened.forked_from is not None:
            continue
        then = origins_of(opened)
        for role, name in unseen & mine:
            here = parts.task_origin if role == "task" else now[role][name].origin
            held = then.get(role)
            if here and held and held.digest != here.digest:
                raise InvalidInput(
                    f"{here.name} has changed since the sessions in this log were run, and they "
                    "would be mixed up with new ones: name another log with --log"
                )
        unseen -= mine
