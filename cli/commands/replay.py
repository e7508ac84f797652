"""``duolog replay``: shows a log's records and the updates of scoring, in their live order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import example
from ..lookup import existing_log, find_session
from ..output import print_json, say
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ...engine.log.contract import EventLog
    from ...scoring.check import Check
    from ..scoring import ScorerFinder

__all__ = ("replay_command",)

_NOT_SOUND = 1


@app.command(
    "replay",
    short_help="Streams a log as it was live, or checks it.",
    epilog=example(
        "duolog replay demo.db --session travel-3-two-stage --speed 10",
        "duolog replay demo.db --session travel-3-two-stage --until r2",
        "duolog replay demo.db --json --utility retention",
        "duolog replay demo.db --check",
    ),
)
def replay_command(
    log: options.LogToRead,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="SESSION", help="Only this session; the beginning of its id is enough."
        ),
    ] = None,
    speed: Annotated[
        str,
        typer.Option(metavar="NUMBER|max", help="Session seconds per second, or max: no waiting."),
    ] = "max",
    until: Annotated[
        str | None,
        typer.Option(
            metavar="POINT",
            help="Stop there: a round (r3), a version (v57), session time (90s, 1:30), or a "
            "date and time.",
        ),
    ] = None,
    rounds: options.CountRounds = "handoff",
    utility: options.Utility = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare the recorded values with values computed again."),
    ] = False,
    task: options.OfTask = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON Lines.")] = False,
) -> None:
    """Streams the records of a log with the updates that follow from them, as they were live.

    It only reads: duolog score adds measurements. With --check it compares instead: recorded
    measurements with those that their scorers make now, and recorded derivations with new ones. The
    exit code is 1 if anything differs, or if nothing could be checked because no recorded measurement
    can be made again or all contents were forgotten.
    """
    pace = _speed(speed)
    if check and (until is not None or pace is not None):
        raise InvalidInput("--check cannot be combined with --until or --speed")
    if task is not None and not check:
        raise InvalidInput("--task needs --check")
    if utility is not None and check:
        raise InvalidInput("--check compares all measurements; leave --utility out")
    if check:
        from ..scoring import ScorerFinder

        scorers = ScorerFinder(task)
        if not run(lambda: _check(log, session, scorers, as_json=as_json)):
            raise typer.Exit(_NOT_SOUND)
        return

    from ...scoring.replay import Replay
    from ...scoring.trajectory.options import Options
    from ..lookup import parse_until

    point = None if until is None else parse_until(until)

    async def main() -> None:
        from ..text.replay import printer

        async with existing_log(log) as opened:
            name = None if session is None else (await find_session(opened, session)).session
            scored = Options(rounds=rounds, utility=utility)
            if utility is not None:
                from ...experiments.sources import check_scorers

                await check_scorers(opened, scored)
            show = printer(name, as_json=as_json, flush=pace is not None)
            steps = Replay(opened, session=name, options=scored, speed=pace, until=point)
            async for step in steps:
                show(step)

    run(main)


def _speed(text: str) -> float | None:
    if text == "max":
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not (speed > 0 and math.isfinite(speed)):
        raise InvalidInput(f"--speed expects a number above 0, or max, got {text!r}")
    return speed


async def _check(where: str, name: str | None, scorers: ScorerFinder, *, as_json: bool) -> bool:
    """Checks one session or all; returns whether something was checked, and nothing differs."""
    from ...scoring.check import check_session

    async with existing_log(where) as log:
        names = await _names(log, name)
        checks = []
        for one in names:
            checked = await check_session(log, one, await scorers.of(log, one))
            checks.append(checked)
            if as_json:
                print_json(checked)
            else:
                _print_differences(checked)
    differences = sum(len(checked.differences) for checked in checks)
    if not as_json:
        _summarise(checks, differences)
    for why in scorers.missing:
        say(f"duolog: {why}")
    unchecked = _unchecked(checks)
    if unchecked is not None:
        say(f"duolog: {unchecked}")
    return not differences and unchecked is None


def _unchecked(checks: list[Check]) -> str | None:
    """Why nothing could be checked; None if something was."""
    if all(checked.forgotten for checked in checks):
        return "nothing was checked: the log holds no session with contents"
    measured = sum(checked.measurements for checked in checks)
    if measured and not any(checked.remeasured for checked in checks):
        return f"no measurement was checked: none of {measured} can be made again here"
    return None


async def _names(log: EventLog, name: str | None) -> list[str]:
    if name is not None:
        return [(await find_session(log, name)).session]
    return [summary.session async for summary in log.sessions()]


def _print_differences(checked: Check) -> None:
    from ...scoring.display.texts import clean

    for found in checked.differences:
        recorded = "nothing" if found.recorded is None else found.recorded
        fresh = "nothing" if found.fresh is None else found.fresh
        text = f"{found.session}: {found.what}: recorded {recorded}, afresh {fresh}"
        typer.echo(clean(text).replace("\n", " "))


def _summarise(checks: list[Check], differences: int) -> None:
    from ...engine.text import quantity

    records = sum(checked.records for checked in checks)
    measured = sum(checked.measurements for checked in checks)
    again = sum(checked.remeasured for checked in checks)
    differ = "nothing differs" if not differences else f"{quantity(differences, 'difference')}"
    typer.echo(
        f"{quantity(len(checks), 'session')} with {quantity(records, 'record')}: {differ}; {again} of "
        f"{quantity(measured, 'measurement')} measured again"
    )
    if skipped := sorted({stream for checked in checks for stream in checked.skipped}):
        say(f"not measured again, since no such scorer is available: {', '.join(skipped)}")
    if forgotten := sum(checked.forgotten for checked in checks):
        say(f"{quantity(forgotten, 'session')} erased: nothing to compare there")
