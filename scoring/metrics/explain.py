"""Explains a session's numbers: how each round was counted, and which values were used."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...engine.errors import InvalidInput
from ..trajectory.points import Trajectory, counted
from ..trajectory.tolerance import check_taus, is_unsatisfactory, stop_rounds
from .formal import formal_ratings, formal_values
from .paper import NEVER, TOO_FEW, is_silent, paper_values
from .results import Convention
from .values import NO_ROUND, SessionValues, missing_utility

__all__ = ("Explanation", "RoundNote", "StopNote", "explain")


class RoundNote(msgspec.Struct, frozen=True, kw_only=True):
    """How one round was counted.

    Attributes:
        round: k.
        value: the utility newly evaluated in it; None where nothing was.
        utility: U_k; None where the session has none.
        rating: its rating; None where there is none.
        updated: the agent updated the output.
        stale: the output changed and its score is missing.
        pending: its rating is not recorded yet.
        bad: it counted as unsatisfactory.
        run: unsatisfactory rounds in a row up to and including this one; None where the count
            waits for a pending rating.
        cut: the convention's length leaves it out of the drop.
    """

    round: int
    value: float | None
    utility: float | None
    rating: int | None
    updated: bool
    stale: bool
    pending: bool
    bad: bool
    run: int | None
    cut: bool


class StopNote(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a tolerance on the session.

    Attributes:
        tau: τ.
        reached: the round at which τ unsatisfactory rounds in a row are reached; None if never.
        used: the round whose utility counts; None if the convention leaves none.
        utility: that utility.
        drop: that utility less the one of a human who never stops; None if there is none.
    """

    tau: int
    reached: int | None
    used: int | None
    utility: float | None
    drop: float | None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """How one session's numbers are computed under a convention.

    Attributes:
        session: its id.
        convention: the convention.
        rounds: its rounds.
        silent: the user never spoke: one pseudo-round, worth the final performance.
        max_step: the length to which it was cut for the drop, under ``paper``.
        first_round: k', the round of the first utility.
        first_found: whether there is such a round; if not, k' is a substitute.
        first: U_k'.
        final_round: K.
        final: U_K.
        best_round: the first round with the greatest utility.
        overall: max U_k.
        gain: ``overall`` less ``first``; None where that is missing.
        reference_round: the last round of a human who never stops: K, or the cut.
        reference: the utility there.
        stops: one per τ.
        reason: why there are no numbers; None if there are.
    """

    session: str
    convention: Convention
    rounds: tuple[RoundNote, ...]
    silent: bool
    max_step: int | None = None
    first_round: int | None = None
    first_found: bool = False
    first: float | None = None
    final_round: int | None = None
    final: float | None = None
    best_round: int | None = None
    overall: float | None = None
    gain: float | None = None
    reference_round: int | None = None
    reference: float | None = None
    stops: tuple[StopNote, ...] = ()
    reason: str | None = None


def explain(
    trajectory: Trajectory,
    *,
    convention: Convention = "formal",
    taus: Sequence[int] = (1, 2, 3),
    max_step: int | None = None,
) -> Explanation:
    """Explains a session's numbers.

    Args:
        trajectory: the session.
        convention: the convention.
        taus: the tolerances.
        max_step: under ``paper``, the length to which trajectories of its group are cut
            (``Group.max_step``).

    Raises:
        InvalidInput: a tolerance or the convention is not valid.
    """
    asked = check_taus(taus)
    if convention not in ("formal", "paper"):
        raise InvalidInput(f"unknown convention {convention!r}: choose 'formal' or 'paper'")
    formal = convention == "formal"
    length = None if formal else max_step
    silent = not trajectory.points if formal else is_silent(trajectory)
    rounds = () if silent else _rounds(trajectory, length, waits=formal)
    found: SessionValues | None = None
    reason = missing_utility(trajectory) or NO_ROUND
    if formal:
        found = formal_values(trajectory, asked)
    elif max_step is None:
        reason = TOO_FEW
    else:
        found = paper_values(trajectory, asked, max_step)
    if found is None:
        return Explanation(
            session=trajectory.session,
            convention=convention,
            rounds=rounds,
            silent=silent,
            reason=reason,
        )
    last = len(found.utilities)
    marks = [note.updated if formal else note.value is not None for note in rounds[:last]]
    first_round = marks.index(True) + 1 if True in marks else last if formal else 1
    ratings = (
        formal_ratings(counted(trajectory))
        if formal
        else [note.rating for note in rounds if not note.cut]
    )
    reached = stop_rounds(ratings, {*asked, NEVER})
    kept = last if formal else min(last, length or last)
    if not formal and (never := reached[NEVER]) is not None:
        kept = never - 1
    return Explanation(
        session=trajectory.session,
        convention=convention,
        rounds=rounds,
        silent=silent,
        max_step=length,
        first_round=first_round,
        first_found=True in marks,
        first=found.first,
        final_round=last,
        final=found.final,
        best_round=found.utilities.index(found.overall) + 1,
        overall=found.overall,
        gain=found.gain,
        reference_round=kept,
        reference=found.reference,
        stops=tuple(
            [
                _stop(tau, reached[tau], value, found.reference, kept, formal=formal)
                for tau, value in zip(asked, found.stops, strict=True)
            ]
        ),
    )


def _rounds(trajectory: Trajectory, length: int | None, *, waits: bool) -> tuple[RoundNote, ...]:
    notes = []
    run: int | None = 0
    for index, point in enumerate(trajectory.points):
        bad = is_unsatisfactory(point.rating)
        if waits and point.pending:
            run = None
        if run is not None:
            run = run + 1 if bad else 0
        notes.append(
            RoundNote(
                round=point.round,
                value=point.value,
                utility=point.utility,
                rating=point.rating,
                updated=point.updated,
                stale=point.stale,
                pending=point.pending,
                bad=bad and run is not None,
                run=run,
                cut=length is not None and index >= length,
            )
        )
    return tuple(notes)


def _stop(
    tau: int,
    reached: int | None,
    value: float | None,
    reference: float,
    kept: int,
    *,
    formal: bool,
) -> StopNote:
    used: int | None = None if value is None else kept
    if reached is not None:
        used = reached if formal else reached - 1 or None
    return StopNote(
        tau=tau,
        reached=reached,
        used=used,
        utility=value,
        drop=None if value is None else value - reference,
    )
