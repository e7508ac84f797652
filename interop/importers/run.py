"""Takes what an importer reads into a log: once, however often it is imported."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, final

import anyio
import anyio.to_thread
import msgspec

from ...engine import codec
from ...engine.errors import CodecError, DuologError, InvalidInput
from ...engine.events import ModelCalled, SessionOpened, Tokens
from ...engine.log.contract import EventLog
from ...engine.log.exchange.jsonl_export import Progress, call_progress
from ...engine.records import TRACE, Draft, Record
from ...engine.text import quantity
from .batches import BATCH, BYTES, Part, Run, next_batch, read_from, unfit
from .protocol import Diagnostic, Importer, Reading

__all__ = ("ImportResult", "import_foreign", "survey_foreign")

_SHORT: Final = 1 << 15  # bytes of bodies


@final
class ImportStream:
    """Takes the events of a stream, and brings those that the log does not have into it.

    Args:
        log: an open log.
        session: id of the session.
        name: the name of the stream.

    Attributes:
        session: id of the session.
        name: the name of the stream.
        version: the version of the last record that was compared or written.
        known: events that the log had already.
        added: events that were appended.
    """

    def __init__(self, log: EventLog, session: str, name: str) -> None:
        self.session = session
        self.name = name
        self.version = 0
        self.known = 0
        self.added = 0
        self._log = log
        self._held: AsyncIterator[Record] | None = None
        self._next: Record | None = None  # that was read and not matched yet
        self._left_out: list[Diagnostic] = []
        self._compared = False
        self._drafts: list[Draft] = []
        self._bodies: list[bytes] = []
        self._size = 0

    def take(self, run: Run) -> None:
        """Takes the next events; they wait."""
        self._drafts += run.drafts
        self._bodies += run.bodies
        self._size += sum(map(len, run.bodies))

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return len(self._drafts)

    @property
    def full(self) -> bool:
        """Whether enough waits to be appended."""
        return len(self._drafts) >= BATCH or self._size >= BYTES

    @property
    def is_short(self) -> bool:
        """Whether ``begin`` may append it together with others: little of it waits, nothing of it
        was compared, and the log does not take it for a repetition, which it can do if all events
        have ids.
        """
        short = self._size < _SHORT and not self._compared
        return short and any(draft.id is None for draft in self._drafts)

    async def begin(self) -> None:
        """Appends the waiting events if the log has nothing of the stream; else they wait."""
        try:
            records = await self._log.append(
                self.session, self._drafts, stream=self.name, expected_version=0
            )
        except DuologError:
            return  # nothing is lost: compared and appended by itself, it is refused again
        self._appended(records)
        self._clear()

    async def compare(self) -> str | None:
        """Compares the waiting events with the log; known ones need not be appended. Returns the
        problem if the log has something else.
        """
        if not self._compared:
            self._compared = True
            self._held = self._log.read(self.session, stream=self.name)
        at = 0
        while self._held is not None and at < len(self._drafts):
            record = self._next = self._next or await anext(self._held, None)
            if record is None:
                self._held = None
                break
            if _same(record, self._drafts[at], self._bodies[at]):
                self.version = record.version
                self._next = None
                self.known += 1
                at += 1
                continue
            left_out = unfit(self.session, self._drafts[at])
            if left_out is None:
                self.version = record.version
                return _other(record)
            self._left_out.append(left_out)  # as it was when the rest was imported
            del self._drafts[at], self._bodies[at]
        del self._drafts[:at], self._bodies[:at]
        return None

    async def flush(self) -> list[Diagnostic]:
        """Appends what was compared and still waits; gives what the log cannot hold of it, which is
        left out.

        Raises:
            InvalidInput: the log refuses it.
        """
        drafts, left_out = self._drafts, self._left_out
        self._clear()
        if not drafts:
            return left_out
        try:
            await self._append(drafts)
        except CodecError:
            found = [unfit(self.session, draft) for draft in drafts]
            wrong = [one for one in found if one is not None]
            fit = [draft for draft, bad in zip(drafts, found, strict=True) if bad is None]
            if not wrong:
                raise
            left_out += wrong
            if fit:
                await self._append(fit)
        return left_out

    async def calls(self) -> dict[int, Tokens]:
        """The model calls in the log from the first difference that ``compare`` found, by version;
        none if the difference is not a model call.
        """
        found: dict[int, Tokens] = {}
        record = self._next
        while record is not None and self._held is not None:
            event = record.event if record.kind == ModelCalled.__name__ else None
            if isinstance(event, ModelCalled):
                found[record.version] = event.tokens
            elif not found:
                break
            record = await anext(self._held, None)
        return found

    async def is_longer(self) -> bool:
        """Whether the log holds more of it than was read."""
        if self._held is None:
            return False
        return self._next is not None or await anext(self._held, None) is not None

    async def _append(self, drafts: Sequence[Draft]) -> None:
        self._appended(
            await self._log.append(
                self.session, drafts, stream=self.name, expected_version=self.version
            )
        )

    def _appended(self, records: Sequence[Record]) -> None:
        self.version = records[-1].version
        self.added += len(records)

    def _clear(self) -> None:
        self._drafts, self._bodies, self._size = [], [], 0
        self._left_out = []


async def begin_all(streams: Iterable[ImportStream]) -> None:
    """Begins each of these streams, as many at once as wait for the log: while one waits, another
    task takes over, so that there are no more tasks than that.
    """
    left = iter(streams)
    replaced = True  # whether a task waits to take over

    async def begin() -> None:
        nonlocal replaced
        replaced = False
        for stream in left:
            if not replaced:
                replaced = True
                tasks.start_soon(begin)
            await stream.begin()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(begin)


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
    """Whether an opening differs only in facts that appear later in a growing source: more
    participants, models and notes. The log keeps its own opening.
    """
    if not isinstance(held, SessionOpened) or not isinstance(event, SessionOpened):
        return False
    names = {(one.name, one.role) for one in event.participants}
    known = all((one.name, one.role) in names for one in held.participants)
    noted = all(event.config.get(name) == value for name, value in held.config.items())
    first = msgspec.structs.replace(event, participants=held.participants, config=held.config)
    return known and noted and first == held


def _other(record: Record) -> str:
    return (
        f"the log has another {record.kind} at version {record.version} of its stream "
        f"{record.stream!r}: the source has changed, or is read in another way; import it into "
        "another log"
    )


# --- takes what an importer reads into a log ------------------------------------------------------


_KEPT: Final = 1 << 24  # bytes of bodies that are kept instead of being read again


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import.

    Attributes:
        sessions: sessions in the source.
        forks: branches of them that were left, which are sessions of their own in the log.
        records: events taken into the log.
        known: events that the log had already.
        parted: by session, the last version of its trace that the log and the source have in
            common, if the source continues differently from the log: these sessions were refused.
        diagnostics: notes for a person: problems, and differences on purpose.
    """

    sessions: int
    records: int
    known: int
    forks: int = 0
    parted: Mapping[str, int] = {}
    diagnostics: tuple[Diagnostic, ...] = ()


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of reading a source through.

    Attributes:
        problems: in it.
        events: how many were read.
        parts: all that was read, to be taken without reading it again; None if that is too much
            to be kept.
    """

    problems: tuple[Diagnostic, ...]
    events: int = 0
    parts: tuple[Part, ...] | None = None


async def survey_foreign(
    source: Path, importer: Importer, reading: Reading, *, progress: Progress | None = None
) -> Survey:
    """Reads a source through without taking anything.

    Args:
        source: a file or a directory.
        importer: reads it.
        reading: how.
        progress: called with the number of events read so far.

    Raises:
        InvalidInput: the source as a whole cannot be read.
        PluginFailed: the importer or ``progress`` raised something that is not an ``Exception``.
    """
    found = read_from(source, importer, reading)
    problems: list[Diagnostic] = []
    kept: list[Part] = []
    events = size = 0
    while batch := await anyio.to_thread.run_sync(next_batch, found, reading.redact):
        if batch.error is not None:
            raise batch.error
        problems += await anyio.to_thread.run_sync(_problems, batch.parts)
        events += sum(len(part.drafts) for part in batch.parts if isinstance(part, Run))
        call_progress(progress, events)
        size += batch.size
        if size <= _KEPT:
            kept += batch.parts
    parts = tuple(kept) if size <= _KEPT else None
    return Survey(problems=tuple(problems), events=events, parts=parts)


def _problems(parts: Sequence[Part]) -> list[Diagnostic]:
    """Problems that were read, and events that no log can hold."""
    problems: list[Diagnostic] = []
    for part in parts:
        if isinstance(part, Run):
            found = (unfit(part.session, draft) for draft in part.drafts)
            problems += (one for one in found if one is not None)
        elif part.kind == "problem":
            problems.append(part)
    return problems


async def import_foreign(
    log: EventLog,
    source: Path,
    importer: Importer,
    *,
    reading: Reading | None = None,
    keep_going: bool = False,
    look_first: bool = True,
    survey: Survey | None = None,
    progress: Progress | None = None,
) -> ImportResult:
    """Takes the sessions in a source into a log.

    Events already in the log are skipped, so importing again adds nothing, and running an
    interrupted import again finishes it. A session that has grown since continues after its last
    event in the log.

    Args:
        log: an open log.
        source: a file or a directory.
        importer: reads it.
        reading: how.
        keep_going: import everything readable. Else the first problem ends the import.
        look_first: unless it keeps going, read the source through before anything is taken.
        survey: the survey of the source, if that was done already.
        progress: called with the number of events done so far.

    Raises:
        InvalidInput: the source cannot be read, or, unless ``keep_going``, part of it; or the log
            has a session of that name with other contents.
        LogUnavailable: the log cannot be written.
        PluginFailed: the importer or ``progress`` raised something that is not an ``Exception``.
    """
    reading = reading or Reading()
    if survey is None and look_first and not keep_going:
        survey = await survey_foreign(source, importer, reading)
        if survey.problems:
            first = survey.problems[0]
            raise InvalidInput(f"{first.where}: {first.what}; nothing was imported")
    taking = _Import(log, source, keep_going=keep_going)
    if survey is not None and survey.parts is not None:
        for part in survey.parts:
            await taking.take(part)
            call_progress(progress, taking.done)
        await taking.finish()
        call_progress(progress, taking.done)
    else:
        await _read(taking, source, importer, reading, progress)
    if not taking.counted:
        return taking.taken()
    again = _Import(log, source, keep_going=keep_going, before=taking)
    reading = msgspec.structs.replace(reading, counted=taking.counted)
    await _read(again, source, importer, reading, progress)
    return again.taken()


async def _read(
    taking: _Import,
    source: Path,
    importer: Importer,
    reading: Reading,
    progress: Progress | None,
) -> None:
    """Takes all that is read from a source."""
    found = read_from(source, importer, reading)
    while batch := await anyio.to_thread.run_sync(next_batch, found, reading.redact):
        for part in batch.parts:
            await taking.take(part)
        call_progress(progress, taking.done)
        if batch.error is not None:
            await taking.break_off(batch.error)
    await taking.finish()
    call_progress(progress, taking.done)


@final
class _Import:
    """One import, which goes once through a source.

    Args:
        log: an open log.
        source: the source to import.
        keep_going: import everything readable.
        before: the first time that it was gone through, if ``counted`` has something.

    Attributes:
        counted: sessions that were cut off within a reply when they were imported before, with the
            model calls that the log holds from there on: they are read as if they continued after
            these.
    """

    def __init__(
        self, log: EventLog, source: Path, *, keep_going: bool, before: _Import | None = None
    ) -> None:
        self.counted: dict[str, Mapping[int, Tokens]] = {}
        self._log = log
        self._source = source
        self._keep_going = keep_going
        self._before = before
        self._session: str | None = None
        self._streams: dict[str, ImportStream] = {}
        self._short: list[ImportStream] = []  # traces of whole sessions that wait
        self._waiting = 0  # events in them
        self._refused = False
        self._sessions = 0
        self._forks = 0
        self._records = 0
        self._known = 0
        self._parted: dict[str, int] = {}
        self._apart: set[str] = set()  # sessions of which the log has something else, or more
        self._diagnostics: list[Diagnostic] = []

    @property
    def done(self) -> int:
        """How many events are done."""
        return self._records + self._known + sum(s.known + s.added for s in self._streams.values())

    async def take(self, part: Part) -> None:
        """Takes the next part of the source."""
        if isinstance(part, Diagnostic):
            if part.kind == "problem":
                await self.settle()
            self._diagnostic(part)
            return
        if part.session != self._session or part.opened is not None:
            await self._end()
            self._session = part.session
            forked = part.opened.forked_from if part.opened is not None else None
            origin = None if forked is None else forked.session
            if origin is None:
                self._refused = False
                self._sessions += 1
            else:
                await self.settle()
                # The log already has the branch on which the session continued, so it needs no
                # fork.
                self._refused = origin in self._apart
                self._forks += not self._refused
        if self._refused:
            return
        stream = self._streams.get(part.stream)
        if stream is None:
            stream = ImportStream(self._log, part.session, part.stream)
            self._streams[part.stream] = stream
        stream.take(part)
        if part.stream != TRACE:
            await self._flush(before=part.stream)
        elif stream.full:
            await self._flush()

    async def finish(self) -> None:
        """Writes all that waits."""
        await self._end()
        await self.settle()

    async def break_off(self, error: InvalidInput) -> None:
        """Notes that the source can be read no further.

        Raises:
            InvalidInput: the error, unless it is to keep going and something was taken.
        """
        await (self.finish() if self._keep_going else self.settle())
        if not (self._keep_going and self.done):
            raise error
        self._diagnostic(Diagnostic("problem", str(error), str(self._source)))

    async def settle(self) -> None:
        """Writes the sessions that wait as a whole, all at once: a commit for each, and a look whether
        the log has it already, would take longer than what is in it.
        """
        short, self._short, self._waiting = self._short, [], 0
        if len(short) > 1:
            await begin_all(short)
        written = [stream for stream in short if not stream.waiting]
        for stream in written:
            self._count(stream)
        for stream in short:
            if stream.waiting:  # the log has it, or refused it
                await self._write(stream)
                await self._close(stream)

    def taken(self) -> ImportResult:
        """The result so far."""
        if not self._sessions and not self._diagnostics:
            self._diagnostics.append(
                Diagnostic("difference", "nothing was said or done in it", str(self._source))
            )
        before = 0 if self._before is None else self._before._records
        return ImportResult(
            sessions=self._sessions,
            records=before + self._records,
            known=self._known - before,
            forks=self._forks,
            parted=self._parted,
            diagnostics=tuple(self._diagnostics),
        )

    async def _end(self) -> None:
        """Writes the session that was read last, or lets it wait if it is short."""
        streams = list(self._streams.values())
        if [stream.name for stream in streams] == [TRACE] and streams[0].is_short:
            self._streams = {}
            self._short += streams
            self._waiting += streams[0].waiting
            if self._waiting >= BATCH:
                await self.settle()
            return
        await self._flush()
        self._streams = {}
        for stream in streams:
            await self._close(stream)

    async def _flush(self, before: str | None = None) -> None:
        """Writes the trace before its measurements."""
        await self.settle()
        for name in sorted(self._streams, key=lambda name: name != TRACE):
            if name != before and not self._refused:
                self._refused = not await self._write(self._streams[name])

    async def _write(self, stream: ImportStream) -> bool:
        """Writes what waits of a stream; false if its session was refused."""
        wrong = await stream.compare()
        if wrong is not None and self._before is None and stream.name == TRACE:
            calls = await stream.calls()
            if calls:
                self.counted[stream.session] = calls
                self._apart.add(stream.session)
                return False
        if wrong is not None:
            if stream.name == TRACE and stream.version > 1:
                self._parted[stream.session] = stream.version - 1
            self._refuse(stream.session, wrong)
            return False
        try:
            left_out = await stream.flush()
        except InvalidInput as error:
            self._refuse(stream.session, str(error))
            return False
        for diagnostic in left_out:
            self._diagnostic(diagnostic)
        return True

    async def _close(self, stream: ImportStream) -> None:
        """Looks whether the log has more of a stream, and counts it."""
        if stream.name == TRACE and await stream.is_longer():
            self._apart.add(stream.session)
        self._count(stream)

    def _count(self, stream: ImportStream) -> None:
        self._records += stream.added
        self._known += stream.known

    def _diagnostic(self, diagnostic: Diagnostic) -> None:
        if diagnostic.kind == "problem" and not self._keep_going:
            done = quantity(self.done, "event")
            raise InvalidInput(f"{diagnostic.where}: {diagnostic.what}; stopped after {done}")
        self._diagnostics.append(diagnostic)

    def _refuse(self, session: str, wrong: str) -> None:
        self._apart.add(session)
        self._diagnostic(Diagnostic("problem", wrong, f"session {session!r}", session))
