"""Import from JSON Lines: records enter a log as another one held them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias, final

import anyio
import anyio.to_thread
import msgspec

from ...errors import InvalidInput, VersionConflict
from ...plugins import PluginCall
from ...records import Record
from ...text import quantity
from ..append import restored
from ..contract import Store
from .jsonl_export import Lines, Progress, open_lines

__all__ = ("LOST", "Imported", "LineProblem", "import_jsonl", "look_through")

LOST: Final = "Lost"
"""Kind of the placeholder for a record that could not be read. Folds skip it, as any kind they do
not know; with it the versions of what follows stay as they were, and so do references to them."""

_MOST_LOST: Final = 100_000
"""Placeholders in one import: a file does not make a log much larger than itself."""

_Numbered: TypeAlias = tuple[int, Record]


class LineProblem(NamedTuple):
    """A line that could not be taken: its number, from 1, and why."""

    line: int
    what: str


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import.

    Attributes:
        records: appended to the log.
        known: lines that the log had already.
        lost: placeholders for records that are missing in a stream.
        problems: lines that could not be imported.
    """

    records: int
    known: int
    lost: int
    problems: tuple[LineProblem, ...] = ()


async def import_jsonl(
    log: Store,
    source: Path | BinaryIO,
    *,
    keep_going: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Imports the records of a JSON Lines file into a log, unchanged.

    Records that the log has already are skipped, so run an interrupted import again to finish it.
    Positions are assigned again; in an empty log they are the same as before.

    Args:
        log: an open log.
        source: a path, or a binary file that is open for reading.
        keep_going: import all valid records, and report the rest. A placeholder of kind ``Lost``
            replaces a record that is lost in the middle of a stream. By default the first problem
            ends the import; a file given by path is checked as a whole before it is imported.
        progress: called with the number of lines done so far.

    Raises:
        InvalidInput: the file cannot be read, or, unless ``keep_going``, one of its lines; says
            which.
        LogUnavailable: the log cannot be written.
    """
    if not isinstance(source, Path):
        return await _Import(log, keep_going, progress).run(source)
    file = await open_lines(source)
    try:
        if not keep_going:
            await look_through(file)
        return await _Import(log, keep_going, progress).run(file)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(file.close)


async def look_through(file: BinaryIO) -> None:
    """Reads a file to its end, and goes back to its beginning.

    Raises:
        InvalidInput: a line is not a record, or no log accepts it; the message names the line.
    """
    lines = Lines(file, _check)
    while batch := await lines.batch():
        for number, found in batch:
            if isinstance(found, InvalidInput):
                raise InvalidInput(f"line {number}: {found}; nothing was imported")
    await anyio.to_thread.run_sync(file.seek, 0)


def _check(record: Record) -> None:
    restored(record)


@final
class _StreamState:
    """Progress in a stream of the target: compares records that it has, and appends the rest."""

    def __init__(self, existing: AsyncIterator[Record]) -> None:
        self._existing: AsyncIterator[Record] | None = existing
        self.version = 0
        self.failed = False

    async def advance(self, version: int) -> Record | None:
        """The record that the target had at a version before the import, if any."""
        while self._existing is not None and self.version < version:
            record = await anext(self._existing, None)
            if record is None:
                self._existing = None
                break
            self.version = record.version
            if record.version == version:
                return record
        return None


class _Item(NamedTuple):
    line: int
    record: Record
    stream: _StreamState
    placeholder: bool


@final
class _Import:
    """One import."""

    def __init__(self, log: Store, keep_going: bool, progress: Progress | None) -> None:
        self._log = log
        self._keep_going = keep_going
        self._progress = progress
        self._streams: dict[tuple[str, str], _StreamState] = {}
        self._problems: list[LineProblem] = []
        self._records = 0
        self._known = 0
        self._lost = 0
        self._placed = 0

    async def run(self, file: BinaryIO) -> Imported:
        """Takes all lines of a file."""
        lines = Lines(file)
        done = 0
        while batch := await lines.batch():
            records: list[_Numbered] = []
            for number, found in batch:
                if isinstance(found, Record):
                    records.append((number, found))
                else:
                    self._complain(number, str(found))
            while records:
                records = await self._take(records)
            done = batch[-1][0]
            if self._progress is not None:
                with PluginCall("progress"):
                    self._progress(done)
        return Imported(
            records=self._records,
            known=self._known,
            lost=self._lost,
            problems=tuple(self._problems),
        )

    def _complain(self, line: int, what: str) -> None:
        if not self._keep_going:
            done = quantity(self._records, "record")
            raise InvalidInput(f"line {line}: {what}; imported {done}")
        self._problems.append(LineProblem(line, what))

    async def _take(self, records: list[_Numbered]) -> list[_Numbered]:
        """Imports a batch; returns the lines to try again, because one before them failed."""
        items: list[_Item] = []
        for number, record in records:
            items += await self._place(number, record)
        outcomes = await self._log.restore([item.record for item in items])
        again: list[_Numbered] = []
        failed: set[_StreamState] = set()
        for item, outcome in zip(items, outcomes, strict=True):
            if isinstance(outcome, Record):
                self._records += not item.placeholder
                self._lost += item.placeholder
                continue
            if item.stream in failed and isinstance(outcome, VersionConflict):
                if not item.placeholder:
                    again.append((item.line, item.record))
                continue
            if item.stream not in failed:
                failed.add(item.stream)
                item.stream.version = item.record.version - 1
            # Where not even a placeholder is taken, nothing behind it can be.
            item.stream.failed = item.stream.failed or item.placeholder
            self._complain(item.line, str(outcome))
        return again

    async def _place(self, number: int, record: Record) -> list[_Item]:
        """The appends for a record: the record, and placeholders for missing records before it."""
        key = (record.session, record.stream)
        stream = self._streams.get(key)
        if stream is None:
            stream = _StreamState(self._log.read(record.session, stream=record.stream))
            self._streams[key] = stream
        where = (
            f"version {record.version} of stream {record.stream!r} of session {record.session!r}"
        )
        existing = await stream.advance(record.version)
        if existing is not None:
            if _alike(existing, record):
                self._known += 1
            else:
                self._complain(number, f"the log has another {where}")
            return []
        if stream.failed or record.version <= stream.version:
            self._complain(number, f"{where} cannot follow version {stream.version}")
            return []
        missing = range(stream.version + 1, record.version)
        if len(missing) > _MOST_LOST - self._placed:
            self._complain(
                number,
                f"{where} follows version {stream.version}: {len(missing):,} records are missing, "
                f"and an import puts placeholders for {_MOST_LOST:,} at most",
            )
            return []
        self._placed += len(missing)
        if missing and not self._keep_going:
            self._complain(number, f"{where} follows version {stream.version}: lines are missing")
        stream.version = record.version
        items = [_Item(number, _placeholder(record, at), stream, True) for at in missing]
        return [*items, _Item(number, record, stream, False)]


def _alike(old: Record, new: Record) -> bool:
    """Whether two records are equal except for position; an erased one stays erased."""
    body = new.body if old.body is not None else None
    return old == msgspec.structs.replace(new, position=old.position, body=body)


def _placeholder(record: Record, version: int) -> Record:
    return Record(
        0,
        record.session,
        record.stream,
        version,
        LOST,
        1,
        record.time,
        "import",
        "environment",
        None,
        None,
        None,
        None if record.body is None else b'{"kind":"Lost"}',  # nothing, in a forgotten session
    )
