"""Takes what an importer reads into a log: once, however often it is imported."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, final

import anyio.to_thread
import msgspec

from ...engine import codec
from ...engine.errors import CodecError, InvalidInput
from ...engine.events import SessionOpened
from ...engine.log.contract import EventLog
from ...engine.plugins import PluginCall
from ...engine.records import TRACE, Draft, Record
from ...engine.text import quantity
from .intake import size_of, taken_in, unfit
from .protocol import Foreign, Found, Importer, Reading, Remark

__all__ = ("ImportResult", "Survey", "import_foreign", "survey_foreign")

_BATCH: Final = 256
_BYTES: Final = 1 << 20  # of bodies that wait
_KEPT: Final = 1 << 24  # bytes of bodies that are kept instead of being read again

_Progress: TypeAlias = Callable[[int], None]


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did.

    Attributes:
        sessions: sessions in the source.
        forks: branches of them that were left, which are sessions of their own in the log.
        records: events taken into the log.
        known: events that the log had already.
        parted: by session, the last version of its trace that the log and the source have in common,
            where the source goes on in another way than the log: these sessions were refused.
        remarks: what a person should know of it: problems, and differences on purpose.
    """

    sessions: int
    records: int
    known: int
    forks: int = 0
    parted: Mapping[str, int] = {}
    remarks: tuple[Remark, ...] = ()


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What was found when a source was read through.

    Attributes:
        problems: in it.
        found: all that was read, to be taken without reading it again; None where that is too much
            to be kept.
    """

    problems: tuple[Remark, ...]
    found: tuple[Found, ...] | None = None


async def survey_foreign(source: Path, importer: Importer, reading: Reading) -> Survey:
    """Reads a source through without taking anything.

    Raises:
        InvalidInput: the source as a whole cannot be read.
    """
    found = _open(source, importer, reading)
    problems: list[Remark] = []
    kept: list[Found] = []
    size = 0
    while batch := await anyio.to_thread.run_sync(_next, found):
        if batch.error is not None:
            raise batch.error
        for one in batch.found:
            held = size_of(one) if isinstance(one, Foreign) else 0
            if isinstance(held, Remark):
                problems.append(held)
            elif isinstance(one, Remark) and one.kind == "problem":
                problems.append(one)
            else:
                size += held
        if size <= _KEPT:
            kept += batch.found
    return Survey(problems=tuple(problems), found=tuple(kept) if size <= _KEPT else None)


async def import_foreign(
    log: EventLog,
    source: Path,
    importer: Importer,
    *,
    reading: Reading | None = None,
    keep_going: bool = False,
    look_first: bool = True,
    survey: Survey | None = None,
    progress: _Progress | None = None,
) -> ImportResult:
    """Takes the sessions in a source into a log.

    What the log has already is passed over, so that importing again adds nothing, and an import
    that was interrupted is finished by running it again. A session that has grown since is taken
    on from where the log has it.

    Args:
        log: an open log.
        source: a file or a directory.
        importer: reads it.
        reading: how.
        keep_going: take what can be taken. Else the first problem ends the import.
        look_first: unless it keeps going, read the source through before anything is taken.
        survey: of the source, where that was done already.
        progress: called with the number of events done so far.

    Raises:
        InvalidInput: the source cannot be read, or, unless ``keep_going``, part of it; or the log
            has a session of that name with other contents.
        LogUnavailable: the log cannot be written.
        PluginFailed: the importer or ``progress`` raised what is no ``Exception``.
    """
    reading = reading or Reading()
    if survey is None and look_first and not keep_going:
        survey = await survey_foreign(source, importer, reading)
        if survey.problems:
            first = survey.problems[0]
            raise InvalidInput(f"{first.where}: {first.what}; nothing was imported")
    taking = _Import(log, keep_going)
    kept = None if survey is None else survey.found
    found = _open(source, importer, reading) if kept is None else iter(kept)
    while batch := await anyio.to_thread.run_sync(_next, found):
        for one in batch.found:
            await taking.take(one)
        _call(progress, taking.done)
        if batch.error is not None:
            if not (keep_going and taking.done):
                raise batch.error
            await taking.take(Remark("problem", str(batch.error), str(source)))
    await taking.finish()
    _call(progress, taking.done)
    return taking.taken(source)


def _open(source: Path, importer: Importer, reading: Reading) -> Iterator[Found]:
    with PluginCall(f"importer {importer.name!r}"):
        return importer.read(source, reading)


class _Batch(NamedTuple):
    """What was read next, and why it goes no further."""

    found: list[Found]
    error: InvalidInput | None = None


def _next(found: Iterator[Found]) -> _Batch | None:
    """The next batch; None at the end."""
    batch: list[Found] = []
    try:
        with PluginCall("the importer"):
            for one in islice(found, _BATCH):
                batch.append(one)  # noqa: PERF402  (what was read before an error is taken)
    except InvalidInput as error:
        return _Batch(batch, error)
    return _Batch(batch) if batch else None


def _call(progress: _Progress | None, done: int) -> None:
    if progress is not None:
        with PluginCall("progress"):
            progress(done)


def _origin_of(one: Foreign) -> str | None:
    """The session that a fork left; None for any other session."""
    event = one.draft.event
    forked = event.forked_from if isinstance(event, SessionOpened) else None
    return None if forked is None else forked.session


@final
class _Stream:
    """One stream: what the log holds of it is compared, the rest is appended."""

    def __init__(self, log: EventLog, session: str, stream: str) -> None:
        self._log = log
        self._session = session
        self._stream = stream
        self._held: AsyncIterator[Record] | None = log.read(session, stream=stream)
        self._version = 0
        self._waiting: list[Draft] = []
        self._size = 0
        self.known = 0
        self.added = 0

    async def take(self, draft: Draft, body: bytes) -> str | None:
        """Takes the next event; gives what is wrong where the log has another one there."""
        if self._held is not None:
            record = await anext(self._held, None)
            if record is not None:
                self._version = record.version
                if not _same(record, draft, body):
                    return _other(record)
                self.known += 1
                return None
            self._held = None
        self._waiting.append(draft)
        self._size += len(body)
        return None

    @property
    def version(self) -> int:
        """Of the last record that was compared or written."""
        return self._version

    async def is_longer(self) -> bool:
        """Whether the log holds more of it than was read."""
        return self._held is not None and await anext(self._held, None) is not None

    @property
    def full(self) -> bool:
        """Whether enough waits to be appended."""
        return len(self._waiting) >= _BATCH or self._size >= _BYTES

    async def flush(self) -> list[Remark]:
        """Appends what waits; gives what the log cannot hold of it, which is left out.

        Raises:
            InvalidInput: the log refuses it.
        """
        waiting, self._waiting, self._size = self._waiting, [], 0
        if not waiting:
            return []
        left_out: list[Remark] = []
        try:
            await self._append(waiting)
        except CodecError:
            found = [unfit(Foreign(self._session, self._stream, draft)) for draft in waiting]
            left_out = [one for one in found if one is not None]
            fit = [draft for draft, wrong in zip(waiting, found, strict=True) if wrong is None]
            if not left_out:
                raise
            if fit:
                await self._append(fit)
        return left_out

    async def _append(self, drafts: Sequence[Draft]) -> None:
        records = await self._log.append(
            self._session, drafts, stream=self._stream, expected_version=self._version
        )
        self._version = records[-1].version
        self.added += len(records)


def _same(record: Record, draft: Draft, body: bytes) -> bool:
    """Whether the log holds this event; an erased one stays erased."""
    kind, schema = codec.kind_of(draft.event)
    envelope = (record.kind, record.actor, record.role, record.time)
    if envelope != (kind, draft.actor, draft.role, draft.time):
        return False
    if record.body is None or (record.body == body and record.schema == schema):
        return True
    return _is_grown(record.event, draft.event)


def _is_grown(held: object, event: object) -> bool:
    """Whether an opening differs in what shows only later in a source that grows: who else takes
    part, and on which model. The log keeps what it has.
    """
    if not isinstance(held, SessionOpened) or not isinstance(event, SessionOpened):
        return False
    names = {(one.name, one.role) for one in event.participants}
    known = all((one.name, one.role) in names for one in held.participants)
    return known and msgspec.structs.replace(event, participants=held.participants) == held


def _other(record: Record) -> str:
    return (
        f"the log has another {record.kind} at version {record.version} of its stream "
        f"{record.stream!r}: the source has changed, or is read in another way; import it into "
        "another log"
    )


@final
class _Import:
    """One import."""

    def __init__(self, log: EventLog, keep_going: bool) -> None:
        self._log = log
        self._keep_going = keep_going
        self._session: str | None = None
        self._streams: dict[str, _Stream] = {}
        self._refused = False
        self._sessions = 0
        self._forks = 0
        self._records = 0
        self._known = 0
        self._parted: dict[str, int] = {}
        self._older: set[str] = set()  # sessions of which the log has more than the source
        self._remarks: list[Remark] = []

    @property
    def done(self) -> int:
        """How many events are done."""
        return self._records + self._known + sum(s.known + s.added for s in self._streams.values())

    async def take(self, one: Found) -> None:
        """Takes the next thing that was read."""
        if isinstance(one, Remark):
            self._remark(one)
            return
        if one.session != self._session or isinstance(one.draft.event, SessionOpened):
            await self.finish()
            self._session = one.session
            origin = _origin_of(one)
            # The branch that a session went on with since is what the log has of it: no fork besides.
            self._refused = origin is not None and (origin in self._parted or origin in self._older)
            if origin is None:
                self._sessions += 1
            elif not self._refused:
                self._forks += 1
        if self._refused:
            return
        fit = taken_in(one)
        if isinstance(fit, Remark):
            self._remark(fit)
            return
        one, body = fit
        stream = self._streams.get(one.stream)
        if stream is None:
            stream = _Stream(self._log, one.session, one.stream)
            self._streams[one.stream] = stream
        wrong = await stream.take(one.draft, body)
        if wrong is not None:
            if one.stream == TRACE and stream.version > 1:
                self._parted[one.session] = stream.version - 1
            self._refuse(one.session, wrong)
        elif one.stream != TRACE:
            await self._flush(before=one.stream)
        elif stream.full:
            await self._write(stream)

    async def finish(self) -> None:
        """Writes what waits of the session that was read last."""
        await self._flush()
        for name, stream in self._streams.items():
            if name == TRACE and await stream.is_longer():
                self._older.add(str(self._session))
            self._records += stream.added
            self._known += stream.known
        self._streams = {}

    def taken(self, source: Path) -> ImportResult:
        """What was done."""
        if not self._sessions and not self._remarks:
            self._remarks.append(
                Remark("difference", "nothing was said or done in it", str(source))
            )
        return ImportResult(
            sessions=self._sessions,
            records=self._records,
            known=self._known,
            forks=self._forks,
            parted=self._parted,
            remarks=tuple(self._remarks),
        )

    async def _flush(self, before: str | None = None) -> None:
        """Writes the trace before what was measured of it."""
        for name in sorted(self._streams, key=lambda name: name != TRACE):
            if name != before and not self._refused:
                await self._write(self._streams[name])

    async def _write(self, stream: _Stream) -> None:
        try:
            left_out = await stream.flush()
        except InvalidInput as error:
            self._refuse(str(self._session), str(error))
            return
        for remark in left_out:
            self._remark(remark)

    def _remark(self, remark: Remark) -> None:
        if remark.kind == "problem" and not self._keep_going:
            done = quantity(self.done, "event")
            raise InvalidInput(f"{remark.where}: {remark.what}; the log has {done}")
        self._remarks.append(remark)

    def _refuse(self, session: str, wrong: str) -> None:
        self._remark(Remark("problem", wrong, f"session {session!r}", session))
        self._refused = True
