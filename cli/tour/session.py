"""The session of the tour: simulated, scored, and forked at the point of failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.log.contract import EventLog
from ...engine.records import TRACE
from ...engine.session.fork import end_before_round
from ...engine.session.runner import Session
from ...engine.session.simulation import SessionFailure, simulate
from ...engine.task import Cell, Setting, find_task
from ...experiments.continuations import Changes, Continuations, load_records
from ...scoring.control import Controller
from ...scoring.control_rules import Advice
from ...scoring.metrics.counterfactual import stops_of
from ...scoring.metrics.forks import Fork, compare_forks
from ...scoring.trajectory.fold import TrajectoryFold
from ...scoring.trajectory.options import Options
from ...scoring.trajectory.updates import StopAdvice, UtilityUpdated
from ..text.transcript import SessionTranscript, load_transcript

__all__ = ("TAU", "TourSession", "record_session")

_TASK: Final = "travel"
_CELL: Final = Cell(agent="one-stage", user="proactive", instance="347", seed=7)
"""A user who quits at ``TAU`` loses a quarter of the utility; in the fork,
the user never quits."""
_OTHER: Final = "adaptive"
"""The agent that takes over in the fork."""
TAU: Final = 2
"""The tolerance that the tour is about."""


@final
class TourSession(msgspec.Struct, frozen=True, kw_only=True):
    """All that the pages show.

    Attributes:
        transcript: the session, scored, round by round.
        scores: the updates of utility, in order.
        stop: where the tolerance ``TAU`` was used up.
        advice: what the agent was advised to do, whenever that changed.
        fork: how the session went on from before the first of these rounds with another agent.
        forked: that continuation.
        rescued: the utility that a user with the tolerance ``TAU`` leaves the continuation with; None if unknown.
        stays: whether that user stays to the end of the continuation.
    """

    transcript: SessionTranscript
    scores: Sequence[UtilityUpdated]
    stop: StopAdvice
    advice: Sequence[Advice]
    fork: Fork
    forked: SessionTranscript
    rescued: float | None
    stays: bool


async def record_session(log: EventLog) -> TourSession:
    """Simulates the session and its fork into a log, unless it holds them already.

    Raises:
        InvalidInput: the session could not be simulated.
    """
    session = find_task(_TASK).session(_CELL, Setting())
    await _simulate(log, lambda: session)
    records = await load_records(log, session.id)
    options = Options()
    fold = TrajectoryFold(session.id, options)
    controller = Controller(session.id)
    scores: list[UtilityUpdated] = []
    stops: list[StopAdvice] = []
    advice: list[Advice] = [controller.advice]
    for record in records:
        for update in fold.feed(record):
            changed = controller.feed(update)
            if changed is not None:
                advice.append(changed)
            if isinstance(update, UtilityUpdated):
                scores.append(update)
            elif isinstance(update, StopAdvice) and update.tau == TAU:
                stops.append(update)
    if not stops:
        raise InvalidInput(f"session {session.id} never reaches τ = {TAU}; choose one that does")
    stop = stops[0]
    trace = [record for record in records if record.stream == TRACE]
    version = end_before_round(trace, stop.rounds[0])
    forked = await Continuations(log).make(records, version, Changes(agent=_OTHER))
    await _simulate(log, lambda: forked)
    transcript = await load_transcript(log, await log.summary(session.id), options)
    continued = await load_transcript(log, await log.summary(forked.id), options)
    compared = compare_forks([transcript.trajectory, continued.trajectory], bootstrap=0).forks
    (stops_then,) = stops_of([continued.trajectory], [TAU])
    last = stops_then.get(TAU, len(continued.trajectory.points))
    return TourSession(
        transcript=transcript,
        scores=scores,
        stop=stop,
        advice=advice,
        fork=next(fork for fork in compared if fork.session == forked.id),
        forked=continued,
        rescued=continued.trajectory.points[last - 1].utility,
        stays=TAU not in stops_then,
    )


async def _simulate(log: EventLog, make: Callable[[], Session]) -> None:
    failures: list[SessionFailure] = []

    def note(outcome: object) -> None:
        if isinstance(outcome, SessionFailure):
            failures.append(outcome)

    await simulate(log, [partial(make)], on_outcome=note)
    for failure in failures:
        raise InvalidInput(f"session {failure.session} could not be simulated: {failure.error}")
