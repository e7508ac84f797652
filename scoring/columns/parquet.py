"""Directories of Parquet tables: their contents, and how session rows are written and read.

``docs/columns.md`` lists the columns.

Everything that counts is named by ``manifest.json``, which is replaced in one step after the files
that it names are on the disk. Other files are left over from a program that was killed. A directory
holds::

    manifest.json
    sessions/convention=handoff/scored_by=auto/rated_by=auto/part-1.parquet
    rounds/convention=handoff/scored_by=auto/rated_by=auto/scorer=travel/version=1/part-1.parquet
    records/part-1.parquet

Within a path, values are quoted as in URLs.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, TypeAlias, final, overload
from urllib.parse import quote

import msgspec
import numpy as np

from ...engine.budget import MESSAGE, Budget, is_inside
from ...engine.errors import InvalidInput, MissingExtra, TooLarge
from ...engine.log.exchange.output_file import sync_directory
from ...engine.log.summary import FORGOTTEN
from ...engine.records import Record
from ...engine.rounds import Rounds as RoundsCounted
from ...engine.scorers.choice import split_stream
from ..trajectory.effort import MEASURES
from ..trajectory.options import Options
from .pages import Chunk, check_pages
from .rows import DEFINITIONS, PROCESS_MEASURES, Folded, SessionRow, in_64_bits
from .table import Array, Coded, Columns, Flags, Floats, Integers, Rounds

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]

__all__ = (
    "COLUMNS",
    "MANIFEST",
    "RECORDS",
    "Manifest",
    "Part",
    "Table",
    "View",
    "check_pyarrow",
    "folder_of",
    "forgotten_in",
    "is_tables",
    "keys_of",
    "load_manifest",
    "part_files",
    "read_tables",
    "record_table",
    "remaining_rows",
    "round_table",
    "save_manifest",
    "session_table",
    "take_directory",
    "view_of",
    "write_part",
)

MANIFEST: Final = "manifest.json"
_FORMAT: Final = 1
_LOCK: Final = ".lock"
_KEPT_FOLDERS: Final = ("sessions", "rounds", "records")
_GROUP: Final = 1 << 16  # rows of a row group
_FILE: Final = Budget()
_COLUMNS: Final = 1000
_CHUNKS: Final = 1 << 18  # of columns in a file: a group has one for each of its columns
_WIDTH: Final = 8  # bytes of a value in memory

ArrowColumn: TypeAlias = "pyarrow.ChunkedArray"
Table: TypeAlias = "pyarrow.Table"
"""Rows in Arrow's memory. Those of one session are together."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a table.

    Attributes:
        path: within the directory.
        rows: how many it holds.
        sessions: how many sessions they are of.
        first: the least key of a session in it.
        last: the greatest.
    """

    path: str
    rows: int
    sessions: int
    first: int
    last: int


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The closed sessions of a log: scored in one way, or their records.

    Attributes:
        convention: how rounds are counted; ``records`` for the table of records, which are not
            scored.
        utility: whose utility counts, as ``Options.utility``; ``auto`` for None.
        judge: whose ratings count, as ``Options.judge``.
        definitions: version of the definitions of all numbers by which it was written.
        columns: a digest of the columns of its tables.
        position: the position of the log, up to which closed sessions are in it.
        parts: its files.
    """

    convention: RoundsCounted | Literal["records"]
    utility: str = ""
    judge: str = ""
    definitions: int = DEFINITIONS
    columns: str = ""
    position: int = 0
    parts: tuple[Part, ...] = ()

    def same_as(self, other: View) -> bool:
        """Whether it is the same way of scoring."""
        return (self.convention, self.utility, self.judge) == (
            other.convention,
            other.utility,
            other.judge,
        )

    def table(self, name: str) -> list[Part]:
        """The files of one table."""
        return [part for part in self.parts if part.path.startswith(f"{name}/")]


RECORDS: Final = View(convention="records")
"""The table of records."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a directory of tables.

    Attributes:
        format: the format of the directory.
        log: a digest by which the log is known again.
        number: the number of the last file that was written.
        views: one per way of scoring.
    """

    format: int = _FORMAT
    log: str = ""
    number: int = 0
    views: tuple[View, ...] = ()

    def find(self, wanted: View) -> View | None:
        """The view of a way of scoring, or of the records, if there is one."""
        return next((view for view in self.views if view.same_as(wanted)), None)

    def including(self, views: Sequence[View], *, number: int | None = None) -> Manifest:
        """The manifest with these views in the place of those that it had of them."""
        others = [one for one in self.views if not any(map(one.same_as, views))]
        number = self.number if number is None else number
        return msgspec.structs.replace(self, number=number, views=(*others, *views))


_decode_manifest: Final = msgspec.json.Decoder(Manifest).decode


def view_of(options: Options) -> View:
    """The way of scoring that options ask for, without any file yet."""
    return View(convention=options.rounds, utility=options.utility or "auto", judge=options.judge)


def folder_of(view: View, table: str, scorer: str | None = None) -> str:
    """The folder of a table within the directory, by how it is scored.

    Args:
        view: the way of scoring.
        table: its name.
        scorer: the scorer of the utilities in it, ``name@version``, for a table of rounds; None if
            utility was not measured.
    """
    if table == "records":
        return table
    keys = {"convention": view.convention, "scored_by": view.utility, "rated_by": view.judge}
    if table == "rounds":
        keys["scorer"], keys["version"] = (
            ("none", "none") if scorer is None else split_stream(scorer)
        )
    return "/".join([table, *(f"{key}={_quoted(value)}" for key, value in keys.items())])


def _quoted(value: str) -> str:
    """A value as a part of a path: what file systems or Hive partitions may not have is quoted."""
    return quote(value, safe="@ +") or "%00"


def is_tables(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a directory of tables."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def load_manifest(directory: Path) -> Manifest:
    """Loads the manifest of a directory; an empty one if the directory has none.

    Raises:
        InvalidInput: it cannot be read, or is of a newer Duolog.
    """
    file = directory / MANIFEST
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return Manifest()
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error.strerror or error}") from error
    try:
        found = MESSAGE.decoded(data, _decode_manifest)
    except InvalidInput as error:
        raise InvalidInput(f"{file} is not a manifest of tables: {error}") from error
    if found.format > _FORMAT:
        raise InvalidInput(f"{directory} was written by a newer Duolog: upgrade to read it")
    return found


def save_manifest(directory: Path, manifest: Manifest) -> None:
    """Replaces the manifest in one step, on the disk when this returns."""
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    temporary = directory / f".{MANIFEST}"
    with open(temporary, "wb") as file:
        file.write(data + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, directory / MANIFEST)
    sync_directory(directory)


def take_directory(directory: Path) -> BinaryIO:
    """Creates a directory for tables if needed, and keeps other programs from writing to it.

    Returns:
        The lock, to be closed at the end. If the program ends without that, the system closes it.

    Raises:
        InvalidInput: another program is writing it, or it holds something else than tables.
    """
    try:
        if directory.exists() and not _is_ours(directory):
            raise InvalidInput(f"{directory} holds other files than tables; name another directory")
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / _LOCK).open("wb")
    except OSError as error:
        raise InvalidInput(f"cannot write {directory}: {error.strerror or error}") from error
    try:
        _lock(file, directory)
    except BaseException:
        file.close()
        raise
    return file


def _is_ours(directory: Path) -> bool:
    """Whether a directory is empty, or tables were begun there."""
    return directory.is_dir() and ((directory / _LOCK).exists() or not any(directory.iterdir()))


def _lock(file: BinaryIO, directory: Path) -> None:
    if sys.platform == "win32":  # Windows lacks such locks
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InvalidInput(f"another program is writing the tables in {directory}") from error


def part_files(directory: Path) -> Iterator[str]:
    """The files of tables that lie in a directory, whether a manifest names them or not."""
    for table in _KEPT_FOLDERS:
        for path in sorted((directory / table).rglob("*")):
            if path.is_file() and path.name.lstrip(".").startswith("part-"):
                yield path.relative_to(directory).as_posix()


_SESSION: Final[Mapping[str, str]] = {
    "key": "int64",
    "session": "string",
    "state": "string",
    "labels": "labels",
    "instance": "string",
    "problem": "string",
    "seed": "int64",
    "scorer": "string",
    "candidates": "strings",
    "judges": "strings",
    "baseline": "bool",
    "evaluated": "bool",
    "output": "bool",
    "silent": "bool",
    "estimated": "bool",
    "agent_tokens": "int64",
    "human_tokens": "int64",
    "cost": "double",
    "unpriced": "int64",
    "latency": "double",
    "final": "double",
    "final_missing": "bool",
    "forked_from": "string",
    "forked_version": "int64",
    "forked_at": "int64",
    "faults": "counts",
    "lost": "int64",
    "coarse": "int64",
    "rounds": "int64",
    "tags": "strings",
    "reviewers": "strings",
    "review_rating": "double",
    "comments": "int64",
}
"""Columns of the session table: fields of ``SessionRow``. Process measures and effort come after them."""

_ROUND: Final[Mapping[str, str]] = {
    "round": "int32",
    "stage": "string",
    "closing": "bool",
    "updated": "bool",
    "utility": "double",
    "value": "double",
    "stale": "bool",
    "rating": "int8",
    "pending": "bool",
}
"""Columns of the round table: fields of ``RoundRow``, after the session's key and id. Effort follows."""

_LATE: Final = "late"
"""A column of the round table that no number rests on: whether events of the round were written late."""

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

_FLAGS: Final = ("baseline", "evaluated", "output", "silent", "estimated", "final_missing")
_NUMBERS: Final = (
    "agent_tokens",
    "human_tokens",
    "final",
    "forked_version",
    "forked_at",
    "lost",
    "coarse",
    "review_rating",
    "comments",
)
_LATER: Final = (
    "forked_version",
    "cost",
    "unpriced",
    "latency",
    "lost",
    "coarse",
    "problem",
    "tags",
    "reviewers",
    "review_rating",
    "comments",
)
"""Columns that tables of older versions do not have; their values are missing there."""

COLUMNS: Final = hashlib.sha256(
    repr(([*_SESSION.items()], [*_ROUND.items(), _LATE], [*_RECORD.items()])).encode()
).hexdigest()
"""A digest of the columns of all tables: files with others cannot be added to."""


# --- writing ---------------------------------------------------------------------------------------


def session_table(sessions: Sequence[Folded]) -> Table:
    """A row per session."""
    arrow, types = _types()
    columns = {
        name: arrow.array([_of_session(one.session, name) for one in sessions], types[kind])
        for name, kind in _SESSION.items()
    }
    for name in PROCESS_MEASURES:
        values = [one.session.process and getattr(one.session.process, name) for one in sessions]
        columns[f"process_{name}"] = arrow.array(values, types["double"])
    for name in MEASURES:
        ends = [one.rounds[-1].effort.get(name) if one.rounds else None for one in sessions]
        columns[f"effort_{name}"] = arrow.array(ends, types["double"])
    return arrow.table(columns)


def _of_session(row: SessionRow, name: str) -> object:
    value = getattr(row, name)
    if isinstance(value, Mapping):
        return [*value.items()]
    if name == "instance":
        return value or None
    return in_64_bits(value) if name == "seed" else value


def round_table(sessions: Sequence[Folded]) -> Table:
    """A row per round; none of sessions that were erased."""
    arrow, types = _types()
    rows = [(one.session, point) for one in sessions for point in one.rounds]
    columns = {
        "key": arrow.array([row.key for row, _ in rows], types["int64"]),
        "session": arrow.array([row.session for row, _ in rows], types["string"]),
    }
    for name, kind in _ROUND.items():
        columns[name] = arrow.array([getattr(point, name) for _, point in rows], types[kind])
    columns[_LATE] = arrow.array([point.round in row.late for row, point in rows], types["bool"])
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

    table = _PartFile(directory, part).table()
    keys = pyarrow.array(sorted(gone), pyarrow.int64())
    return table.filter(pyarrow.compute.invert(pyarrow.compute.is_in(table["key"], keys)))


def write_part(directory: Path, folder: str, number: int, tables: Sequence[Table]) -> Part | None:
    """Writes rows into a file, which is on disk when this returns; None without any rows.

    Args:
        directory: the directory of all tables.
        folder: the folder of this one, within it.
        number: the number of the file, never used before.
        tables: the rows.
    """
    import pyarrow.compute
    import pyarrow.parquet  # type: ignore[import-untyped]

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
    return set(_PartFile(directory, part).column("key", "int64").unique().to_pylist())


def forgotten_in(directory: Path, parts: Iterable[Part]) -> set[str]:
    """The sessions in files of the table of sessions that were forgotten."""
    found: set[str] = set()
    for part in parts:
        file = _PartFile(directory, part)
        states = file.column("state", "string").to_pylist()
        if FORGOTTEN in states:
            names = file.column("session", "string").to_pylist()
            found |= {name for name, state in zip(names, states, strict=True) if state == FORGOTTEN}
    return found


def check_pyarrow() -> None:
    """Raises MissingExtra if pyarrow is not installed."""
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


# --- reading ---------------------------------------------------------------------------------------


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turns what the library raises for a damaged file into a refusal that names the file."""
    import pyarrow

    try:
        yield
    except (OSError, pyarrow.ArrowException) as error:
        why = str(error).splitlines()[0]
        raise InvalidInput(f"the tables cannot be read: {path}: {why}") from error


@final
class _PartFile:
    """A table file, opened only if its footer shows that memory will be in proportion to its size.

    Few bytes may stand for very many values, so values are counted before any is read. Texts are
    read as dictionaries: a text that many rows share is in memory once, until it is known what
    all of them become.

    Raises:
        InvalidInput: it lies outside of the directory, cannot be read, or becomes too large.
    """

    def __init__(self, directory: Path, part: Part) -> None:
        import pyarrow.parquet

        self._file = directory / part.path
        if not is_inside(self._file, directory):
            raise InvalidInput(f"{directory / MANIFEST} names a file outside of {directory}")
        with _reading(part.path):
            about = pyarrow.parquet.read_metadata(self._file, memory_map=True)
            self._check(about)
            columns = [about.schema.column(at) for at in range(about.num_columns)]
            texts = [one.path for one in columns if one.physical_type == "BYTE_ARRAY"]
            self._source = pyarrow.parquet.ParquetFile(
                self._file, metadata=about, memory_map=True, read_dictionary=texts
            )
            self.names = frozenset(self._source.schema_arrow.names)
            self.rows: int = about.num_rows

    def _check(self, about: Any) -> None:  # noqa: ANN401  (pyarrow is untyped)
        columns = range(about.num_columns)
        if len(columns) > _COLUMNS:
            raise TooLarge(
                f"{self._file} has {len(columns):,} columns; at most {_COLUMNS:,} are read"
            )
        chunks = about.num_row_groups * len(columns)
        if chunks > _CHUNKS:
            raise TooLarge(
                f"{self._file} has {chunks:,} chunks of columns; at most {_CHUNKS:,} are read"
            )
        groups = [about.row_group(at) for at in range(about.num_row_groups)]
        widths = [max(_WIDTH, about.schema.column(at).length) for at in columns]
        values = sum(group.column(at).num_values * widths[at] for group in groups for at in columns)
        stored = sum(group.total_byte_size for group in groups)
        self._check_size(max(values, stored))
        with self._file.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as held:
            try:
                check_pages(held, [_chunk(group.column(at)) for group in groups for at in columns])
            except InvalidInput as error:
                raise type(error)(f"the tables cannot be read: {self._file}: {error}") from None

    def _check_size(self, size: int) -> None:
        try:
            _FILE.check_inflated(self._file.stat().st_size, size)
        except TooLarge as error:
            raise TooLarge(f"{self._file}: {error}") from None

    def _read(self, names: Sequence[str] | None = None) -> Table:
        import pyarrow

        source = self._source
        # One by one, since several groups of nested texts with dictionaries cannot be read together.
        groups = [source.read_row_group(at, columns=names) for at in range(source.num_row_groups)]
        return pyarrow.concat_tables(groups) if groups else source.read(columns=names)

    def column(self, name: str, kind: str) -> ArrowColumn:
        """A column.

        Raises:
            InvalidInput: it is of another type, or its texts become too large.
        """
        _, types = _types()
        wanted = types[kind]
        held = _plain(self._source.schema_arrow.field(name).type)
        if held != wanted:
            raise InvalidInput(
                f"{self._file}: the column {name} has the type {held}, not {wanted}: export "
                "the log there again"
            )
        with _reading(str(self._file)):
            found = self._read([name])[name]
            self._check_size(sum(map(_text_size, found.chunks)))
            return found.cast(wanted)

    def table(self) -> Table:
        """All rows.

        Raises:
            InvalidInput: its texts become too large.
        """
        import pyarrow

        with _reading(str(self._file)):
            found = self._read()
            chunks = (chunk for column in found.columns for chunk in column.chunks)
            self._check_size(sum(map(_text_size, chunks)))
            plain = [field.with_type(_plain(field.type)) for field in found.schema]
            return found.cast(pyarrow.schema(plain))


def _chunk(about: Any) -> Chunk:  # noqa: ANN401  (pyarrow is untyped)
    """A column in a group of rows."""
    start = about.data_page_offset
    if about.has_dictionary_page and 0 < about.dictionary_page_offset < start:
        start = about.dictionary_page_offset
    return Chunk(
        name=about.path_in_schema,
        start=start,
        end=start + about.total_compressed_size,
        values=about.num_values,
        size=about.total_uncompressed_size,
    )


def _plain(kind: Any) -> Any:  # noqa: ANN401  (pyarrow is untyped)
    """A type of a column, with texts in place of dictionaries of texts."""
    import pyarrow

    if pyarrow.types.is_dictionary(kind):
        return kind.value_type
    if pyarrow.types.is_map(kind):
        return pyarrow.map_(_plain(kind.key_type), _plain(kind.item_type))
    return pyarrow.list_(_plain(kind.value_type)) if pyarrow.types.is_list(kind) else kind


def _text_size(array: Any) -> int:  # noqa: ANN401  (pyarrow is untyped)
    """Bytes that the texts of a column have once each row has its own."""
    import pyarrow
    import pyarrow.compute

    if pyarrow.types.is_map(array.type):
        return _text_size(array.keys) + _text_size(array.items)
    if pyarrow.types.is_list(array.type):
        return _text_size(array.values)
    if not pyarrow.types.is_dictionary(array.type):
        return 0
    sizes = pyarrow.compute.binary_length(array.dictionary)
    return pyarrow.compute.sum(sizes.take(array.indices).cast(pyarrow.int64())).as_py() or 0


def read_tables(directory: Path, options: Options) -> Columns:
    """The columns of a directory of tables.

    Args:
        directory: the directory of the tables.
        options: how they are scored.

    Raises:
        InvalidInput: the tables are not scored in this way, or a file cannot be read.
        MissingExtra: pyarrow is not installed.
    """
    wanted = view_of(options)
    view = load_manifest(directory).find(wanted)
    if view is None or not view.parts:
        raise InvalidInput(
            f"{directory} holds no closed sessions with rounds by {wanted.convention}, utility "
            f"{wanted.utility} and judge {wanted.judge}: export the log with these options"
        )
    if view.definitions != DEFINITIONS:
        raise InvalidInput(
            f"another version of Duolog wrote {directory}: export the log there again"
        )
    check_pyarrow()
    import pyarrow

    columns = _TablesReader(directory, view).columns()
    pyarrow.default_memory_pool().release_unused()  # the numbers need the memory that reading took
    return columns


@final
class _TablesReader:
    """Reads the tables of a view, some columns at a time."""

    def __init__(self, directory: Path, view: View) -> None:
        self._directory = directory
        self._view = view
        self._files: dict[str, _PartFile] = {}

    def columns(self) -> Columns:
        """All columns; the effort of rounds is read when it is asked for."""
        starts, rows = self._placed(_whole(self._column("sessions", "key"), np.int64))
        some: dict[str, Any] = {name: self._flag(name) for name in _FLAGS}
        some |= self._numbers(_NUMBERS)
        begun = np.diff(starts) > 0
        return Columns(
            session=_Names(self._column("sessions", "session")),
            state=_coded(self._column("sessions", "state")),
            labels=_labels(self._column("sessions", "labels")),
            instance=_coded(self._column("sessions", "instance").fill_null("")),
            scorer=_coded(self._column("sessions", "scorer")),
            problem=_coded(self._column("sessions", "problem")),
            candidates=_lists(self._column("sessions", "candidates")),
            judges=_lists(self._column("sessions", "judges")),
            tags=_lists(self._column("sessions", "tags")),
            reviewers=_lists(self._column("sessions", "reviewers")),
            faults=_counts(self._column("sessions", "faults")),
            measures=Coded(np.where(begun, 0, -1).astype(np.int32), (MEASURES,)),
            forked_from=_coded(self._column("sessions", "forked_from")),
            process=self._numbers(PROCESS_MEASURES, "process_"),
            effort=self._numbers(MEASURES, "effort_"),
            starts=starts,
            rounds=self._rounds(rows),
            **some,
        )

    def _rounds(self, rows: Integers | None) -> Rounds:
        def placed(column: Array) -> Array:
            return column if rows is None else column[rows]

        def number(name: str) -> Floats:
            column = self._column("rounds", name)
            found: Floats = placed(_numbers(column) if column is not None else np.empty(0))
            return found

        def whole(name: str, kind: type[np.generic]) -> Array:
            column = self._column("rounds", name)
            return placed(np.empty(0, kind) if column is None else _whole(column, kind))

        def effort(name: str) -> Floats:
            return number(f"effort_{name}") if name in MEASURES else np.full(len(utility), np.nan)

        utility = number("utility")
        return Rounds(
            utility=utility,
            value=number("value"),
            rating=whole("rating", np.int8),
            pending=whole("pending", np.bool_),
            updated=whole("updated", np.bool_),
            stale=whole("stale", np.bool_),
            closing=whole("closing", np.bool_),
            effort=effort,
        )

    def _placed(self, sessions: Integers) -> tuple[Integers, Integers | None]:
        """The first round of each session, and the rows in the files; None if they are in order.

        Raises:
            InvalidInput: rounds of a session are not together, or are of no session.
        """
        column = self._column("rounds", "key")
        key = np.empty(0, np.int64) if column is None else _whole(column, np.int64)
        if len(key) and not len(sessions):
            raise InvalidInput(
                f"{self._directory} has rounds, and no session: export the log again"
            )
        begins = np.flatnonzero(np.diff(key, prepend=-1)) if len(key) else np.empty(0, np.int64)
        lengths = np.diff(np.append(begins, len(key)))
        by_key = np.argsort(sessions, kind="stable")  # quick if they are in order
        at = np.searchsorted(sessions, key[begins], sorter=by_key)
        of = by_key[np.minimum(at, len(sessions) - 1)]
        counts = np.zeros(len(sessions), np.int64)
        counts[of] = lengths
        known = (sessions[of] == key[begins]).all()
        if not known or np.count_nonzero(counts) < len(of):
            raise InvalidInput(
                f"rounds of a session are not together in {self._directory}: export the log again"
            )
        starts = np.concatenate([[0], np.cumsum(counts)])
        if (np.diff(of) > 0).all():
            return starts, None
        order = np.argsort(of)
        moved = begins[order] - starts[:-1][of[order]]
        return starts, np.repeat(moved, lengths[order]) + np.arange(len(key))

    def _flag(self, name: str) -> Flags:
        found: Flags = _whole(self._column("sessions", name), np.bool_)
        return found

    def _numbers(self, names: Sequence[str], prefix: str = "") -> dict[str, Floats]:
        """Columns of numbers of the session table, in half the memory if nothing is lost by it."""
        found: dict[str, Floats] = {}
        for name in names:
            column = _numbers(self._column("sessions", prefix + name))
            narrow = column.astype(np.float32)
            same = np.array_equal(narrow, column, equal_nan=True)
            found[name] = narrow if same else column  # type: ignore[assignment]
        return found

    def _column(self, table: str, name: str) -> ArrowColumn:
        """A column of a table; None if the table has not been written."""
        arrow, types = _types()
        parts = []
        kind = {**_SESSION, **_ROUND}.get(name, "double")
        for part in self._view.table(table):
            file = self._files.get(part.path)
            if file is None:
                file = self._files[part.path] = _PartFile(self._directory, part)
            if name in file.names:
                parts.append(file.column(name, kind))
            elif name in _LATER and table == "sessions":
                parts.append(arrow.nulls(file.rows, types[kind]))
            else:
                raise InvalidInput(
                    f"another version of Duolog wrote {self._directory}: export the log there again"
                )
        chunks = [one for part in parts for one in getattr(part, "chunks", [part])]
        return arrow.chunked_array(chunks, types[kind]) if parts else None


@final
class _Names(Sequence[str]):
    """A column of texts, each of which is decoded when it is asked for."""

    def __init__(self, column: ArrowColumn) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        found = self._column[at]
        return _Names(found) if isinstance(at, slice) else str(found)

    def __iter__(self) -> Iterator[str]:
        return iter(self._column.to_pylist())


def _numbers(column: ArrowColumn) -> Floats:
    """A column of numbers; not a number if one is missing."""
    import pyarrow

    found: Floats = column.cast(pyarrow.float64()).to_numpy()
    return found


def _whole(column: ArrowColumn, kind: type[np.generic]) -> Array:
    """A column of whole numbers or flags; 0 if one is missing."""
    import pyarrow

    if kind is np.bool_:
        flags: Array = column.fill_null(False).cast(pyarrow.uint8()).to_numpy().view(np.bool_)
        return flags
    found: Array = column.fill_null(0).to_numpy().astype(kind, copy=False)
    return found


def _coded(column: ArrowColumn) -> Coded[str]:
    return _encoded(column.combine_chunks())


def _encoded(column: ArrowColumn) -> Coded[str]:
    found = column.dictionary_encode()
    return Coded(
        found.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32),
        found.dictionary.to_pylist(),
    )


def _lists(column: ArrowColumn) -> Coded[tuple[str, ...]]:
    import pyarrow.compute

    coded = _coded(pyarrow.compute.binary_join(column, "\0"))
    return Coded(coded.codes, [tuple(one.split("\0")) if one else () for one in coded.values])


def _labels(column: ArrowColumn) -> dict[str, Coded[str]]:
    found = column.combine_chunks()
    names = _encoded(found.keys)
    row = np.repeat(np.arange(len(found)), np.diff(found.offsets.to_numpy()))
    labels: dict[str, Coded[str]] = {}
    for code, name in enumerate(names.values):
        which = np.flatnonzero(names.codes == code)
        values = _encoded(found.items.take(which))
        codes = np.full(len(found), -1, np.int32)
        codes[row[which]] = values.codes
        labels[name] = Coded(codes, values.values)
    return labels


def _counts(column: ArrowColumn) -> Coded[tuple[tuple[str, int], ...]]:
    """Faults by kind; most sessions have none."""
    found = column.combine_chunks()
    known: dict[tuple[tuple[str, int], ...], int] = {(): 0}
    codes = np.zeros(len(found), np.int32)
    for row in np.flatnonzero(np.diff(found.offsets.to_numpy())).tolist():
        codes[row] = known.setdefault(tuple(found[row].as_py()), len(known))
    return Coded(codes, [*known])
