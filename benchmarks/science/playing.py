"""Plays the sessions of the study into one log for each task, and reads them; a rerun continues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec
from duolog.cli.text.run_progress import SessionProgress
from duolog.engine.errors import InvalidInput
from duolog.engine.events import SessionOpened
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.session.simulation import Outcome, SessionFailure, simulate
from duolog.engine.task import NOBODY, Cell, Setting, Task, find_task
from duolog.experiments.parts import kind_of, names_variant, variants_of
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.points import Trajectory

__all__ = ("AT_ONCE", "Played", "Players", "load", "log_of", "play", "scored")

AT_ONCE: Final = 1
"""Sessions that are played at once: rules wait for nothing, and the fewer there are, the more events of each are
written together. With 16, a session costs a quarter more.
"""

Played: TypeAlias = Mapping[tuple[str, str], Mapping[str, Trajectory]]
"""Sessions of a task by agent and person, and by seed and instance."""


class Players(NamedTuple):
    """Agents who play with the same people on the same instances.

    Attributes:
        agents: kinds of agents, and variants.
        people: personas; nobody's where an agent works alone.
        instances: how many of each seed, from the first on.
    """

    agents: Sequence[str]
    people: Sequence[str]
    instances: int


async def play(task: str, players: Sequence[Players], seeds: Sequence[int], folder: Path) -> None:
    """Plays the sessions of a task, as far as the log does not hold them.

    All sessions of an instance follow each other, so that it is made only once: that takes up to 40 ms.

    Args:
        task: the task.
        players: who plays.
        seeds: the seeds of the worlds.
        folder: the folder of the logs.

    Raises:
        InvalidInput: a session could not be run.
    """
    found = find_task(task)
    agents = [agent for one in players for agent in one.agents]
    setting = Setting(variants=variants_of([one for one in agents if names_variant(one)], found))
    cells = [
        Cell(agent=kind_of(agent), user=person, instance=instance, seed=seed)
        for seed in seeds
        for at, instance in enumerate(found.instances(max(one.instances for one in players), seed))
        for one in players
        if at < one.instances
        for agent in one.agents
        for person in _people(found, agent, one.people)
    ]
    failures: list[SessionFailure] = []
    with SessionProgress(len(cells)) as progress:

        def note(outcome: Outcome) -> None:
            if isinstance(outcome, SessionFailure):
                failures.append(outcome)
            progress.advance(outcome)

        async with open_log(log_of(task, folder)) as log:
            makers = [partial(found.session, cell, setting) for cell in cells]
            await simulate(log, makers, concurrency=AT_ONCE, on_outcome=note)
    if failures:
        raise InvalidInput(f"session {failures[0].session} could not be run: {failures[0].error}")


async def load(task: str, folder: Path, seeds: Sequence[int]) -> Played:
    """The sessions of a task on worlds of these seeds that its log holds."""
    found: dict[tuple[str, str], dict[str, Trajectory]] = {}
    async with open_log(log_of(task, folder), create=False) as log:
        for opened, item in await scored(log):
            cell = msgspec.convert(opened.config["cell"], Cell)
            if cell.seed in seeds:
                played = found.setdefault((cell.agent, cell.user), {})
                played[f"{cell.seed}/{cell.instance}"] = item
    return found


async def scored(log: EventLog) -> list[tuple[SessionOpened, Trajectory]]:
    """All sessions of a log, in order of their first records.

    The trajectories are those of ``score_sessions``, which folds process measures too and keeps them.
    """
    openings: list[SessionOpened] = []
    folds: dict[str, TrajectoryFold] = {}
    async for record in log.read_all():
        fold = folds.get(record.session)
        if fold is None:
            assert isinstance(record.event, SessionOpened)
            openings.append(record.event)
            fold = folds[record.session] = TrajectoryFold(record.session, emit=False)
        fold.feed(record)
    return [
        (opened, fold.trajectory()) for opened, fold in zip(openings, folds.values(), strict=True)
    ]


def _people(task: Task, agent: str, people: Sequence[str]) -> Sequence[str]:
    return (NOBODY,) if task.automated(agent) else people


def log_of(task: str, folder: Path) -> str:
    """The address of a task's log. It does not wait for the disk: after a loss of power, a rerun plays what is missing."""
    return f"sqlite:///{folder.resolve() / task}.db?durability=normal"
