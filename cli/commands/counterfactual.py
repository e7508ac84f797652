"""``duolog counterfactual``: the drop at a tolerance, against continuations of the same sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from ..app import app
from ..arguments import MOST_RESAMPLES, example, numbers
from ..experiment import options
from ..lookup import existing_log
from ..output import print_json, say
from ..runtime import collect_rarely, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...engine.log.contract import EventLog
    from ...engine.session.runner import Session
    from ...scoring.metrics.counterfactual import CounterfactualReport
    from ...scoring.trajectory.options import Options
    from ...scoring.trajectory.points import Trajectory
    from ..continuation import Continuations

__all__ = ("counterfactual_command",)

_UNFINISHED = 3


@app.command(
    "counterfactual",
    short_help="Measures the drop at each tolerance against continuations without the stop.",
    epilog=example(
        "duolog counterfactual demo.db --tau 1,2,3 --continuations 8",
        "duolog counterfactual models.db --tau 2 --continuations 4 --concurrency 16 --json",
        note="The same command run again continues where it stopped, and more continuations are added "
        "to those that the log holds. duolog report leaves them out.",
    ),
)
def counterfactual_command(
    log: Annotated[str, typer.Argument(metavar="LOG", help="Path or URL of the log.")],
    tau: Annotated[str, typer.Option(metavar="NUMBERS", help="Tolerances.")] = "1,2,3",
    continuations: Annotated[
        int, typer.Option(min=1, help="Continuations of each session at each stop.")
    ] = 8,
    judge: Annotated[
        str,
        typer.Option(
            metavar="SCORER", help="Whose ratings count: NAME, NAME@VERSION, human or auto."
        ),
    ] = "auto",
    utility: Annotated[
        str | None,
        typer.Option(metavar="SCORER", help="Whose utility counts: NAME or NAME@VERSION."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="How many continuations run at the same time.")
    ] = 32,
    bootstrap: Annotated[
        int,
        typer.Option(min=0, max=MOST_RESAMPLES, help="Resamples for the intervals; 0 for none."),
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    api_base: options.ApiBase = None,
    text_actions: options.TextActions = None,
    dataset: Annotated[
        str | None, typer.Option(help="The data that the sessions were run on, if any.")
    ] = None,
    task: options.OfTask = None,
    as_json: Annotated[bool, typer.Option("--json", help="All numbers, for programs.")] = False,
) -> None:
    """Measures the drop at each tolerance against continuations without the stop.

    Where τ rounds without progress in a row would make the human leave, each session is continued
    from the last act of that round, with fresh seeds and without the stop. The utility at the stop
    less the mean final utility of the continuations is the real drop; beside it stands the observed
    one, from the one course of events there was. The continuations are forks in the same log.
    """
    from ...scoring.metrics.counterfactual import counterfactual_drops
    from ...scoring.trajectory.options import Options
    from ..arguments import choices

    taus = numbers(tau, "--tau")
    texts = () if text_actions is None else tuple(choices(text_actions, "--text-actions"))
    scored = Options(taus=taus, judge=judge, utility=utility)
    collect_rarely()

    async def main() -> tuple[CounterfactualReport, str | None]:
        from ..continuation import Continuations

        async with existing_log(log) as opened:
            making = Continuations(
                opened, dataset=dataset, api_base=api_base, text_actions=texts, task=task
            )
            planned = await _plan(opened, making, scored, taus, continuations)
            stopped = await _run(opened, making, planned.makers, concurrency)
            found = await _results(opened, scored, planned.forks)
        report = counterfactual_drops(
            planned.sessions, found, taus=taus, bootstrap=bootstrap, seed=seed
        )
        return report, stopped

    report, stopped = run(main)
    if as_json:
        print_json(report)
    else:
        from ..text.counterfactual import print_counterfactual
        from ..text.terminal import screen

        print_counterfactual(screen(), report)
    if stopped is not None:
        say(f"duolog: continuations are left to be run: {stopped}; the same command goes on")
        raise typer.Exit(_UNFINISHED)


class _Planned:
    """What is to be run.

    Attributes:
        sessions: the sessions to measure.
        makers: functions that each make a continuation.
        forks: ids of the continuations, by session and round of the stop.
    """

    def __init__(self) -> None:
        self.sessions: list[Trajectory] = []
        self.makers: list[Callable[[], Session]] = []
        self.forks: dict[tuple[str, int], list[str]] = {}


async def _plan(
    log: EventLog, making: Continuations, scored: Options, taus: Sequence[int], count: int
) -> _Planned:
    """The continuations of all sessions of a log that reach a tolerance.

    Raises:
        InvalidInput: the log holds no simulated session with a human that has ended.
    """
    from ...engine import codec
    from ...engine.records import TRACE
    from ...engine.session.fork import last_act_of_round
    from ...scoring.live import score_sessions
    from ...scoring.metrics.counterfactual import stops_of
    from ..continuation import Changes, is_simulated, load_records

    planned = _Planned()
    left = foreign = 0
    async for item in score_sessions(log, scored):
        if item.baseline or item.forked_from is not None:
            continue
        if item.state in ("open", "forgotten", "failed", "cancelled"):
            left += 1
            continue
        if not await is_simulated(log, item.session):
            foreign += 1
            continue
        planned.sessions.append(item)
        rounds = sorted(set(stops_of(item, taus).values()))
        if not rounds:
            continue
        records = await load_records(log, item.session)
        trace = [record for record in records if record.stream == TRACE]
        for number in rounds:
            version = last_act_of_round(trace, number)
            changes = [
                Changes(
                    seed=int(codec.digest(["counterfactual", item.session, version, n])[:8], 16),
                    unstopped=True,
                )
                for n in range(count)
            ]
            makers = await making.makers(records, version, changes)
            planned.makers += makers
            planned.forks[item.session, number] = [make().id for make in makers]
    from ...engine.text import quantity

    if left:
        say(f"duolog: left out: {quantity(left, 'session')} without an end")
    if foreign:
        say(f"duolog: left out: {quantity(foreign, 'session')} not simulated")
    if not planned.sessions:
        raise InvalidInput("the log holds no simulated session with a human that has ended")
    return planned


async def _run(
    log: EventLog,
    making: Continuations,
    makers: Sequence[Callable[[], Session]],
    concurrency: int,
) -> str | None:
    """Runs the continuations that the log does not hold; why some are left, None if none are.

    Raises:
        InvalidInput: one of them could not be run at all.
    """
    from ...engine.session.simulation import Outcome, SessionFailure, simulate
    from ..experiment.progress import SessionProgress

    failures: list[SessionFailure] = []
    with SessionProgress(len(makers)) as progress:

        def show(outcome: Outcome) -> None:
            if isinstance(outcome, SessionFailure):
                failures.append(outcome)
            progress.advance(outcome)

        await simulate(
            log, making.while_reachable(makers), concurrency=concurrency, on_outcome=show
        )
    lost = [failure for failure in failures if not failure.resumable]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise InvalidInput(f"{lost[0].session} could not be run{more}: {lost[0].error}")
    return making.stopped or (failures[0].error if failures else None)


async def _results(
    log: EventLog, scored: Options, forks: dict[tuple[str, int], list[str]]
) -> dict[tuple[str, int], list[Trajectory]]:
    """The trajectories of the continuations that have ended."""
    from ...scoring.live import score_sessions

    wanted = {name for names in forks.values() for name in names}
    found = {
        item.session: item
        async for item in score_sessions(log, scored)
        if item.session in wanted and item.state != "open"
    }
    return {key: [found[name] for name in names if name in found] for key, names in forks.items()}
