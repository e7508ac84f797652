"""Explains a session's numbers: how each round was counted, and which values were used."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from ...engine.errors import InvalidInput
from ...engine.rounds import is_unproductive
from ..columns.table import Columns, columns_of
from ..trajectory.points import NO_ROUND, Trajectory
from ..trajectory.tolerance import check_taus
from .formal import formal_values
from .numbers import known
from .paper import TOO_FEW, is_silent, paper_values
from .results import Convention
from .values import MISSING, Facts

__all__ = ("Explanation", "RoundNote", "StopNote", "explain")


class RoundNote(msgspec.Struct, frozen=True, kw_only=True):
    """How one round was counted.

    Attributes:
        round: k.
        value: the utility newly evaluated in it; None if nothing was.
        utility: U_k; None if the session has none.
        rating: its rating; None if there is none.
        updated: the agent updated the output.
        stale: the output changed and its score is missing.
        pending: its rating is not recorded yet.
        unproductive: it counted as unproductive.
        run: unproductive rounds in a row up to and including this one; None if the count
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
    unproductive: bool
    run: int | None
    cut: bool


class StopNote(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a tolerance on the session.

    Attributes:
        tau: τ.
        reached: the round at which τ unproductive rounds in a row are reached; None if never.
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
        first_round: k', the round of the first utility; None if there is none.
        first_found: whether there is such a round. If not, the first is 0 under ``formal``, and that of
            round 1 under ``paper``.
        posed: the session poses a shared output.
        result_only: it poses none, and only its result was measured.
        first: U_k'.
        final_round: K.
        final: U_K.
        best_round: the first round with the greatest utility.
        overall: max U_k.
        gain: ``overall`` less ``first``; None if that is missing.
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
    posed: bool = True
    result_only: bool = False
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
    source: Columns | Trajectory,
    *,
    session: str | None = None,
    convention: Convention = "formal",
    taus: Sequence[int] = (1, 2, 3),
    max_step: int | None = None,
) -> Explanation:
    """Explains a session's numbers.

    Args:
        source: the trajectory of the session, or columns that hold it.
        session: its id among the columns; None if they hold no other session.
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
    columns = columns_of([source] if isinstance(source, Trajectory) else source)
    row = 0 if session is None else [*columns.session].index(session)
    facts = Facts(columns.take(np.array([row])))
    formal = convention == "formal"
    length = None if formal else max_step
    silent = bool(facts.rounds[0] == 0 if formal else is_silent(facts)[0])
    rounds = () if silent else _rounds(facts.columns, length, waits=formal)
    reason = MISSING[int(facts.missing[0])] or NO_ROUND
    if formal:
        found = formal_values(facts, asked)
    else:
        found = paper_values(facts, asked, np.array([max_step or 0]))
        reason = TOO_FEW if max_step is None else reason
    if not found.valued[0]:
        return Explanation(
            session=columns.session[row],
            convention=convention,
            rounds=rounds,
            silent=silent,
            reason=reason,
        )
    last, overall = int(found.last[0]), float(found.overall[0])
    marks = [note.updated if formal else note.value is not None for note in rounds[:last]]
    walk = facts.at(np.arange(1, last + 1), np.zeros(last, np.int64))
    first, gain = known(found.first[0]), known(found.gain[0])
    reference, kept = float(found.reference[0]), int(found.kept[0])
    stops = []
    for tau in asked:
        at, value = int(found.reached[tau][0]) or None, known(found.stops[tau][0])
        used = kept if at is None else at if formal else at - 1
        stops.append(
            StopNote(
                tau=tau,
                reached=at,
                used=None if value is None else used,
                utility=value,
                drop=None if value is None else value - reference,
            )
        )
    return Explanation(
        session=columns.session[row],
        convention=convention,
        rounds=rounds,
        silent=silent,
        max_step=length,
        first_round=int(found.first_round[0]) or None,
        first_found=True in marks,
        posed=bool(facts.columns.output[0]) or not formal,
        result_only=formal and bool(facts.result_only[0]),
        first=first,
        final_round=last,
        final=float(found.final[0]),
        best_round=int(np.argmax(walk)) + 1,
        overall=overall,
        gain=gain,
        reference_round=kept,
        reference=reference,
        stops=tuple(stops),
    )


def _rounds(columns: Columns, length: int | None, *, waits: bool) -> tuple[RoundNote, ...]:
    notes = []
    run: int | None = 0
    table = columns.rounds
    for index, rating in enumerate(table.rating.tolist()):
        pending = bool(table.pending[index])
        unproductive = is_unproductive(rating or None)
        if waits and pending:
            run = None
        if run is not None:
            run = run + 1 if unproductive else 0
        notes.append(
            RoundNote(
                round=index + 1,
                value=known(table.value[index]),
                utility=known(table.utility[index]),
                rating=rating or None,
                updated=bool(table.updated[index]),
                stale=bool(table.stale[index]),
                pending=pending,
                unproductive=unproductive and run is not None,
                run=run,
                cut=length is not None and index >= length,
            )
        )
    return tuple(notes)
