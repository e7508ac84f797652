"""The value of asking, from forks: what one question brings at 0 to 90 % of the work.

Sessions of an adaptive agent that asks nothing are forked after a share of their time. In the fork the agent asks its next
question there, and nothing more. The user answers as they would, and both continue to the end with the same seed. A question
is worth what the fork differs by from its origin:

    worth = U + D@2 - price · minutes of the human

D@2 is the mean over the rating thresholds, and the price of a minute is that of ``duolog tune``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
import numpy as np
from duolog.agents.rules_file import FittedRules, rules_text
from duolog.benchmarks.science.cells import PERSONAS, Size
from duolog.benchmarks.science.playing import AT_ONCE, Players, load, log_of, play, scored
from duolog.benchmarks.science.quantities import (
    Quantity,
    difference,
    drop,
    minutes,
    row_means,
    utility,
)
from duolog.benchmarks.science.words import estimate, table
from duolog.engine.errors import InvalidInput
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from duolog.engine.session.runner import Session
from duolog.engine.session.simulation import Outcome, SessionFailure, simulate
from duolog.experiments.continuations import Changes, Continuations, load_records
from duolog.experiments.parts import kind_of
from duolog.experiments.tuning import Weights
from duolog.scoring.columns.table import Floats
from duolog.scoring.comparison.sensitivity import THRESHOLDS
from duolog.scoring.control_rules import ControlRules
from duolog.scoring.trajectory.points import Trajectory

__all__ = ("Asked", "asking_text", "play_asking")

Asked: TypeAlias = Mapping[float, Sequence[Mapping[str, Trajectory]]]
"""Sessions by the share of the work at which their agent asked, for each person by instance; at ``NEVER`` the origins."""

NEVER: Final = 1.0
_SHARES: Final = (0.0, 0.3, 0.6, 0.9)
_FIRST: Final = 2  # least number of versions that a fork inherits
_LONG: Final = 12  # rounds; high enough that no rule ends the session early
_SILENT: Final = ControlRules(
    questions=0,
    asks=0,
    first="ask",
    persist=_LONG,
    insist=_LONG,
    measure="seconds",
    tolerance=_LONG,
)
_ASKS: Final = msgspec.structs.replace(_SILENT, least=1, questions=1, asks=1)


async def play_asking(task: str, size: Size, folder: Path) -> Asked:
    """Plays the sessions without a question, and their forks with one.

    Args:
        task: the task.
        size: what is played.
        folder: the folder of the logs.

    Raises:
        InvalidInput: a session could not be run.
    """
    silent, asks = (
        _agent(folder / f"{name}.toml", rules)
        for name, rules in (("silent", _SILENT), ("asks", _ASKS))
    )
    await play(task, [Players([silent], PERSONAS, size.asked)], size.trained, folder)
    played = await load(task, folder, size.trained)
    origins = [played[kind_of(silent), person] for person in PERSONAS]
    makers: list[Callable[[], Session]] = []
    cuts: dict[tuple[str, float], int] = {}
    async with open_log(log_of(task, folder), create=False) as log:
        making = Continuations(log)
        for origin in (one for sessions in origins for one in sessions.values()):
            records = await load_records(log, origin.session)
            trace = [one for one in records if one.stream == TRACE]
            cuts |= {(origin.session, share): _cut(trace, share) for share in _SHARES}
            for version in dict.fromkeys(cuts[origin.session, share] for share in _SHARES):
                makers += await making.makers(records, version, [Changes(agent=asks)])
        forks = await _forks(makers)
    return {
        NEVER: origins,
        **{
            share: [
                {
                    name: forks[one.session, cuts[one.session, share]]
                    for name, one in sessions.items()
                }
                for sessions in origins
            ]
            for share in _SHARES
        },
    }


def _agent(path: Path, rules: ControlRules) -> str:
    """The name of an adaptive agent with these rules, which it reads from a file."""
    path.write_text(rules_text(FittedRules(rules=rules)), encoding="utf-8")
    return f"adaptive:{path}"


def _cut(trace: Sequence[Record], share: float) -> int:
    """The last version of a session at a share of its time."""
    until = share * trace[-1].time
    return max(_FIRST, sum(one.time <= until for one in trace))


async def _forks(makers: Sequence[Callable[[], Session]]) -> dict[tuple[str, int], Trajectory]:
    """The sessions by origin and version.

    Raises:
        InvalidInput: one could not be run.
    """
    failures: list[SessionFailure] = []

    def note(outcome: Outcome) -> None:
        if isinstance(outcome, SessionFailure):
            failures.append(outcome)

    async with open_log("memory://") as log:
        await simulate(log, makers, concurrency=AT_ONCE, on_outcome=note)
        if failures:
            raise InvalidInput(f"{failures[0].session} could not be run: {failures[0].error}")
        return {
            (item.forked_from.session, item.forked_from.version): item
            for _, item in await scored(log)
            if item.forked_from is not None
        }


def asking_text(found: Mapping[str, Asked], size: Size) -> str:
    """The table of the value of asking in Markdown.

    Args:
        found: the sessions of each task.
        size: what was played.
    """
    quantities: tuple[tuple[Quantity, int], ...] = (
        (utility, 3),
        (_lost, 3),
        (minutes, 2),
        (_worth, 3),
    )
    body = [
        [
            task,
            f"{share:.0%}",
            *(
                _cell(f"asking/{task}/{share}/{at}", one, asked, share, PERSONAS, size, digits)
                for at, (one, digits) in enumerate(quantities)
            ),
            *(
                _cell(f"asking/{task}/{share}/{one}", _worth, asked, share, (one,), size, 3)
                for one in PERSONAS
            ),
        ]
        for task, asked in found.items()
        for share in _SHARES
    ]
    head = (
        "task",
        "asked at",
        "U",
        "D@2",
        "minutes",
        "worth",
        *(f"worth, {one}" for one in PERSONAS),
    )
    lines = [
        (
            f"One question at a share of the work, compared with none: {size.asked * len(size.trained)} instances with each person "
            f"(seeds {', '.join(map(str, size.trained))}, on which the rules were fitted), each forked {len(_SHARES)} times; 95 % bootstrap "
            f"intervals. Worth is U + D@2 - {Weights().price} · minutes, with D@2 averaged over rating thresholds "
            f"{', '.join(map(str, THRESHOLDS))}."
        ),
        "",
        *table(head, body),
    ]
    return "\n".join(lines)


def _cell(
    name: str,
    quantity: Quantity,
    asked: Asked,
    share: float,
    people: Sequence[str],
    size: Size,
    digits: int,
) -> str:
    """A difference between the forks at a share and their origins."""
    before, after = (
        [sessions for person, sessions in zip(PERSONAS, asked[at], strict=True) if person in people]
        for at in (NEVER, share)
    )
    found = difference(name, quantity, before, after, resamples=size.resamples)
    return estimate(found.difference, digits)


def _lost(items: Sequence[Trajectory]) -> Floats:
    """D@2, averaged over the rating thresholds."""
    return row_means(np.stack([drop(2, (least, "productive"))(items) for least in THRESHOLDS], 1))


def _worth(items: Sequence[Trajectory]) -> Floats:
    """The worth of each session; a missing drop counts as 0."""
    lost = _lost(items)
    lost = np.where(np.isnan(lost), 0.0, lost)
    return utility(items) + lost - Weights().price * minutes(items)
