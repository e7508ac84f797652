"""A session's trajectory: the utility and the cost of the collaboration after each round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ...engine.events import Origin
from ...engine.rounds import Stage
from ..process import Process

__all__ = (
    "NOT_EVALUATED",
    "NO_ROUND",
    "NO_SCORE",
    "Point",
    "Trajectory",
    "counted",
    "missing_utility",
)

NOT_EVALUATED = "not evaluated: no utility scorer ran"
"""Why utility is missing if it was not measured and no scorer was configured to."""

NO_ROUND = "no round and no final performance"
"""Why utility is missing from an evaluated session whose scores all worked: nothing to score."""

UNDECIDED = "several scorers measured utility, and none is chosen"
"""Why utility is missing although several scorers ran: none was chosen to count."""

NO_SCORE = "no score of its output has a value"
"""Why utility is missing although a scorer ran or was configured: scores failed or are pending."""


class Point(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One round of a trajectory.

    Attributes:
        round: k, from 1.
        value: the utility newly evaluated in this round; None if nothing new was, or if the
            score is missing.
        utility: U_k: the utility after the round, carried forward; U_0 = 0. None if utility is
            missing for the whole session.
        rating: progress r_k, 1 to 5; None if missing or pending.
        pending: the rating is due or will be, and not recorded yet.
        updated: the agent updated the output in this round.
        stale: the output changed in this round, and its score is missing.
        stage: initial request, or refinement.
        closing: the last round, which holds messages of humans only: thanks, say. It counts as
            effort; for K, utility, stage and tolerance it does not. Round 1 is never closing.
        effort: E_k, cumulative, by measure; None if the measure does not apply.
    """

    round: int
    value: float | None = None
    utility: float | None = 0.0
    rating: int | None = None
    pending: bool = False
    updated: bool = False
    stale: bool = False
    stage: Stage = "initial"
    closing: bool = False
    effort: Mapping[str, int | float | None] = {}  # counts remain integers when read back


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """A session's trajectory, from a log or from a file of trajectories.

    Attributes:
        session: session id.
        group: labels to group by: agent, user, model, task, ...
        instance: the task instance.
        problem: which problem it was, by content; None if it is not known.
        points: one per round; empty if the user never spoke (file input only).
        silent: the human took no turn after the initial request; known only where rounds were counted
            by human turns. The published analysis finds no rounds in such a session.
        agent_tokens: tokens that the agent generated; None if unknown.
        human_tokens: tokens that the (simulated) human generated; None if unknown.
        estimated: token counts are estimates from texts, not a model's own counts.
        output: it poses a shared output. Otherwise it has neither a first update nor a gain.
        evaluated: the session's configuration names a utility scorer, one ran on it, or its source
            states results. Otherwise its utility is missing.
        final: final performance if it is known apart from the points.
        final_missing: the source says that the final performance is missing.
        scorer: whose utility counts: ``name@version``; None if unknown, or if it was not measured.
        candidates: the scorers to choose from, if several measured utility and none is chosen; then the
            session counts as not evaluated.
        judges: whose ratings count: ``human``, or ``name@version`` of a scorer; none if unknown.
        baseline: an automated run, without a collaborating human.
        state: ``open``, the reason why the session was closed, or ``forgotten``.
        forked_from: where the session left another one; None if it began by itself.
        forked_at: the round of its first own act, for a fork that has continued.
        faults: how often its simulated user was found at fault, by kind; empty if it never was,
            or if there was no audit.
        process: how the parties worked together; None if it was not measured.
        lost: events that could not be recorded; rounds and effort of such a session are incomplete.
        late: numbers of the rounds with events that were written late: live updates did not have them when
            they happened.
        coarse: versions of the output that were not compared in full with what went before, so that changed
            stretches count whole.
    """

    session: str
    group: Mapping[str, str] = {}
    instance: str = ""
    problem: str | None = None
    points: tuple[Point, ...] = ()
    silent: bool = False
    agent_tokens: int | None = None
    human_tokens: int | None = None
    estimated: bool = False
    evaluated: bool = True
    output: bool = True
    final: float | None = None
    final_missing: bool = False
    scorer: str | None = None
    candidates: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    baseline: bool = False
    state: str = "finished"
    forked_from: Origin | None = None
    forked_at: int | None = None
    faults: Mapping[str, int] = {}
    process: Process | None = None
    lost: int = 0
    late: tuple[int, ...] = ()
    coarse: int = 0


def undecided(candidates: Iterable[str]) -> str | None:
    """Why utility is missing, if there are several scorers to choose from; None without any."""
    names = ", ".join(candidates)
    return f"{UNDECIDED} (--utility): {names}" if names else None


def counted(trajectory: Trajectory) -> Sequence[Point]:
    """The rounds that count for K, utility and tolerance: all but a closing one."""
    points = trajectory.points
    return points[:-1] if points and points[-1].closing else points


def missing_utility(trajectory: Trajectory) -> str | None:
    """Why a session's utility is missing; None if it has one.

    For one session by itself; ``metrics.values.Facts.missing`` has it for many at once.
    """
    if not trajectory.evaluated:
        return undecided(trajectory.candidates) or NOT_EVALUATED
    if not trajectory.points:
        return NO_ROUND if trajectory.final is None else None
    if not counted(trajectory):
        return NO_ROUND
    return NO_SCORE if trajectory.points[0].utility is None else None
