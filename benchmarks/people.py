"""Measures how much each number of a persona matters: the tables of ``docs/sensitivity.md``.

    python -P -m duolog.benchmarks.people TASK --sessions 60 --log people-TASK.db

It runs the task with the unchanged persona, and with each number at a low and at a high value, all on the
same instances. Then it prints, per number and agent, how utility, D@2 and effort differ from the unchanged
persona: mean differences over instances that all cells have, with percentile bootstrap intervals. If a run
was interrupted, the next one continues it; --print prints the results in the log so far.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import anyio
import numpy as np
from duolog.cli import main as duolog
from duolog.engine.log.open import open_log
from duolog.scoring.columns.table import column_of
from duolog.scoring.live import score_sessions
from duolog.scoring.metrics.formal import formal_values
from duolog.scoring.metrics.sample import Sample
from duolog.scoring.metrics.values import Facts
from duolog.scoring.trajectory.points import Trajectory

BASE = "bounded"
TAU = 2

VALUES: Mapping[str, tuple[str, ...]] = {
    "attention": ("20", "none"),
    "skims": ("0", "1"),
    "memory": ("2", "none"),
    "misreads": ("0", "0.15"),
    "understanding": ("0.4", "1"),
    "learns": ("0.05", "0.5"),
    "trust": ("0.5", "1"),
    "trust_loss": ("0", "0.5"),
    "trust_gain": ("0", "0.3"),
    "leniency": ("0", "0.6"),
    "anchoring": ("0", "0.5"),
    "reading_cost": ("0", "1.5"),
    "rating_noise": ("0", "1"),
    "vague": ("0", "0.4"),
    "untold": ("0", "2"),
    "ambiguous": ("0", "0.4"),
    "mishears": ("0", "0.3"),
    "contentment": ("0.7",),
}
"""A low and a high value of each number; of one that is at its highest, only a low one."""

COLUMNS = ("U", f"D@{TAU}", "minutes")

Numbers = Mapping[str, float | None]


def variants() -> Iterator[tuple[str, str, str]]:
    """Each number with a value, and the persona that has it."""
    for number, values in VALUES.items():
        for value in values:
            yield number, value, f"{BASE}+{number}={value}"


def numbers_of(item: Trajectory) -> Numbers:
    """The numbers of one session that are compared."""
    facts = Facts([item])
    values = formal_values(facts, (TAU,))
    overall, lost = values.overall[0], (values.stops[TAU] - values.reference)[0]
    seconds = item.points[-1].effort.get("seconds") if item.points else None
    return {
        "U": None if np.isnan(overall) else float(overall),
        f"D@{TAU}": None if np.isnan(lost) else float(lost),
        "minutes": None if seconds is None else seconds / 60.0,
    }


async def load(log: str) -> dict[tuple[str, str], dict[str, Numbers]]:
    """The numbers of all sessions, by agent and user, and by instance."""
    found: dict[tuple[str, str], dict[str, Numbers]] = {}
    async with open_log(f"sqlite:///{log}", create=False) as opened:
        async for item in score_sessions(opened):
            if item.state != "open":
                cell = (item.group["agent"], item.group["user"])
                found.setdefault(cell, {})[item.instance] = numbers_of(item)
    return found


def effect(before: Mapping[str, Numbers], after: Mapping[str, Numbers], name: str) -> str:
    """The mean difference of one column, with its interval; in bold if that excludes 0."""
    column = []
    for instance in sorted(before):
        old, new = before[instance][name], after[instance][name]
        column.append(None if old is None or new is None else new - old)
    found = Sample({"d": column_of(column)}, 2000, f"people/{name}").estimate("d")
    if found.value is None:
        return "–"
    if found.low == found.high or found.low is None or found.high is None:
        return shown(found.value, name)
    span = f"{shown(found.low, name)}, {shown(found.high, name)}"
    value = shown(found.value, name)
    return f"**{value}** ({span})" if found.low > 0 or found.high < 0 else f"{value} ({span})"


def shown(value: float, name: str) -> str:
    """A difference: three places of utilities, one of minutes; 0 is without a sign."""
    text = f"{value:+.1f}" if name == "minutes" else f"{value:+.3f}"
    return text if text.strip("+-0.") else "0"


def table(found: Mapping[tuple[str, str], Mapping[str, Numbers]], agents: Sequence[str]) -> str:
    """The table in Markdown: a row per number and value, columns per agent."""
    shared = set.intersection(*(set(numbers) for numbers in found.values()))
    cells = {cell: {name: numbers[name] for name in shared} for cell, numbers in found.items()}
    columns = [(agent, name) for agent in agents for name in COLUMNS]
    lines = [
        f"{len(shared)} instances",
        "",
        f"| | {' | '.join(f'{agent}: {name}' for agent, name in columns)} |",
        f"|---{'|---' * len(columns)}|",
    ]
    means = [
        Sample({"x": column_of(one[name] for one in cells[agent, BASE].values())}, 0, "")
        .estimate("x")
        .value
        for agent, name in columns
    ]
    said = ["–" if mean is None else f"{mean:.3g}" for mean in means]
    lines.append(f"| *as it is* | {' | '.join(said)} |")
    for number, value, user in variants():
        row = [effect(cells[agent, BASE], cells[agent, user], name) for agent, name in columns]
        lines.append(f"| `{number}` {value} | {' | '.join(row)} |")
    return "\n".join(lines)


def run() -> None:
    """Runs the sessions that the arguments ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("task", help="a task whose users have personas, e.g. travel")
    parser.add_argument("--agents", default="one-stage,two-stage", help="separated by commas")
    parser.add_argument("--sessions", type=int, default=60, help="instances per cell")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--log", required=True, help="SQLite file to run into")
    parser.add_argument("--print", action="store_true", help="run nothing")
    given = parser.parse_args()
    users = ",".join([BASE, *(user for _, _, user in variants())])
    options = ["--agents", given.agents, "--users", users, "--sessions", str(given.sessions)]
    if not given.print:
        ended = duolog(["run", given.task, *options, "--seed", str(given.seed), "--log", given.log])
        if ended:
            raise SystemExit(ended)
    print(table(anyio.run(partial(load, given.log)), given.agents.split(",")))


if __name__ == "__main__":
    run()
