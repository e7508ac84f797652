"""JSON Lines: a log as text, one record a line, for other programs and for migrations.

The round trip is exact: ids, versions, times and bodies come back as they were, unknown kinds and
older schemas byte for byte. Export and import stream, in memory that does not grow with the log. A
line (here on two)::

    {"session":"s1","stream":"trace","version":1,"kind":"MessageSent","schema":1,"time":0.5,
     "actor":"ann","role":"human","position":7,"body":{"kind":"MessageSent","text":"hello"}}

``cause``, ``seen`` and ``id`` are present if the record has them. ``body`` is null if it was
erased. A body that would not fit on a line is written as a string in ``text`` instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, TypeAlias, final

import anyio
import anyio.to_thread
import msgspec

from ...budget import Budget
from ...errors import CodecError, InvalidInput, LogUnavailable
from ...events import Role
from ...plugins import PluginCall
from ...records import Record
from ...validation import BEYOND, BODY
from ..contract import EventLog
from .output_file import output_file

__all__ = (
    "BATCH",
    "Lines",
    "Progress",
    "call_progress",
    "export_jsonl",
    "from_jsonl",
    "open_lines",
    "to_jsonl",
)

Progress: TypeAlias = Callable[[int], None]
"""Called now and then with the number of records done so far."""

BATCH = 512
"""Lines read at a time."""

_LINE = Budget(size=2 * BODY.size, objects=BODY.objects, depth=BODY.depth)
_BYTES = 1 << 20  # of lines that are read at a time; of one line there may be more


@final
class _Line(msgspec.Struct, omit_defaults=True):
    session: str
    stream: str
    version: int
    kind: str
    schema: int
    time: float
    actor: str
    role: Role
    position: int = 0
    cause: str | None = None
    seen: int | None = None
    id: str | None = None
    body: msgspec.Raw = msgspec.Raw(b"null")
    text: str | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


def to_jsonl(record: Record) -> bytes:
    """The line of a record, with its end."""
    body = record.body
    line = _Line(
        session=record.session,
        stream=record.stream,
        version=record.version,
        kind=record.kind,
        schema=record.schema,
        time=record.time,
        actor=record.actor,
        role=record.role,
        position=record.position,
        cause=record.cause,
        seen=record.seen,
        id=record.caller_id,
    )
    if body is not None:
        if b"\n" in body or b"\r" in body or body == b"null":
            line.text = body.decode()
        else:
            line.body = msgspec.Raw(body)
    return _encode(line) + b"\n"


def from_jsonl(line: bytes) -> Record:
    """The record in a line.

    Raises:
        InvalidInput: the line is none; says why.
    """
    try:
        found = _LINE.decoded(line, _decode)
    except InvalidInput as error:
        raise InvalidInput(f"invalid record: {error}") from None
    if not 1 <= found.version < BEYOND or not found.session or not found.stream:
        raise InvalidInput("invalid record: it needs a session, a stream and a version from 1")
    body: bytes | None = bytes(found.body)
    if found.text is not None:
        body = found.text.encode()
    elif body == b"null":
        body = None
    return Record(
        found.position,
        found.session,
        found.stream,
        found.version,
        found.kind,
        found.schema,
        found.time,
        found.actor,
        found.role,
        found.cause,
        found.seen,
        found.id,
        body,
    )


async def export_jsonl(
    log: EventLog,
    target: Path | BinaryIO,
    *,
    sessions: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> int:
    """Writes a log, or some of its sessions, as JSON Lines; returns the number of records.

    Records come in order of position; those of chosen sessions session by session. A file that is
    named appears when it is complete, not before, and takes the place of another one of its name.

    Args:
        log: an open log.
        target: a path, or a binary file that is open for writing.
        sessions: ids of the sessions to write; None for all.
        progress: called with the number of records written so far.

    Raises:
        SessionNotFound: the log has no such session; nothing was written.
        InvalidInput: the target is a log.
        LogUnavailable: the target cannot be written.
    """
    for session in sessions or ():
        await log.summary(session)
    if not isinstance(target, Path):
        return await _write(log, target, sessions, progress)
    try:
        return await _write_file(log, target, sessions, progress)
    except InvalidInput as error:
        if isinstance(error.__cause__, OSError):
            raise LogUnavailable(str(error)) from error.__cause__
        raise


async def _write_file(
    log: EventLog, target: Path, sessions: Sequence[str] | None, progress: Progress | None
) -> int:
    opening = output_file(target)
    file = await anyio.to_thread.run_sync(opening.__enter__)
    try:
        count = await _write(log, file, sessions, progress)
    except BaseException as error:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(opening.__exit__, type(error), error, None)
        raise
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(opening.__exit__, None, None, None)
    return count


async def _write(
    log: EventLog, file: BinaryIO, sessions: Sequence[str] | None, progress: Progress | None
) -> int:
    count = 0
    lines: list[bytes] = []
    async for record in _records(log, sessions):
        lines.append(to_jsonl(record))
        count += 1
        if len(lines) >= BATCH:
            await anyio.to_thread.run_sync(file.write, b"".join(lines))
            lines.clear()
            call_progress(progress, count)
    await anyio.to_thread.run_sync(file.write, b"".join(lines))
    call_progress(progress, count)
    return count


def call_progress(progress: Progress | None, count: int) -> None:
    """Says how many records are done, if anybody wants to know."""
    if progress is not None:
        with PluginCall("progress"):
            progress(count)


async def _records(log: EventLog, sessions: Sequence[str] | None) -> AsyncIterator[Record]:
    if sessions is None:
        async for record in log.read_all():
            yield record
        return
    for session in dict.fromkeys(sessions):
        async for record in log.read_all(session=session):
            yield record


@final
class Lines:
    """The lines of a file in batches, each with its number and its content.

    Args:
        file: open for reading.
        check: a further check of each record; raises InvalidInput or CodecError if it fails.
    """

    def __init__(
        self, file: BinaryIO, check: Callable[[Record], object] = lambda record: None
    ) -> None:
        self._lines = _LINE.lines(file)
        self._check = check
        self._number = 0

    async def batch(self) -> list[tuple[int, Record | InvalidInput]]:
        """The next lines that are not blank; none at the end of the file."""
        return await anyio.to_thread.run_sync(self._read)

    def _read(self) -> list[tuple[int, Record | InvalidInput]]:
        found: list[tuple[int, Record | InvalidInput]] = []
        while not found:
            lines: list[bytes] = []
            size = 0
            for line in self._lines:
                lines.append(line)
                size += len(line)
                if len(lines) >= BATCH or size >= _BYTES:
                    break
            if not lines:
                break
            found = list(self._parse(lines))
        return found

    def _parse(self, lines: Iterable[bytes]) -> Iterable[tuple[int, Record | InvalidInput]]:
        for line in lines:
            self._number += 1
            if line.strip():
                try:
                    record = from_jsonl(line)
                    self._check(record)
                    yield self._number, record
                except InvalidInput as error:
                    yield self._number, error
                except CodecError as error:
                    yield self._number, InvalidInput(str(error))


async def open_lines(path: Path) -> BinaryIO:
    """Opens a file of JSON Lines.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        return await anyio.to_thread.run_sync(path.open, "rb")
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error
