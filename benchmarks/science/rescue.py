"""Forks that rescue sessions: the loss of a user who quits at τ, and whether another agent would have prevented it.

Each session of one agent with a loss is forked to another agent at the first of the unproductive rounds in a row that
use up τ (round 2 if that is the first). The fork rescues it if the same user, with the same tolerance, keeps at least
half of the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from duolog.benchmarks.science.phenomena import PERSON
from duolog.benchmarks.science.playing import Played, log_of
from duolog.engine.log.open import open_log
from duolog.experiments.continuations import Changes, Continuations, play_fork
from duolog.scoring.live import score_log
from duolog.scoring.metrics.counterfactual import stops_of
from duolog.scoring.trajectory.points import Trajectory

__all__ = ("Rescue", "rescue_text", "rescues")


class Pair(NamedTuple):
    """The agent whose sessions are forked, the one that continues them, and the tolerance of the users."""

    agent: str
    other: str
    tau: int


PAIRS: Final = {
    "travel": Pair("two-stage", "one-stage", 1),
    "data": Pair("two-stage", "adaptive", 2),
    "finance": Pair("two-stage", "one-stage", 2),
    "tutoring": Pair("one-stage", "adaptive", 2),
    "proof": Pair("two-stage", "one-stage", 2),
}
"""For each task, agents and a tolerance with which losses occur; chosen by trying several."""

_LOSS: Final = 0.15
"""The least loss of utility that is looked at."""
_SHARE: Final = 0.5
"""The share of the loss that a fork has to make good: half, as the text says."""


_FIRST: Final = 2
"""The first round at which a session can be forked."""


class Rescue(NamedTuple):
    """A session with a loss at τ, and its fork.

    Attributes:
        instance: the instance of the task.
        at_round: where it was forked.
        left: the round in which τ is used up.
        session: its trajectory.
        forked: that of the fork.
        kept: utility with which the same user leaves the fork.
    """

    instance: str
    at_round: int
    left: int
    session: Trajectory
    forked: Trajectory
    kept: float

    @property
    def lost(self) -> float:
        """The loss of a user who quits at τ."""
        return _utility(self.session, -1) - _utility(self.session, self.left - 1)

    @property
    def rescued(self) -> bool:
        """Whether the fork makes good enough of it."""
        return self.kept >= _utility(self.session, -1) - (1.0 - _SHARE) * self.lost


async def rescues(task: str, played: Played, folder: Path) -> list[Rescue]:
    """The sessions with a loss among those of a task's page, forked in memory.

    Args:
        task: the task.
        played: its sessions in the gallery.
        folder: the folder of the logs.
    """
    found: list[Rescue] = []
    agent, other, tau = PAIRS[task]
    sessions = played[agent, PERSON].values()
    async with open_log(log_of(task, folder), create=False) as log, open_log("memory://") as into:
        making = Continuations(log)
        for session in sorted(sessions, key=lambda one: (len(one.instance), one.instance)):
            (stops,) = stops_of([session], [tau])
            left = stops.get(tau, len(session.points))
            if _utility(session, -1) - _utility(session, left - 1) < _LOSS:
                continue
            at_round = max(left - tau + 1, _FIRST)
            change = Changes(agent=other)
            fork = await play_fork(making, session.session, change, at_round=at_round, into=into)
            forked = await score_log(into, fork.result.session)
            (again,) = stops_of([forked], [tau])
            kept = _utility(forked, again.get(tau, len(forked.points)) - 1)
            found.append(Rescue(session.instance, at_round, left, session, forked, kept))
    return found


def rescue_text(task: str, found: Sequence[Rescue], sessions: int) -> list[str]:
    """What forks rescue, in Markdown, with the session of the largest gain as an example.

    Args:
        task: the task.
        found: the sessions with a loss.
        sessions: how many were played.
    """
    agent, other, tau = PAIRS[task]
    saved = [one for one in found if one.rescued]
    lines = [
        (
            f"Of {sessions} `{agent}` sessions, {len(found)} lose at least {_LOSS} of utility if the user quits at τ = {tau}. "
            f"A fork to `{other}` at the first of the unproductive rounds rescues {len(saved)} of them: there the same user, with the "
            "same tolerance, keeps at least half of the loss. The agents and τ were chosen for this page, as ones with which such losses occur."
        )
    ]
    if saved:
        best = max(saved, key=lambda one: one.kept - _utility(one.session, one.left - 1))
        then, now = _utility(best.session, best.left - 1), best.kept
        lines += [
            "",
            (
                f"The largest gain is that of instance {best.instance}: a user who quits after round {best.left} has {then:.2f} instead of "
                f"{_utility(best.session, -1):.2f}. In the fork from round {best.at_round} on, the same user has {now:.2f}. "
                f"Ratings then: {_ratings(best.session)}; now: {_ratings(best.forked)}."
            ),
        ]
    return lines


def _utility(found: Trajectory, at: int) -> float:
    return (found.points[at].utility or 0.0) if found.points else 0.0


def _ratings(found: Trajectory) -> str:
    return " ".join("–" if one.rating is None else str(one.rating) for one in found.points)
