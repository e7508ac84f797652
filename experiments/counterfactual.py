"""The drop at a tolerance, measured against continuations of the same sessions without the stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec

from ..engine import codec
from ..engine.errors import InvalidInput
from ..engine.log.contract import EventLog
from ..engine.records import TRACE
from ..engine.session.fork import last_act_of_round
from ..engine.session.runner import Session
from ..engine.session.simulation import Outcome, SessionFailure, simulate
from ..engine.text import quantity
from ..scoring.live import score_sessions
from ..scoring.metrics.counterfactual import CounterfactualReport, counterfactual_drops, stops_of
from ..scoring.trajectory.options import Options
from ..scoring.trajectory.points import Trajectory
from .continuations import Changes, Continuations, is_simulated, load_records
from .running import RunProgress

__all__ = ("CounterfactualRun", "measure")


class CounterfactualRun(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured.

    Attributes:
        report: the drops.
        stopped: why continuations are left to be run; None if none are.
        left_out: sessions that cannot be measured, by reason, a line each.
    """

    report: CounterfactualReport
    stopped: str | None
    left_out: tuple[str, ...]


async def measure(
    log: EventLog,
    making: Continuations,
    scored: Options,
    *,
    continuations: int = 8,
    concurrency: int = 32,
    bootstrap: int = 1000,
    seed: int = 0,
    showing: Callable[[int], AbstractContextManager[RunProgress]] | None = None,
) -> CounterfactualRun:
    """Continues each session from every stop, without the stop, and compares; the log takes the forks.

    Args:
        log: holds the sessions.
        making: makes the continuations.
        scored: how to score, and the tolerances.
        continuations: the continuations of each session at each stop.
        concurrency: how many continuations run at the same time.
        bootstrap: resamples for the intervals; 0 for none.
        seed: the seed of the resampling.
        showing: shows the progress of this number of continuations; None to show nothing.

    Raises:
        InvalidInput: there is no simulated session with a human that has ended, or one cannot be continued.
    """
    planned = await _plan(log, making, scored, scored.taus, continuations)
    stopped = await _run(log, making, planned.makers, concurrency, showing)
    found = await _results(log, scored, planned.forks)
    report = counterfactual_drops(
        planned.sessions, found, taus=scored.taus, bootstrap=bootstrap, seed=seed
    )
    return CounterfactualRun(report=report, stopped=stopped, left_out=tuple(planned.left_out))


class _Planned:
    """The sessions and continuations to run.

    Attributes:
        sessions: the sessions to measure.
        makers: functions that each make a continuation.
        forks: ids of the continuations, by session and round of the stop.
        left_out: sessions that cannot be measured, by reason, a line each.
    """

    def __init__(self) -> None:
        self.sessions: list[Trajectory] = []
        self.makers: list[Callable[[], Session]] = []
        self.forks: dict[tuple[str, int], list[str]] = {}
        self.left_out: list[str] = []


async def _plan(
    log: EventLog, making: Continuations, scored: Options, taus: Sequence[int], count: int
) -> _Planned:
    """The continuations of all sessions of a log that reach a tolerance.

    Raises:
        InvalidInput: the log holds no simulated session with a human that has ended.
    """
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
        (stops,) = stops_of([item], taus)
        rounds = sorted(set(stops.values()))
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
    if left:
        planned.left_out.append(f"{quantity(left, 'session')} without an end")
    if foreign:
        planned.left_out.append(f"{quantity(foreign, 'session')} not simulated")
    if not planned.sessions:
        raise InvalidInput("the log holds no closed simulated session with a human")
    return planned


async def _run(
    log: EventLog,
    making: Continuations,
    makers: Sequence[Callable[[], Session]],
    concurrency: int,
    showing: Callable[[int], AbstractContextManager[RunProgress]] | None,
) -> str | None:
    """Runs the continuations that the log does not hold; why some are left, None if none are.

    Raises:
        InvalidInput: one of them could not be run at all.
    """
    failures: list[SessionFailure] = []
    with nullcontext() if showing is None else showing(len(makers)) as progress:

        def show(outcome: Outcome) -> None:
            if isinstance(outcome, SessionFailure):
                failures.append(outcome)
            if progress is not None:
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
    wanted = {name for names in forks.values() for name in names}
    found = {
        item.session: item
        async for item in score_sessions(log, scored)
        if item.session in wanted and item.state != "open"
    }
    return {key: [found[name] for name in names if name in found] for key, names in forks.items()}
