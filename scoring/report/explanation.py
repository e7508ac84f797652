"""The document that explains how a session's numbers are computed."""

from __future__ import annotations

from collections.abc import Iterator

from ...engine.text import quantity
from ..metrics.explain import Explanation, RoundNote, StopNote
from .document import (
    ABSENT,
    Document,
    Section,
    Table,
    counts,
    noted,
    number,
    numbers,
    table_of,
    texts,
)
from .export import flat_row

__all__ = ("explanation_document",)

_RESULT = "missing: only the result was measured"
_NO_OUTPUT = "missing: the session does not have a shared output"


def explanation_document(found: Explanation) -> Document:
    """An explanation: the rounds in a table, then each number with its origin."""
    tables, notes = [], []
    if found.silent:
        worth = (
            "" if found.final is None else f", worth the final performance {number(found.final)}"
        )
        notes.append(f"The user never spoke: one pseudo-round{worth}.")
    else:
        tables.append(_rounds(found))
    if found.reason is not None:
        notes.append(f"No numbers: {found.reason}.")
    else:
        rows = list(_numbers(found))
        tables.append(
            table_of(
                texts("number", [name for name, _, _ in rows]),
                numbers("value", [value for _, value, _ in rows]),
                texts("how", [how for _, _, how in rows]),
            )
        )
    return Document(
        title=f"Session {found.session}, convention {found.convention}",
        sections=(Section(tables=tables, notes=noted(*notes)),),
        data=found,
        rows=[flat_row(one) for one in found.rounds],
    )


def _rounds(found: Explanation) -> Table:
    notes = found.rounds
    ratings = [
        "pending" if one.pending else ABSENT if one.rating is None else str(one.rating)
        for one in notes
    ]
    runs = ["…" if one.run is None else str(one.run or "") for one in notes]
    return table_of(
        counts("round", [one.round for one in notes]),
        numbers("evaluated", [one.value for one in notes]),
        numbers("utility", [one.utility for one in notes]),
        texts("rating", ratings, left=False),
        texts("run", runs, left=False),
        texts("marks", [", ".join(_marks(found, one)) for one in notes]),
    )


def _marks(found: Explanation, note: RoundNote) -> Iterator[str]:
    if found.reason is None:
        if note.round == found.first_round:
            yield "k'"
        if note.round == found.best_round:
            yield "best"
        if note.round == found.final_round:
            yield "K"
        for stop in found.stops:
            if note.round == stop.reached:
                yield f"τ = {stop.tau} reached"
    if note.stale:
        yield "stale: the output changed, its score is missing"
    elif note.updated:
        yield "updated"
    if note.unproductive:
        yield "unproductive"
    if note.run is None:
        yield "not counted yet" if not note.pending else "holds the tolerance up"
    if note.cut:
        yield "cut from the drop"


def _numbers(found: Explanation) -> Iterator[tuple[str, float | None, str]]:
    formal = found.convention == "formal"
    at = "" if found.first_round is None or not found.posed else f"U at k' = {found.first_round}, "
    yield "first", found.first, f"{at}{_which(found)}"
    yield "final", found.final, f"U at K = {found.final_round}, the last round"
    best = f"the greatest U, first reached at round {found.best_round}"
    yield "overall", found.overall, best
    yield "gain", found.gain, "overall - first"
    if not formal:
        cut = quantity(found.max_step or 0, "round")
        yield (
            "never",
            found.reference,
            (
                f"U at round {found.reference_round}, the last of the trajectory cut to {cut}: what the drop "
                "is compared with"
            ),
        )
    for stop in found.stops:
        yield f"drop@{stop.tau}", stop.drop, _why(found, stop)


def _which(found: Explanation) -> str:
    if found.silent:
        return "the pseudo-round"
    formal = found.convention == "formal"
    kind = "updates the output" if formal else "is evaluated"
    if found.first is None:
        return "missing: that update has no score" if found.posed else _NO_OUTPUT
    if found.first_found:
        return f"the first round that {kind}"
    return f"0, since no round {kind}" if formal else f"since no round {kind} the first one"


def _why(found: Explanation, stop: StopNote) -> str:
    if stop.drop is None and found.result_only:
        return _RESULT
    if stop.drop is None and stop.reached is None:
        return "missing: no round was rated, or the human left before τ could be reached"
    if stop.reached is None:
        return f"τ = {stop.tau} is never reached: nothing is lost"
    reached = f"τ = {stop.tau} is reached at round {stop.reached}"
    if stop.used is None:
        return f"{reached}, and there is no row before it: absent from the mean at this τ"
    value, against = number(stop.utility), number(found.reference)
    if found.convention == "formal":
        return f"{reached}, where U = {value}; less final, {against}"
    return f"{reached}; U = {value} in the row before, {stop.used}; less never, {against}"
