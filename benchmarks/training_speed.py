"""The cost of the environment for each act of an agent in training: 1,000 episodes of travel at once, on one core.

    python -P -m duolog.benchmarks.training_speed

Users go by rules. The agents do, too; the processor time of their decisions is measured apart and taken off, so
that what is left is the session, the simulated user, the scorers and the reward. An act is a step of the episode, which
may hold several actions: an agent searches for several things at once.

The loops with simulated users of tau2-bench and verifiers are measured too, if they are installed, with models that
answer at once: the processor time for each turn of the agent.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from functools import partial
from typing import NamedTuple

import anyio
from duolog.agents.kinds import OneStage
from duolog.benchmarks.measuring import Row, add_arguments, missing, write_rows
from duolog.benchmarks.peers import tau2_user, verifiers_user
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.rounds import is_act
from duolog.examples.travel.travel_task import travel_task
from duolog.train.episode import Episode

__all__ = ("main",)

GOAL = 2.5
"""Milliseconds for each act."""

_TASK = travel_task()


class Spent(NamedTuple):
    """Milliseconds of the processor.

    Attributes:
        environment: for each step.
        agents: the agents' own decisions, for each step.
        recorded: what the environment did, for each act of an agent in the log.
    """

    environment: float
    agents: float
    recorded: float


class _Counted:
    """What episodes have cost so far."""

    def __init__(self) -> None:
        self.acts = 0
        self.deciding = 0.0


async def _play(log: EventLog, number: int, counted: _Counted) -> None:
    async with Episode(log) as episode:
        seen = await episode.reset(_TASK, str(number), seed=7)
        agent = OneStage(_TASK.spec.agent(_TASK.spec.habits))
        while not seen.done:
            began = time.process_time()
            decision = await agent.decide(episode.view)
            counted.deciding += time.process_time() - began
            counted.acts += 1
            seen = await episode.step(decision)


async def _measure(episodes: int) -> Spent:
    counted = _Counted()
    async with open_log("memory://") as log:
        began = time.process_time()
        async with anyio.create_task_group() as tasks:
            for number in range(episodes):
                tasks.start_soon(_play, log, number, counted)
        environment = time.process_time() - began - counted.deciding
        recorded = sum([is_act(r) and r.role == "agent" async for r in log.read_all()])
    return Spent(
        1e3 * environment / counted.acts,
        1e3 * counted.deciding / counted.acts,
        1e3 * environment / recorded,
    )


def row(episodes: int, repeat: int) -> Row:
    """The row of the table."""
    anyio.run(_measure, 10)  # makes the first world
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    found = [anyio.run(partial(_measure, episodes)) for _ in range(repeat)]
    ours = [one.environment for one in found]
    low, _, high = statistics.quantiles(ours, n=4) if len(ours) > 1 else ours * 3
    middle = statistics.median(ours)
    deciding = statistics.median(one.agents for one in found)
    recorded = statistics.median(one.recorded for one in found)
    return Row(
        name=f"train, {episodes:,} episodes at once : goal",
        ratio=middle / GOAL,
        low=low / GOAL,
        high=high / GOAL,
        better="lower",
        goal=GOAL,
        value=middle,
        unit="ms/act",
        about=f"{recorded:.1f} ms for each act in the log; the agents' own decisions {deciding:.1f} ms",
    )


def peers(ours: float | None, conversations: int) -> list[Row]:
    """Our time for an act, as a share of the others' time for a turn."""
    found: list[Row] = []
    for package, measure, there in (
        (tau2_user.PACKAGE, tau2_user.turn_of_theirs, tau2_user.installed()),
        (
            verifiers_user.PACKAGE,
            verifiers_user.turn_of_theirs,
            missing("", verifiers_user.PACKAGE) is None,
        ),
    ):
        name = f"train, an act : a turn of {package}"
        if not there or ours is None:
            found.append(Row(name=name, skipped=f"{package} is not installed"))
            continue
        theirs = measure(conversations)
        about = f"{theirs:.1f} ms a turn there"
        found.append(
            Row(
                name=name,
                ratio=ours / theirs,
                better="lower",
                value=ours,
                unit="ms/act",
                about=about,
            )
        )
    return found


def main() -> None:
    """Measures, and prints the row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_arguments(parser)
    asked = parser.parse_args()
    ours = row(100 if asked.quick else 1_000, min(asked.repeat, 2))
    write_rows(asked.rows, [ours, *peers(ours.value, 10 if asked.quick else 100)])


if __name__ == "__main__":
    main()
