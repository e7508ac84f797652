"""The columns of the tables: a row per session, per round, per record; and files of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ...engine.errors import MissingExtra
from ...engine.log.summary import FORGOTTEN
from ...engine.records import Record
from ..metrics.process import PROCESS_MEASURES
from ..report.tidy import in_64_bits
from ..trajectory.effort import MEASURES
from ..trajectory.points import Point, Trajectory
from .layout import Part

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]

__all__ = (
    "COLUMNS",
    "Scored",
    "Table",
    "check_pyarrow",
    "forgotten_in",
    "keys_of",
    "record_table",
    "remaining_rows",
    "round_table",
    "session_table",
    "write_part",
)

Table: TypeAlias = "pyarrow.Table"
"""Rows in Arrow's memory. Those of one session stand together."""

_GROUP: Final = 1 << 16


class Scored(NamedTuple):
    """A session to write.

    Attributes:
        key: a number of its own in the log: the position of its first record.
        seed: of its opening.
        scorer: the stream whose utility counts; None where nobody measured it.
        trajectory: its rounds.
    """

    key: int
    seed: int | None
    scorer: str | None
    trajectory: Trajectory


class _Column(NamedTuple):
    kind: str
    of: Callable[[Scored], object]


def _of_trajectory(name: str) -> Callable[[Scored], object]:
    return lambda one: getattr(one.trajectory, name)


def _of_process(name: str) -> Callable[[Scored], object]:
    return lambda one: (
        None if one.trajectory.process is None else getattr(one.trajectory.process, name)
    )


def _effort(name: str) -> Callable[[Scored], object]:
    def found(one: Scored) -> object:
        points = one.trajectory.points
        return points[-1].effort.get(name) if points else None

    return found


_SESSION: Final[Mapping[str, _Column]] = {
    "key": _Column("int64", lambda one: one.key),
    "session": _Column("string", _of_trajectory("session")),
    "state": _Column("string", _of_trajectory("state")),
    "labels": _Column("labels", lambda one: list(one.trajectory.group.items())),
    "instance": _Column("string", lambda one: one.trajectory.instance or None),
    "seed": _Column("int64", lambda one: in_64_bits(one.seed)),
    "scorer": _Column("string", lambda one: one.scorer),
    "judges": _Column("strings", lambda one: list(one.trajectory.judges)),
    "baseline": _Column("bool", _of_trajectory("baseline")),
    "evaluated": _Column("bool", _of_trajectory("evaluated")),
    "silent": _Column("bool", _of_trajectory("silent")),
    "estimated": _Column("bool", _of_trajectory("estimated")),
    "agent_tokens": _Column("int64", _of_trajectory("agent_tokens")),
    "human_tokens": _Column("int64", _of_trajectory("human_tokens")),
    "final": _Column("double", _of_trajectory("final")),
    "final_missing": _Column("bool", _of_trajectory("final_missing")),
    "forked_from": _Column(
        "string",
        lambda one: one.trajectory.forked_from and one.trajectory.forked_from.session,
    ),
    "forked_at": _Column("int64", _of_trajectory("forked_at")),
    "faults": _Column("counts", lambda one: list(one.trajectory.faults.items())),
    "rounds": _Column("int64", lambda one: len(one.trajectory.points)),
    **{f"process_{name}": _Column("double", _of_process(name)) for name in PROCESS_MEASURES},
    **{f"effort_{name}": _Column("double", _effort(name)) for name in MEASURES},
}

_ROUND: Final[Mapping[str, tuple[str, Callable[[Point], object]]]] = {
    "round": ("int32", lambda point: point.round),
    "stage": ("string", lambda point: point.stage),
    "closing": ("bool", lambda point: point.closing),
    "updated": ("bool", lambda point: point.updated),
    "utility": ("double", lambda point: point.utility),
    "value": ("double", lambda point: point.value),
    "stale": ("bool", lambda point: point.stale),
    "rating": ("int8", lambda point: point.rating),
    "pending": ("bool", lambda point: point.pending),
}

_RECORD: Final[Mapping[str, str]] = {
    "position": "int64",
    "session": "string",
    "stream": "string",
    "version": "int64",
    "kind": "string",
    "schema": "int32",
    "time": "double",
    "actor": "string",
    "role": "string",
    "cause": "string",
    "seen": "int64",
    "caller_id": "string",
    "body": "string",
}


COLUMNS: Final = hashlib.sha256(
    repr(
        (
            [(name, column.kind) for name, column in _SESSION.items()],
            [(name, kind) for name, (kind, _) in _ROUND.items()],
            list(_RECORD.items()),
        )
    ).encode()
).hexdigest()
"""A digest of the columns of all tables: files with others cannot be added to."""


def session_table(sessions: Sequence[Scored]) -> Table:
    """A row per session."""
    arrow, types = _types()
    return arrow.table(
        {
            name: arrow.array([column.of(one) for one in sessions], types[column.kind])
            for name, column in _SESSION.items()
        }
    )


def round_table(sessions: Sequence[Scored]) -> Table:
    """A row per round; none of sessions that were erased."""
    arrow, types = _types()
    rows = [(one, point) for one in sessions for point in one.trajectory.points]
    columns = {
        "key": arrow.array([one.key for one, _ in rows], types["int64"]),
        "session": arrow.array([one.trajectory.session for one, _ in rows], types["string"]),
    }
    for name, (kind, of) in _ROUND.items():
        columns[name] = arrow.array([of(point) for _, point in rows], types[kind])
    for name in MEASURES:
        efforts = [point.effort.get(name) for _, point in rows]
        columns[f"effort_{name}"] = arrow.array(efforts, types["double"])
    return arrow.table(columns)


def record_table(records: Iterable[tuple[int, Record]]) -> Table:
    """A row per record, with the key of its session; an erased body is null."""
    arrow, types = _types()
    rows = list(records)
    columns = {"key": arrow.array([key for key, _ in rows], types["int64"])}
    for name, kind in _RECORD.items():
        values = [getattr(record, name) for _, record in rows]
        if name == "body":
            values = [None if body is None else body.decode() for body in values]
        columns[name] = arrow.array(values, types[kind])
    return arrow.table(columns)


def remaining_rows(directory: Path, part: Part, gone: Iterable[int]) -> Table:
    """The rows of a file, but those of some sessions."""
    import pyarrow.compute  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

    table = pyarrow.parquet.ParquetFile(directory / part.path).read()
    keys = pyarrow.array(sorted(gone), pyarrow.int64())
    return table.filter(pyarrow.compute.invert(pyarrow.compute.is_in(table["key"], keys)))


def write_part(directory: Path, folder: str, number: int, tables: Sequence[Table]) -> Part | None:
    """Writes rows into a file, on the disk when this returns; None where there is no row.

    Args:
        directory: of all tables.
        folder: of this one, within it.
        number: of the file, never used before.
        tables: the rows.
    """
    import pyarrow.compute
    import pyarrow.parquet

    table = pyarrow.concat_tables(tables)
    if not table.num_rows:
        return None
    path = f"{folder}/part-{number}.parquet"
    target = directory / path
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}")
    with open(temporary, "wb") as file:
        pyarrow.parquet.write_table(
            table, file, compression="zstd", row_group_size=_GROUP, write_page_index=True
        )
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, target)
    keys = table["key"]
    ends = pyarrow.compute.min_max(keys).as_py()
    return Part(
        path=path,
        rows=table.num_rows,
        sessions=pyarrow.compute.count_distinct(keys).as_py(),
        first=ends["min"],
        last=ends["max"],
    )


def keys_of(directory: Path, part: Part) -> set[int]:
    """The keys of the sessions in a file."""
    import pyarrow.parquet

    column = pyarrow.parquet.ParquetFile(directory / part.path).read(columns=["key"])["key"]
    return set(column.unique().to_pylist())


def forgotten_in(directory: Path, parts: Iterable[Part]) -> set[str]:
    """The sessions in files of the table of sessions that were forgotten."""
    import pyarrow.parquet

    found: set[str] = set()
    for part in parts:
        table = pyarrow.parquet.ParquetFile(directory / part.path).read(["session", "state"])
        states = table["state"].to_pylist()
        if FORGOTTEN in states:
            names = table["session"].to_pylist()
            found |= {name for name, state in zip(names, states, strict=True) if state == FORGOTTEN}
    return found


def check_pyarrow() -> None:
    """Raises MissingExtra where pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise MissingExtra("analytics", "a directory of tables")


def _types() -> tuple[Any, Mapping[str, Any]]:
    import pyarrow

    text = pyarrow.string()
    return pyarrow, {
        "int8": pyarrow.int8(),
        "int32": pyarrow.int32(),
        "int64": pyarrow.int64(),
        "double": pyarrow.float64(),
        "bool": pyarrow.bool_(),
        "string": text,
        "strings": pyarrow.list_(text),
        "labels": pyarrow.map_(text, text),
        "counts": pyarrow.map_(text, pyarrow.int64()),
    }
