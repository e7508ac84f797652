"""What each habit of an agent does: the two-stage agent with it and without it, on the same instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from duolog.agents.habits import HABITS
from duolog.benchmarks.science.cells import Size
from duolog.benchmarks.science.playing import Played
from duolog.benchmarks.science.quantities import difference, drop, minutes, utility
from duolog.benchmarks.science.words import cell, estimate, table
from duolog.scoring.comparison.pairs import SIGNIFICANCE, holm

__all__ = ("ABLATED", "ablated_agents", "ablation_text")

ABLATED: Final = "two-stage"
PERSON: Final = "proactive"

_OFF: Final = {("travel", "goals"), ("finance", "goals")}
"""Habits that the shipped agents do not have, and that are switched on instead."""


def ablated_agents(task: str) -> list[str]:
    """The variants of the agent that are played in a task."""
    return [_variant(task, habit) for habit in HABITS]


def ablation_text(found: Mapping[str, Played], size: Size) -> str:
    """The table of the ablation in Markdown.

    Args:
        found: the sessions of each task.
        size: what was played.
    """
    quantities = {"U": utility, "D@2": drop(2), "minutes": minutes}
    cells = [
        (task, habit, name, quantity)
        for task, habit in _pairs(found)
        for name, quantity in quantities.items()
    ]
    differences = []
    for task, habit, name, quantity in cells:
        usual, other = found[task][ABLATED, PERSON], found[task][_variant(task, habit), PERSON]
        without, having = (usual, other) if (task, habit) in _OFF else (other, usual)
        differences.append(
            difference(
                f"ablation/{task}/{habit}/{name}",
                quantity,
                [without],
                [having],
                resamples=size.resamples,
            )
        )
    adjusted = dict(zip([one[:3] for one in cells], holm(differences), strict=True))
    body = []
    for task, habit in _pairs(found):
        row = [task, f"`{habit}`" + (" (off as shipped)" if (task, habit) in _OFF else "")]
        for name in quantities:
            one = adjusted[task, habit, name]
            digits = 2 if name == "minutes" else 3
            real = one.adjusted is not None and one.adjusted < SIGNIFICANCE
            row += [
                f"{cell(one.first, digits)} → {cell(one.second, digits)}",
                estimate(one.difference, digits, bold=real),
            ]
        body.append(row)
    head = ("task", "habit", "U", "difference", "D@2", "difference", "minutes", "difference")
    lines = [
        (
            f"`{ABLATED}` without and with each habit, {size.ablated * len(size.seeds)} instances (seeds "
            f"{', '.join(map(str, size.seeds))}), {PERSON} people. In brackets: 95 % bootstrap intervals; in "
            "bold: significant at 5 % after Holm's adjustment of the whole table."
        ),
        "",
        *table(head, body),
    ]
    return "\n".join(lines)


def _pairs(found: Mapping[str, Played]) -> Iterator[tuple[str, str]]:
    for task in found:
        for habit in HABITS:
            yield task, habit


def _variant(task: str, habit: str) -> str:
    return f"{ABLATED}:{'' if (task, habit) in _OFF else 'no-'}{habit}"
