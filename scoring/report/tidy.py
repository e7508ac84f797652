"""Tidy tables of trajectories for other programs: a row per round, or a row per session."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import BinaryIO, Literal, TypeAlias

from ...engine.errors import MissingExtra
from ...engine.log.summary import FORGOTTEN
from ..columns.rows import SessionRow, in_64_bits
from ..metrics.formal import formal_values
from ..metrics.numbers import known, mean
from ..metrics.values import Facts, Values
from ..trajectory.effort import MEASURES
from ..trajectory.points import Trajectory, counted

__all__ = ("TidyRow", "TidyTable", "tidy_rows", "write_csv", "write_parquet")

TidyTable: TypeAlias = Literal["rounds", "sessions"]
"""A row per round, or a row per session."""

_Value: TypeAlias = str | int | float | None
TidyRow: TypeAlias = dict[str, _Value]
"""Values by column name; None if a value is missing. All rows have the same columns."""

_TEXT = frozenset({"session", "instance", "problem", "state", "stage", "tags", "reviewers"})
_FLAGS = frozenset(
    {"baseline", "estimated_tokens", "evaluated", "updated", "stale", "pending", "late", "closing"}
)
_COUNTS = frozenset({"seed", "round", "rounds", "stale_rounds", "rating", "ratings", "comments"})
_FLOATS = frozenset(
    {"value", "utility", "first", "final", "overall", "gain", "mean_rating", "review_rating"}
)
_OWN = _TEXT | _FLAGS | _COUNTS | _FLOATS


def tidy_rows(
    trajectories: Sequence[Trajectory],
    table: TidyTable,
    *,
    seeds: Mapping[str, int | None] = {},
    reviews: Mapping[str, SessionRow] = {},
) -> list[TidyRow]:
    """The rows of a table; none for sessions whose contents were erased.

    Columns of both: ``session``, the labels, ``instance``, ``problem``, ``seed``, ``baseline``, ``state``, and
    cumulative effort by measure (``effort_...``). A label that is called like another column is
    prefixed by ``group_``. Per round: ``round``, ``stage``, ``closing``, ``updated``, ``utility``
    (after the round), ``value`` (newly measured in the round), ``stale``, ``rating``,
    ``pending``. Per session: ``rounds`` (K), ``evaluated``, ``first``, ``final``, ``overall`` and
    ``gain`` as the formal convention has them, ``stale_rounds``, ``ratings`` (how many there are),
    ``mean_rating``, ``estimated_tokens``; and of reviewers ``tags``, ``reviewers`` (both separated by
    semicolons), ``review_rating`` and ``comments``.

    Args:
        trajectories: the sessions.
        table: which table.
        seeds: the seeds of the sessions, by id; a trajectory itself has none.
        reviews: the rows of sessions that hold what reviewers added, by id; likewise.
    """
    kept = [item for item in trajectories if item.state != FORGOTTEN]
    labels = list(dict.fromkeys(name for item in kept for name in item.group))
    values = formal_values(Facts(kept), ()) if table == "sessions" else None
    rows = []
    for at, item in enumerate(kept):
        head: TidyRow = {"session": item.session}
        for name in labels:
            column = f"group_{name}" if name in _OWN or name in MEASURES else name
            head[column] = item.group.get(name)
        head |= {
            "instance": item.instance or None,
            "problem": item.problem,
            "seed": seeds.get(item.session),
            "baseline": item.baseline,
            "state": item.state,
        }
        mine = (
            _rounds(item)
            if values is None
            else [_session(item, values, at) | _reviews(reviews.get(item.session))]
        )
        rows += [head | row for row in mine]
    return rows


def _reviews(row: SessionRow | None) -> TidyRow:
    return {
        "tags": None if row is None else ";".join(row.tags) or None,
        "reviewers": None if row is None else ";".join(row.reviewers) or None,
        "review_rating": None if row is None else row.review_rating,
        "comments": None if row is None else row.comments,
    }


def write_csv(rows: Sequence[TidyRow], file: BinaryIO) -> None:
    """Writes rows as CSV in UTF-8 with a header line; missing values are empty cells."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        if rows:
            writer.writerow(rows[0])
        for row in rows:
            writer.writerow([_cell(value) for value in row.values()])
    finally:
        text.detach()


def write_parquet(rows: Sequence[TidyRow], file: BinaryIO) -> None:
    """Writes rows as a Parquet file; missing values are null, and so are seeds above 64 bits.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    try:
        arrow = import_module("pyarrow")
        parquet = import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise MissingExtra("analytics", "a Parquet file") from error
    columns = (
        {
            name: arrow.array([in_64_bits(row[name]) for row in rows], type=_type(arrow, name))
            for name in rows[0]
        }
        if rows
        else {}
    )
    parquet.write_table(arrow.table(columns), file)


def _type(arrow: object, name: str) -> object:
    """The type of a column, which is the same even if all of its values are missing."""
    kind = "string"
    if name in _FLAGS:
        kind = "bool_"
    elif name in _COUNTS:
        kind = "int64"
    elif name in _FLOATS or name.startswith("effort_"):
        kind = "float64"
    return getattr(arrow, kind)()


def _rounds(item: Trajectory) -> Iterator[TidyRow]:
    for point in item.points:
        row: TidyRow = {
            "round": point.round,
            "stage": point.stage,
            "closing": point.closing,
            "updated": point.updated,
            "utility": point.utility,
            "value": point.value,
            "stale": point.stale,
            "rating": point.rating,
            "pending": point.pending,
            "late": point.round in item.late,
        }
        yield row | _effort(point.effort)


def _session(item: Trajectory, values: Values, at: int) -> TidyRow:
    points = counted(item)
    ratings = [float(point.rating) for point in points if point.rating is not None]
    row: TidyRow = {
        "rounds": len(points),
        "evaluated": item.evaluated,
        "first": known(values.first[at]),
        "final": known(values.final[at]),
        "overall": known(values.overall[at]),
        "gain": known(values.gain[at]),
        "stale_rounds": sum(point.stale for point in points),
        "ratings": len(ratings),
        "mean_rating": mean(ratings),
        "estimated_tokens": item.estimated,
    }
    return row | _effort(item.points[-1].effort if item.points else {})


def _effort(effort: Mapping[str, float | None]) -> TidyRow:
    return {f"effort_{name}": effort.get(name) for name in MEASURES}


def _cell(value: str | float | bool | None) -> str | float:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else value
