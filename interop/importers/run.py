"""Takes what an importer reads into a log: once, however often it is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias, final

import anyio.to_thread
import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import Tokens
from ...engine.log.contract import EventLog
from ...engine.plugins import PluginCall
from ...engine.records import TRACE
from ...engine.text import quantity
from .batches import BATCH, Part, Run, next_batch, read_from
from .intake import unfit
from .protocol import Importer, Reading, Remark
from .streams import ImportStream, begin_all

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
        events: how many were read.
        parts: all that was read, to be taken without reading it again; None where that is too much
            to be kept.
    """

    problems: tuple[Remark, ...]
    events: int = 0
    parts: tuple[Part, ...] | None = None


async def survey_foreign(
    source: Path, importer: Importer, reading: Reading, *, progress: _Progress | None = None
) -> Survey:
    """Reads a source through without taking anything.

    Args:
        source: a file or a directory.
        importer: reads it.
        reading: how.
        progress: called with the number of events read so far.

    Raises:
        InvalidInput: the source as a whole cannot be read.
        PluginFailed: the importer or ``progress`` raised what is no ``Exception``.
    """
    found = read_from(source, importer, reading)
    problems: list[Remark] = []
    kept: list[Part] = []
    events = size = 0
    while batch := await anyio.to_thread.run_sync(next_batch, found):
        if batch.error is not None:
            raise batch.error
        problems += await anyio.to_thread.run_sync(_problems, batch.parts)
        events += sum(len(part.drafts) for part in batch.parts if isinstance(part, Run))
        _call(progress, events)
        size += batch.size
        if size <= _KEPT:
            kept += batch.parts
    parts = tuple(kept) if size <= _KEPT else None
    return Survey(problems=tuple(problems), events=events, parts=parts)


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
    taking = _Import(log, source, keep_going=keep_going)
    if survey is not None and survey.parts is not None:
        for part in survey.parts:
            await taking.take(part)
            _call(progress, taking.done)
        await taking.finish()
        _call(progress, taking.done)
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
    progress: _Progress | None,
) -> None:
    """Takes all that is read from a source."""
    found = read_from(source, importer, reading)
    while batch := await anyio.to_thread.run_sync(next_batch, found):
        for part in batch.parts:
            await taking.take(part)
        _call(progress, taking.done)
        if batch.error is not None:
            await taking.break_off(batch.error)
    await taking.finish()
    _call(progress, taking.done)


def _call(progress: _Progress | None, done: int) -> None:
    if progress is not None:
        with PluginCall("progress"):
            progress(done)


@final
class _Import:
    """One import, which goes once through a source.

    Args:
        log: an open log.
        source: what is imported.
        keep_going: take what can be taken.
        before: the first time that it was gone through, where ``counted`` has something.

    Attributes:
        counted: sessions that were cut off within a reply when they were imported before, with the
            model calls that the log holds from there on: to be read as they go on behind these.
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
        self._remarks: list[Remark] = []

    @property
    def done(self) -> int:
        """How many events are done."""
        return self._records + self._known + sum(s.known + s.added for s in self._streams.values())

    async def take(self, part: Part) -> None:
        """Takes the next part of what was read."""
        if isinstance(part, Remark):
            if part.kind == "problem":
                await self.settle()
            self._remark(part)
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
                # The branch that a session went on with since is what the log has of it: no fork besides.
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
        self._remark(Remark("problem", str(error), str(self._source)))

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
        """What was done."""
        if not self._sessions and not self._remarks:
            self._remarks.append(
                Remark("difference", "nothing was said or done in it", str(self._source))
            )
        before = 0 if self._before is None else self._before._records
        return ImportResult(
            sessions=self._sessions,
            records=before + self._records,
            known=self._known - before,
            forks=self._forks,
            parted=self._parted,
            remarks=tuple(self._remarks),
        )

    async def _end(self) -> None:
        """Has the session that was read last written, or wait where it is short."""
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
        """Writes the trace before what was measured of it."""
        await self.settle()
        for name in sorted(self._streams, key=lambda name: name != TRACE):
            if name != before and not self._refused:
                self._refused = not await self._write(self._streams[name])

    async def _write(self, stream: ImportStream) -> bool:
        """Writes what waits of a stream; false where its session was refused."""
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
        for remark in left_out:
            self._remark(remark)
        return True

    async def _close(self, stream: ImportStream) -> None:
        """Looks whether the log has more of a stream, and counts it."""
        if stream.name == TRACE and await stream.is_longer():
            self._apart.add(stream.session)
        self._count(stream)

    def _count(self, stream: ImportStream) -> None:
        self._records += stream.added
        self._known += stream.known

    def _remark(self, remark: Remark) -> None:
        if remark.kind == "problem" and not self._keep_going:
            done = quantity(self.done, "event")
            raise InvalidInput(f"{remark.where}: {remark.what}; the log has {done}")
        self._remarks.append(remark)

    def _refuse(self, session: str, wrong: str) -> None:
        self._apart.add(session)
        self._remark(Remark("problem", wrong, f"session {session!r}", session))
