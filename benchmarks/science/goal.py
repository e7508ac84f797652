"""The goal of the adaptive agent, on held-out instances: nowhere worse, and better in most domains.

Per task and person, and per task over all people (each instance averaged over them), the adaptive agent is
compared with that of the one- and the two-stage agent that has the higher mean utility there. All
p-values that the goal goes by are adjusted together, by Holm's method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from duolog.benchmarks.science.cells import PERSONAS, Size
from duolog.benchmarks.science.margins import margins_text
from duolog.benchmarks.science.playing import Played
from duolog.benchmarks.science.quantities import (
    RULES,
    Quantity,
    Rule,
    difference,
    drop,
    minutes,
    utility,
)
from duolog.benchmarks.science.words import cell, estimate, table
from duolog.scoring.comparison.pairs import SIGNIFICANCE, Difference, holm
from duolog.scoring.metrics.numbers import mean

__all__ = ("goal_text",)

_ADAPTIVE = "adaptive"
_OTHERS = ("one-stage", "two-stage")
_NEEDED = 3  # domains in which it is to be better
_USUAL: Rule = (3, "productive")


class _Row(NamedTuple):
    """The adaptive agent compared with the better of the others.

    Attributes:
        task: the task.
        people: the persona, or ``all``.
        other: the agent that it is compared with.
        differences: by quantity; ``U``, ``minutes``, and D@2 by rating rule.
    """

    task: str
    people: str
    other: str
    differences: dict[str | Rule, Difference]

    def better(self, name: str | Rule, sign: int) -> bool:
        """Whether it is significantly more (1) or less (-1) in something."""
        found = self.differences[name]
        value = found.difference.value or 0.0
        return found.adjusted is not None and found.adjusted < SIGNIFICANCE and sign * value > 0

    def wins(self, rule: Rule) -> bool:
        """Whether it is better under a rating rule: in U, or else in the human's time or D@2."""
        if self.better("U", 1):
            return True
        return not self.better("U", -1) and (self.better("minutes", -1) or self.better(rule, 1))


def goal_text(found: Mapping[str, Played], size: Size) -> str:
    """The table of the goal in Markdown, and whether it is reached.

    Args:
        found: the sessions of each task.
        size: what was played.
    """
    rows = _adjusted([row for task in found for row in _rows(task, found[task], size)])
    alone = [row for row in rows if row.people != "all"]
    pooled = [row for row in rows if row.people == "all"]
    worse = [f"{row.task} with {row.people}" for row in alone if row.better("U", -1)]
    wins = {rule: [row.task for row in pooled if row.wins(rule)] for rule in RULES}
    fewest = min(wins.values(), key=len)
    reached = not worse and len(fewest) >= _NEEDED
    lines = [
        (
            f"{size.instances * len(size.seeds)} instances per task and person (seeds "
            f"{', '.join(map(str, size.seeds))}). Differences are those of `adaptive` from the better of "
            "`one-stage` and `two-stage`, with 95 % bootstrap intervals; in bold what is significant at 5 % "
            "after Holm's adjustment of all tests in both tables."
        ),
        "",
        *_by_person(alone),
        "",
        *_by_task(pooled),
        "",
        (
            "D@2 by rating rule: what the least rating is that counts as progress, and what a missing one "
            "counts as."
        ),
        "",
        *_by_rule(pooled),
        "",
        (
            f"Nowhere significantly worse in U: {'yes' if not worse else 'no, worse in ' + ', '.join(worse)}. "
            f"Significantly better in U, or at equal U in the human's time or D@2, in at least {_NEEDED} "
            f"domains under every rating rule: {_which(wins)}."
        ),
        "",
        f"**The goal is {'reached' if reached else 'not reached'}.**",
        "",
        *margins_text(found),
    ]
    return "\n".join(lines)


def _rows(task: str, played: Played, size: Size) -> Iterator[_Row]:
    for person in PERSONAS:
        other = _best(played, (person,))
        yield _Row(task, person, other, {"U": _difference(task, played, other, (person,), size)})
    other = _best(played, PERSONAS)
    sessions = [[played[agent, one] for one in PERSONAS] for agent in (other, _ADAPTIVE)]

    def of(name: str, quantity: Quantity) -> Difference:
        return difference(
            f"goal/{task}/{name}",
            quantity,
            *sessions,
            resamples=size.resamples,
        )

    yield _Row(
        task,
        "all",
        other,
        {
            "U": of("U", utility),
            "minutes": of("minutes", minutes),
            **{rule: of(f"D@2/{rule}", drop(2, rule)) for rule in RULES},
        },
    )


def _difference(
    task: str, played: Played, other: str, people: Sequence[str], size: Size
) -> Difference:
    return difference(
        f"goal/{task}/{people[0]}",
        utility,
        [played[other, one] for one in people],
        [played[_ADAPTIVE, one] for one in people],
        resamples=size.resamples,
    )


def _best(played: Played, people: Sequence[str]) -> str:
    """The better of the others in mean utility."""

    def worth(agent: str) -> float:
        items = [item for one in people for item in played[agent, one].values()]
        found = utility(items)
        return mean(found[~np.isnan(found)].tolist()) or 0.0

    return max(_OTHERS, key=worth)


def _adjusted(rows: Sequence[_Row]) -> list[_Row]:
    flat = [each for row in rows for each in row.differences.values()]
    adjusted = iter(holm(flat))
    return [
        row._replace(differences={name: next(adjusted) for name in row.differences}) for row in rows
    ]


def _by_person(rows: Sequence[_Row]) -> list[str]:
    body = [
        [
            row.task,
            row.people,
            row.other,
            *_means(row.differences["U"]),
            estimate(
                row.differences["U"].difference, bold=row.better("U", 1) or row.better("U", -1)
            ),
        ]
        for row in rows
    ]
    return table(
        ("task", "person", "better of the others", "its U", "`adaptive`", "difference"), body
    )


def _by_task(rows: Sequence[_Row]) -> list[str]:
    body = []
    for row in rows:
        found = row.differences
        u, time, lost = found["U"], found["minutes"], found[_USUAL]
        body.append(
            [
                row.task,
                row.other,
                estimate(u.difference, bold=row.better("U", 1) or row.better("U", -1)),
                f"{cell(time.first, 1)} → {cell(time.second, 1)}",
                estimate(
                    time.difference, 2, bold=row.better("minutes", -1) or row.better("minutes", 1)
                ),
                f"{cell(lost.first)} → {cell(lost.second)}",
                estimate(lost.difference, bold=row.better(_USUAL, 1) or row.better(_USUAL, -1)),
            ]
        )
    head = ("all people", "compared with", "U", "minutes", "difference", "D@2", "difference")
    return table(head, body)


def _by_rule(rows: Sequence[_Row]) -> list[str]:
    head = ("rule", *(row.task for row in rows))
    body = [
        [
            f"{least}, missing {missing}",
            *(
                estimate(
                    row.differences[least, missing].difference,
                    bold=row.better((least, missing), 1) or row.better((least, missing), -1),
                )
                for row in rows
            ),
        ]
        for least, missing in RULES
    ]
    return table(head, body)


def _means(found: Difference) -> tuple[str, str]:
    return cell(found.first), cell(found.second)


def _which(wins: Mapping[Rule, Sequence[str]]) -> str:
    kinds = {tuple(tasks) for tasks in wins.values()}
    if len(kinds) == 1:
        tasks = next(iter(kinds))
        return f"{'yes' if len(tasks) >= _NEEDED else 'no'}, in {', '.join(tasks) or 'none'}"
    fewest = min(wins.values(), key=len)
    said = f"at least {len(fewest)} ({', '.join(fewest) or 'none'})"
    return f"{'yes' if len(fewest) >= _NEEDED else 'no'}, {said}"
