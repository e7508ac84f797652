"""The paper's findings as hypotheses on our experiments: each with estimate, interval and verdict.

A hypothesis says on which side of a limit a number lies; in most of them, the limit is 0. It *holds* if the whole 95 %
interval lies on that side, *does not hold* if it lies on the other, and is *not shown* if it contains the limit. A hypothesis
on the drop gets the verdict that all readings of the ratings give, and *depends* if they differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from duolog.benchmarks.science.cells import WEAK, Size
from duolog.benchmarks.science.playing import Played
from duolog.benchmarks.science.quantities import (
    RULES,
    Quantity,
    Rule,
    difference,
    drop,
    final,
    gain,
    rounds_to_first,
    token_ratio,
    unproductive,
    utility,
    utility_after,
)
from duolog.benchmarks.science.words import estimate, table
from duolog.engine.task import NOBODY
from duolog.scoring.columns.table import Array, Floats
from duolog.scoring.metrics.results import Estimate
from duolog.scoring.metrics.sample import Sample
from duolog.scoring.trajectory.points import Trajectory

__all__ = ("OPAQUE", "PERSON", "Finding", "findings", "phenomena_text")

PERSON: Final = "proactive"
"""The persona of the report."""

OPAQUE: Final = {"data": "report-dumper"}
"""Agents that explain nothing, by task."""

_ROUNDS: Final = 5  # after which the paper's curves are level
_TENTH: Final = 0.1  # of utility: "tens of percent" are at least this
_TWENTIETH: Final = 0.05

Verdict: TypeAlias = Literal["holds", "does not hold", "not shown", "depends"]

_VERDICTS: Final[tuple[Verdict, ...]] = ("holds", "does not hold", "not shown", "depends")
_USUAL: Final[Rule] = (3, "productive")
_TITLES: Final[Mapping[Verdict, str]] = {"depends": "depends on the reading of ratings"}


class Finding(NamedTuple):
    """A hypothesis on one task.

    Attributes:
        hypothesis: in words.
        task: the task, and the agent where it is about one.
        measure: what the estimate is.
        estimate: with its interval.
        sign: 1 where it is said to be above the limit, -1 where below.
        percent: whether it is a share.
        limit: the number with which the estimate is compared.
        readings: the estimates under all readings of the ratings, if it is about the drop.
    """

    hypothesis: str
    task: str
    measure: str
    estimate: Estimate
    sign: int
    percent: bool = False
    limit: float = 0.0
    readings: Sequence[Estimate] = ()

    @property
    def verdict(self) -> Verdict:
        """Whether the interval lies on the side that is said, under all readings."""
        verdicts = {self._verdict(one) for one in self.readings or (self.estimate,)}
        return verdicts.pop() if len(verdicts) == 1 else "depends"

    @property
    def counted(self) -> str:
        """In how many readings it gets which verdict; empty if there are none."""
        verdicts = [self._verdict(one) for one in self.readings]
        if len(set(verdicts)) == 1:
            return f"{verdicts[0]} in all {len(verdicts)}"
        return ", ".join(
            f"{verdict} in {verdicts.count(verdict)}"
            for verdict in _VERDICTS
            if verdict in verdicts
        )

    def _verdict(self, found: Estimate) -> Verdict:
        if found.low is None or found.high is None:
            return "not shown"
        low, high = found.low - self.limit, found.high - self.limit
        if self.sign < 0:
            low, high = -high, -low
        if low > 0:
            return "holds"
        return "does not hold" if high < 0 else "not shown"


def findings(found: Mapping[str, Played], size: Size) -> Iterator[Finding]:
    """All hypotheses, task by task.

    Args:
        found: the sessions of each task.
        size: what was played.
    """
    for task, played in found.items():
        one, two = played["one-stage", PERSON], played["two-stage", PERSON]
        compared = partial(_compared, task, one, two, size)
        yield compared(
            "Two-stage starts slower",
            "rounds to the first update, two- less one-stage",
            rounds_to_first,
            1,
        )
        yield compared("Two-stage ends better", "U, two- less one-stage", utility, 1)
        larger = partial(compared, "The drop of two-stage is larger", "D@1, two- less one-stage")
        readings = [larger(drop(1, rule), -1).estimate for rule in RULES]
        yield larger(drop(1, _USUAL), -1)._replace(readings=readings)
        for agent, sessions in (("one-stage", one), ("two-stage", two)):
            name = f"{task}, {agent}"
            yield Finding(
                "Utility rises less per round after five rounds than before",
                name,
                "rise per round up to round 5 less that from 5 to 10",
                _mean(f"curve/{name}", sessions, _flattening, size),
                1,
            )
            yield Finding(
                "After five rounds there is a plateau",
                name,
                "U after 5 rounds less nine tenths of the final one",
                _mean(f"plateau/{name}", sessions, _plateau, size),
                1,
            )
            yield Finding(
                "A user who quits after one unproductive round loses more than 10 % of the final utility",
                name,
                "D@1 as a share of the final utility; the hypothesis says that it is below -10 %",
                _relative(f"drop/{name}", sessions, size, _USUAL),
                -1,
                percent=True,
                limit=-_TENTH,
                readings=[_relative(f"drop/{name}", sessions, size, rule) for rule in RULES],
            )
        alone = played["auto", NOBODY]
        versus = partial(difference, quantity=utility, first=[alone], resamples=size.resamples)
        if task in OPAQUE:
            opaque = versus(f"opaque/{task}", second=[played[OPAQUE[task], PERSON]])
            yield Finding(
                "With an opaque agent collaboration is no better than automation",
                f"{task}, {OPAQUE[task]}",
                "U, together less alone",
                opaque.difference,
                -1,
            )
        explained = versus(f"explained/{task}", second=[two])
        yield Finding(
            "With an agent that asks and explains it is better",
            f"{task}, two-stage",
            "U, together less alone",
            explained.difference,
            1,
        )
        yield from _weak(task, played, size)


def _weak(task: str, played: Played, size: Size) -> Iterator[Finding]:
    """Hypotheses on agents that fail as the paper describes, compared with the good ones."""
    one = played["one-stage", PERSON]
    alone = played["auto", NOBODY]
    for agent in WEAK:
        name, weak = f"{task}, {agent}", played[agent, PERSON]
        yield Finding(
            "With a weak agent there is a plateau: the gain is below a twentieth",
            name,
            "the gain less 0.05",
            _mean(f"weak plateau/{name}", weak, lambda items: gain(items) - _TWENTIETH, size),
            -1,
        )
        compared = partial(difference, second=[weak], resamples=size.resamples)
        by_least = [
            compared(f"weak rounds/{name}", quantity=unproductive(least), first=[one]).difference
            for least in (2, 3, 4)
        ]
        yield Finding(
            "With a weak agent more rounds are unproductive",
            name,
            "the share of rounds rated below 3, less that with one-stage",
            by_least[1],
            1,
            readings=by_least,
        )
        together = compared(f"weak/{name}", quantity=utility, first=[alone])
        yield Finding(
            "With a weak agent collaboration is no better than automation",
            name,
            "U, together less alone",
            together.difference,
            -1,
        )
    agents = ("one-stage", "two-stage", *WEAK)
    yield Finding(
        "There is a sweet spot in the ratio of the agent's tokens to the human's",
        task,
        "mean U of the three middle fifths by that ratio, less that of the two outer ones",
        _sweet_spot(task, [item for a in agents for item in _items(played[a, PERSON])], size),
        1,
    )


def phenomena_text(found: Mapping[str, Played], size: Size) -> str:
    """The report in Markdown: a table of verdicts, then one for each hypothesis."""
    by_hypothesis: dict[str, list[Finding]] = {}
    for one in findings(found, size):
        by_hypothesis.setdefault(one.hypothesis, []).append(one)
    lines = table(
        ("the paper's phenomenon", *(_TITLES.get(verdict, verdict) for verdict in _VERDICTS)),
        [
            [hypothesis, *(_places(rows, verdict) for verdict in _VERDICTS)]
            for hypothesis, rows in by_hypothesis.items()
        ],
    )
    for hypothesis, rows in by_hypothesis.items():
        lines += ["", f"## {hypothesis}", "", f"The number is: {rows[0].measure}.", ""]
        readings = any(one.readings for one in rows)
        lines += table(
            (
                "task",
                "estimate and 95 % interval",
                "verdict",
                *(("verdict by reading",) if readings else ()),
            ),
            [
                [
                    one.task,
                    estimate(one.estimate, 1 if one.percent else 3, percent=one.percent),
                    one.verdict,
                    *((one.counted,) if readings else ()),
                ]
                for one in rows
            ],
        )
    return "\n".join(lines)


def _compared(
    task: str,
    one: Mapping[str, Trajectory],
    two: Mapping[str, Trajectory],
    size: Size,
    hypothesis: str,
    measure: str,
    quantity: Quantity,
    sign: int,
) -> Finding:
    found = difference(f"{measure}/{task}", quantity, [one], [two], resamples=size.resamples)
    return Finding(hypothesis, task, measure, found.difference, sign)


def _mean(
    name: str, sessions: Mapping[str, Trajectory], quantity: Quantity, size: Size
) -> Estimate:
    return Sample({"x": quantity(_items(sessions))}, size.resamples, name).estimate("x")


def _relative(name: str, sessions: Mapping[str, Trajectory], size: Size, rule: Rule) -> Estimate:
    """The drop as a share of the final utility."""
    items = _items(sessions)
    columns = {"drop": drop(1, rule)(items), "final": final(items)}

    def share(dropped: Array, ended: Array) -> Array:
        return dropped / ended

    return Sample(columns, size.resamples, name).estimate("drop", "final", formula=share)


def _items(sessions: Mapping[str, Trajectory]) -> list[Trajectory]:
    return [sessions[one] for one in sorted(sessions)]


def _sweet_spot(task: str, items: Sequence[Trajectory], size: Size) -> Estimate:
    """How much better sessions with a middling ratio of tokens are than those with an extreme one."""
    ratios = token_ratio(items)
    known = np.flatnonzero(~np.isnan(ratios))
    known = known[np.argsort(ratios[known], kind="stable")]
    low, high = len(known) // 5, len(known) - len(known) // 5
    place = np.arange(len(known))
    inside = (low <= place) & (place < high)
    found = utility([items[at] for at in known.tolist()])
    middle, outer = np.where(inside, found, np.nan), np.where(inside, np.nan, found)
    sample = Sample({"middle": middle, "outer": outer}, size.resamples, f"ratio/{task}")

    def more(inside: Array, outside: Array) -> Array:
        return inside - outside

    return sample.estimate("middle", "outer", formula=more)


def _flattening(items: Sequence[Trajectory]) -> Floats:
    early, late = utility_after(items, _ROUNDS), utility_after(items, 2 * _ROUNDS)
    return (early - (late - early)) / _ROUNDS


def _plateau(items: Sequence[Trajectory]) -> Floats:
    return utility_after(items, _ROUNDS) - (1.0 - _TENTH) * final(items)


def _places(rows: Sequence[Finding], verdict: Verdict) -> str:
    return "; ".join(one.task for one in rows if one.verdict == verdict) or "–"
