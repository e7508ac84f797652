"""Whether the adaptive agent is non-inferior to each of the others, on held-out instances.

Per task, over all people (each instance averaged over them), it is non-inferior to another agent in a quantity if the
mean difference is not worse than a margin: 0.02 in U and D@2, and 5 % in minutes. The test is the sign-flip test of the
differences moved by the margin, one-sided. All p-values of a task are adjusted together, by Holm's method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
import numpy as np
from duolog.benchmarks.science.cells import PERSONAS
from duolog.benchmarks.science.playing import Played
from duolog.benchmarks.science.quantities import RULES, Quantity, drop, means, minutes, utility
from duolog.benchmarks.science.words import cell, table
from duolog.scoring.comparison.inference import sign_flip_p
from duolog.scoring.comparison.pairs import SIGNIFICANCE, Difference, holm, paired_difference

__all__ = ("margins_text",)

_ADAPTIVE: Final = "adaptive"
_OTHERS: Final = ("one-stage", "two-stage")
_MARGIN: Final = 0.02
_SHARE: Final = 0.05


class _Test(NamedTuple):
    """One test of non-inferiority.

    Attributes:
        other: the agent that it is compared with.
        name: the quantity.
        found: the difference, with the one-sided p.
    """

    other: str
    name: str
    found: Difference

    @property
    def passes(self) -> bool:
        """Whether the adaptive agent is non-inferior."""
        return self.found.adjusted is not None and self.found.adjusted < SIGNIFICANCE


def margins_text(found: Mapping[str, Played]) -> list[str]:
    """The table in Markdown, and the tasks in which it is non-inferior to both in all quantities."""
    rows: list[list[str]] = []
    passed: list[str] = []
    for task, played in found.items():
        tests = _tests(task, played)
        for other in _OTHERS:
            mine = {one.name: one for one in tests if one.other == other}
            kept = [one.passes for name, one in mine.items() if name.startswith("D@2")]
            rows.append(
                [
                    task,
                    other,
                    _cell(mine["U"], 3),
                    f"{sum(kept)} of {len(kept)}",
                    _cell(mine["minutes"], 2),
                ]
            )
        if all(one.passes for one in tests):
            passed.append(task)
    return [
        (
            f"Non-inferiority of `adaptive` to each of the others, over all people: the margin is {_MARGIN} in U and in "
            f"D@2, and {_SHARE:.0%} in minutes. In bold what is shown at 5 % after Holm's adjustment of all tests of a "
            "task; for D@2, under how many of the six rating rules it is shown."
        ),
        "",
        *table(("task", "compared with", "U", "D@2", "minutes"), rows),
        "",
        f"Non-inferior to both in everything, under every rating rule: {', '.join(passed) or 'in no task'}.",
    ]


def _tests(task: str, played: Played) -> list[_Test]:
    quantities: dict[str, tuple[Quantity, int]] = {"U": (utility, 1), "minutes": (minutes, -1)}
    quantities |= {f"D@2/{rule}": (drop(2, rule), 1) for rule in RULES}
    tests = [
        _Test(other, name, _tested(f"margin/{task}/{other}/{name}", played, other, quantity, sign))
        for other in _OTHERS
        for name, (quantity, sign) in quantities.items()
    ]
    adjusted = holm([one.found for one in tests])
    return [one._replace(found=each) for one, each in zip(tests, adjusted, strict=True)]


def _tested(name: str, played: Played, other: str, quantity: Quantity, sign: int) -> Difference:
    """The difference of the adaptive agent from another one, with p for: it is worse by the margin.

    Args:
        name: seeds the test.
        played: the sessions of the task.
        other: the agent that it is compared with.
        quantity: what is compared.
        sign: 1 if more of it is better, -1 if less is.
    """
    sessions = [[played[agent, one] for one in PERSONAS] for agent in (other, _ADAPTIVE)]
    first, second = means(quantity, *sessions)
    found = paired_difference(name, first, second, bootstrap=0, seed=name)
    margin = _MARGIN if sign > 0 else _SHARE * (found.first or 0.0)
    moved = sign * (second - first) + margin
    moved = moved[~np.isnan(moved)]
    p = sign_flip_p(moved, name)
    if p is not None:  # of both sides: take the one that is asked for
        p = p / 2 if moved.mean() > 0 else 1.0 - p / 2
    return msgspec.structs.replace(found, p=p)


def _cell(test: _Test, digits: int) -> str:
    text = cell(test.found.difference.value, digits)
    signed = text if text.startswith(("-", "–")) else f"+{text}"
    return f"**{signed}**" if test.passes else signed
