"""A session's trajectory: what the collaboration was worth after each round, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...engine.events import Origin
from ...engine.rounds import Stage
from ..process import Process

__all__ = ("Point", "Trajectory")


class Point(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One round of a trajectory.

    Attributes:
        round: k, from 1.
        value: the utility newly evaluated in this round; None where nothing new was, or where the
            score is missing.
        utility: U_k: the utility that stands after the round, carried forward; U_0 = 0.
        rating: progress r_k, 1 to 5; None where missing or pending.
        pending: the rating is due or will be, and not recorded yet.
        updated: the agent updated the output in this round.
        stale: the output changed in this round, and its score is missing.
        stage: initial request, or refinement.
        effort: E_k, cumulative, by measure; None where the measure does not apply.
    """

    round: int
    value: float | None = None
    utility: float = 0.0
    rating: int | None = None
    pending: bool = False
    updated: bool = False
    stale: bool = False
    stage: Stage = "initial"
    effort: Mapping[str, float | None] = {}


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """A session's trajectory, from a log or from a file of trajectories.

    Attributes:
        session: session id.
        group: labels to group by: agent, user, model, task, ...
        points: one per round; empty where the user never spoke (file input only).
        agent_tokens: tokens that the agent generated; None where unknown.
        human_tokens: tokens that the (simulated) human generated; None where unknown.
        estimated: token counts are estimates from texts, not a model's own counts.
        final: final performance where it is known apart from the points.
        baseline: an automated run, without a collaborating human.
        state: ``open`` or the reason why the session was closed.
        forked_from: where the session left another one; None where it began by itself.
        forked_at: the first round with anything of its own, of a fork that has gone on.
        faults: how often its simulated user was found at fault, by kind; empty where it never was,
            or where nobody looked.
        process: how the parties worked together; None where it was not measured.
    """

    session: str
    group: Mapping[str, str] = {}
    points: tuple[Point, ...] = ()
    agent_tokens: int | None = None
    human_tokens: int | None = None
    estimated: bool = False
    final: float | None = None
    baseline: bool = False
    state: str = "finished"
    forked_from: Origin | None = None
    forked_at: int | None = None
    faults: Mapping[str, int] = {}
    process: Process | None = None
