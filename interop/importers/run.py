"""Takes what an importer reads into a log: once, however often it is imported."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias, final

import anyio.to_thread
import msgspec

from ...engine import codec
from ...engine.errors import CodecError, InvalidInput
from ...engine.events import SessionOpened
from ...engine.log.contract import EventLog
from ...engine.plugins import PluginCall
from ...engine.records import TRACE, Draft, Record
from ...engine.text import quantity
from .batches import BATCH, BYTES, Part, Run, next_batch
from .intake import unfit
from .protocol import Found, Importer, Reading, Remark

__all__ = ("ImportResult", "Survey", "import_foreign", "survey_foreign")

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
        parts: all that was read, to be taken without reading it again; None where that is too much
            to be kept.
    """

    problems: tuple[Remark, ...]
    parts: tuple[Part, ...] | None = None


async def survey_foreign(source: Path, importer: Importer, reading: Reading) -> Survey:
    """Reads a source through without taking anything.

    Raises:
        InvalidInput: the source as a whole cannot be read.
    """
    found = _open(source, importer, reading)
    problems: list[Remark] = []
    kept: list[Part] = []
    size = 0
    while batch := await anyio.to_thread.run_sync(next_batch, found):
        if batch.error is not None:
            raise batch.error
        problems += await anyio.to_thread.run_sync(_problems, batch.parts)
        size += batch.size
        if size <= _KEPT:
            kept += batch.parts
    return Survey(problems=tuple(problems), parts=tuple(kept) if size <= _KEPT else None)


def _problems(parts: Sequence[Part]) -> list[Remark]:
    """Problems that were read, and events that no log can hold."""
    problems: list[Remark] = []
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
    if survey is not None and survey.parts is not None:
        for part in survey.parts:
            await taking.take(part)
            _call(progress, taking.done)
    else:
        found = _open(source, importer, reading)
        while batch := await anyio.to_thread.run_sync(next_batch, found):
            for part in batch.parts:
                await taking.take(part)
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


def _call(progress: _Progress | None, done: int) -> None:
    if progress is not None:
        with PluginCall("progress"):
            progress(done)


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

    async def take(self, run: Run) -> str | None:
        """Takes the next events; gives what is wrong where the log has other ones there."""
        drafts, bodies = run.drafts, run.bodies
        at = 0
        while self._held is not None and at < len(drafts):
            record = await anext(self._held, None)
            if record is None:
                self._held = None
                break
            self._version = record.version
            if not _same(record, drafts[at], bodies[at]):
                return _other(record)
            self.known += 1
            at += 1
        self._waiting += drafts[at:]
        self._size += sum(map(len, bodies[at:]))
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
        return len(self._waiting) >= BATCH or self._size >= BYTES

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
            found = [unfit(self._session, draft) for draft in waiting]
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

    async def take(self, part: Part) -> None:
        """Takes the next part of what was read."""
        if isinstance(part, Remark):
            self._remark(part)
            return
        if part.session != self._session or part.opened is not None:
            await self.finish()
            self._session = part.session
            forked = part.opened.forked_from if part.opened is not None else None
            origin = None if forked is None else forked.session
            # The branch that a session went on with since is what the log has of it: no fork besides.
            self._refused = origin is not None and (origin in self._parted or origin in self._older)
            if origin is None:
                self._sessions += 1
            elif not self._refused:
                self._forks += 1
        if self._refused:
            return
        stream = self._streams.get(part.stream)
        if stream is None:
            stream = _Stream(self._log, part.session, part.stream)
            self._streams[part.stream] = stream
        wrong = await stream.take(part)
        if wrong is not None:
            if part.stream == TRACE and stream.version > 1:
                self._parted[part.session] = stream.version - 1
            self._refuse(part.session, wrong)
        elif part.stream != TRACE:
            await self._flush(before=part.stream)
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
