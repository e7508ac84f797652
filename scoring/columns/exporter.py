"""Writes the closed sessions of a log into a directory of tables, and keeps up with the log.

It reads the log and writes files; it never writes to the log. Each batch ends with a new manifest.
The manifest holds the position up to which closed sessions are in the tables. If the program is
killed, the next run resumes there: no session is lost or written twice. If a session changes after
it was written (a late score, a newer version of a scorer), it is rewritten. If a session is
forgotten, its files are rewritten without its rounds.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, final

import anyio
import anyio.to_thread
import msgspec

from ...engine.errors import InvalidInput
from ...engine.log.contract import EventLog
from ...engine.log.follower import Follower
from ...engine.log.integrity.checksum import envelope_of
from ...engine.log.summary import FORGOTTEN
from ...engine.records import TRACE, Record
from ..trajectory.options import Options
from .parquet import (
    COLUMNS,
    RECORDS,
    Manifest,
    Part,
    Table,
    View,
    check_pyarrow,
    folder_of,
    forgotten_in,
    keys_of,
    load_manifest,
    part_files,
    record_table,
    remaining_rows,
    round_table,
    save_manifest,
    session_table,
    take_directory,
    view_of,
    write_part,
)
from .rows import DEFINITIONS, Folded, SessionFold, SessionRow

__all__ = ("Rewriting", "TablesWritten", "export_tables")

_BATCH: Final = 1 << 16
_TOGETHER: Final = 64
_PAUSE: Final = 10.0
"""Seconds between two batches where little happens in a log that is followed, and between two looks at what
was forgotten."""

_REST: Final = 10
"""Times as long as a look takes until the next one: the list of many sessions is long."""


class TablesWritten(msgspec.Struct, frozen=True, kw_only=True):
    """What was written.

    Attributes:
        sessions: closed sessions that were written now, or again.
        forgotten: sessions whose rounds were erased now.
        position: the position of the log, up to which the tables go.
    """

    sessions: int
    forgotten: int
    position: int


async def export_tables(
    log: EventLog,
    directory: Path,
    options: Options,
    *,
    records: bool = False,
    follow: bool = False,
    batch: int = _BATCH,
    progress: Callable[[int], None] | None = None,
) -> TablesWritten:
    """Writes closed sessions and their rounds, or resumes an earlier export.

    Args:
        log: the log; others may be writing it.
        directory: the directory of the tables; created if missing.
        options: how to score.
        records: write the records of those sessions too.
        follow: keep exporting new sessions until cancelled.
        batch: how many records to read before sessions are written.
        progress: called with the position that the tables have reached.

    Raises:
        InvalidInput: the directory holds something else, or the tables of another log, or another
            program is writing it.
        MissingExtra: pyarrow is not installed.
        CodecError: a body that is needed is damaged.
        LogError: the log cannot be read.
    """
    check_pyarrow()  # before anything is made
    exporter = _Exporter(log, directory, options, records=records)
    lock = await anyio.to_thread.run_sync(take_directory, directory)
    try:
        await exporter.begin()
        await exporter.follow(batch, progress, until=None if follow else log.statistics().position)
    finally:
        lock.close()
    return exporter.written


@final
class _Exporter:
    def __init__(self, log: EventLog, directory: Path, options: Options, *, records: bool) -> None:
        self._log = log
        self._directory = directory
        self._options = options
        self._wanted = [view_of(options), *([RECORDS] if records else [])]
        self._manifest = Manifest()
        self._forgotten: set[str] = set()
        self._look_again = -math.inf
        self.written = TablesWritten(sessions=0, forgotten=0, position=0)

    async def begin(self) -> None:
        """Reads what the directory holds, and removes what a killed program left there."""
        directory = self._directory
        manifest = await anyio.to_thread.run_sync(load_manifest, directory)
        identity = await _identity(self._log)
        if manifest.log not in ("", identity):
            raise InvalidInput(
                f"{directory} holds the tables of another log than {self._log.url}: name another "
                "directory"
            )
        head = self._log.statistics().position
        views = [manifest.find(view) or view for view in self._wanted]
        for view in views:
            if view.position > head:
                raise InvalidInput(
                    f"{directory} goes up to position {view.position:,}, and {self._log.url} ends at "
                    f"{head:,}: it was cut or replaced; export into a new directory"
                )
        views = [_up_to_date(view) for view in views]
        self._manifest = msgspec.structs.replace(manifest, log=identity).including(views)
        await anyio.to_thread.run_sync(self._prepare)

    def _prepare(self) -> None:
        self._clean()
        view = self._views[0]
        self._forgotten = forgotten_in(self._directory, view.table("sessions"))

    def _clean(self) -> None:
        """Removes files that the manifest does not name."""
        named = {part.path for view in self._manifest.views for part in view.parts}
        for path in set(part_files(self._directory)) - named:
            (self._directory / path).unlink(missing_ok=True)

    @property
    def _views(self) -> list[View]:
        return [self._manifest.find(view) or view for view in self._wanted]

    async def follow(
        self, batch: int, progress: Callable[[int], None] | None, *, until: int | None
    ) -> None:
        """Takes records, and writes what they close, up to a position or until it is cancelled."""
        position = min(view.position for view in self._views)
        self.written = msgspec.structs.replace(self.written, position=position)
        await self._commit([], position, last=True)  # sessions forgotten since then
        async with Follower(self._log, after_position=position) as follower:
            while until is None or position < until:
                records = await _take(follower, batch, until)
                position = records[-1].position if records else position
                last = until is not None and position >= until
                await follower.retry(partial(self._commit, records, position, last=last))
                if progress is not None:
                    progress(position)
                if until is None and len(records) < batch:
                    await anyio.sleep(_PAUSE)

    async def _commit(self, records: Sequence[Record], position: int, *, last: bool) -> None:
        """Writes the closed sessions that these records belong to.

        Also removes sessions that are known to be forgotten; the last batch looks for all of them.
        """
        forgotten = await self._newly_forgotten(at_once=last)
        whole = _whole_sessions(records)
        touched = [*dict.fromkeys([*(record.session for record in records), *sorted(forgotten)])]
        due: list[Folded] = []
        kept: list[tuple[int, Record]] = []
        for begin in range(0, len(touched), _TOGETHER):
            histories = [
                await self._history(session, position, None if session in forgotten else whole)
                for session in touched[begin : begin + _TOGETHER]
            ]
            scored = await anyio.to_thread.run_sync(_closed, histories, self._options)
            due += scored
            if RECORDS in self._wanted:
                keys = {one.session.key for one in scored}
                kept += [
                    (of[0].position, record)
                    for of in histories
                    for record in of
                    if of[0].position in keys
                ]
        if not due and all(view.position >= position for view in self._views):
            return
        try:
            await anyio.to_thread.run_sync(self._write, due, kept, position)
        except OSError as error:
            why = error.strerror or error
            raise InvalidInput(f"cannot write tables in {self._directory}: {why}") from error
        self._forgotten |= forgotten
        self.written = TablesWritten(
            sessions=self.written.sessions + len(due),
            forgotten=self.written.forgotten + len(forgotten),
            position=position,
        )

    def _write(
        self, due: Sequence[Folded], records: Sequence[tuple[int, Record]], position: int
    ) -> None:
        """Writes files, then the manifest that names them; then removes those that it names no more."""
        rewriting = Rewriting(self._directory, self._manifest.number)
        views = [
            msgspec.structs.replace(
                view, parts=rewriting.parts(view, due, records), position=position
            )
            for view in self._views
        ]
        self._manifest = self._manifest.including(views, number=rewriting.number)
        save_manifest(self._directory, self._manifest)
        self._clean()

    async def _newly_forgotten(self, *, at_once: bool) -> set[str]:
        """Sessions forgotten since the last look; none if that look was only a moment ago."""
        began = anyio.current_time()
        if began < self._look_again and not at_once:
            return set()
        forgotten = {one.session async for one in self._log.sessions() if one.state == FORGOTTEN}
        ended = anyio.current_time()
        self._look_again = ended + max(_PAUSE, _REST * (ended - began))
        return forgotten - self._forgotten

    async def _history(
        self, session: str, position: int, read: Mapping[str, Sequence[Record]] | None
    ) -> Sequence[Record]:
        """The records of a session, of all streams, up to a position.

        Args:
            session: session id.
            position: the last one that counts.
            read: histories that have been read; None if they would hold what was forgotten since.
        """
        if read is not None and session in read:
            return read[session]
        found: list[Record] = []
        async for record in self._log.read_all(session=session):
            if record.position > position:
                break
            found.append(record)
        return found


def _up_to_date(view: View) -> View:
    """The view to continue; reset to the start if its definitions or columns are outdated."""
    if view.definitions == DEFINITIONS and view.columns == COLUMNS:
        return view
    return msgspec.structs.replace(
        view, definitions=DEFINITIONS, columns=COLUMNS, position=0, parts=()
    )


async def _identity(log: EventLog) -> str:
    """A digest of the envelope of the first record, by which a log is known again; empty without any."""
    async for record in log.read_all():
        return hashlib.sha256(msgspec.json.encode(envelope_of(record))).hexdigest()
    return ""


async def _take(follower: Follower, most: int, until: int | None) -> list[Record]:
    """The next records up to a position; without a position, gives up after a short wait."""
    records: list[Record] = []
    with anyio.CancelScope() if until else anyio.move_on_after(_PAUSE):
        while not records or (until and len(records) < most and follower.taken < until):
            taken = await follower.take(most - len(records))
            records += taken
            for record in taken:
                follower.done(record.position)
    return [record for record in records if not until or record.position <= until]


def _whole_sessions(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The histories of sessions that begin among these records."""
    found: dict[str, list[Record]] = {}
    known: set[str] = set()
    for record in records:
        session = record.session
        if session in found:
            found[session].append(record)
        elif session not in known:
            known.add(session)
            if record.stream == TRACE and record.version == 1:
                found[session] = [record]
    return found


def _closed(histories: Iterable[Sequence[Record]], options: Options) -> list[Folded]:
    """The rows of the sessions that are closed."""
    found: list[Folded] = []
    for records in histories:
        if not records:
            continue
        fold = SessionFold(records[0].session, options, strict=True)
        for record in records:
            fold.feed(record)
        rows = fold.folded()
        row = rows.session
        if row.state == FORGOTTEN:
            rows = Folded(SessionRow(session=row.session, key=row.key, state=FORGOTTEN))
        if row.state != "open":
            found.append(rows)
    return found


# --- files -----------------------------------------------------------------------------------------

_LARGE: Final = 1 << 18
"""Rows of a file to which no more are added."""


@final
class Rewriting:
    """Writes the next files of a directory.

    A file is never changed. Rows of a session that was written before are taken out by writing its
    file again without them; and a small file is written again with the rows that are added, so that
    many small batches leave few files.

    Args:
        directory: the directory of the tables.
        number: the number of the last file that was written.

    Attributes:
        number: the number of the last file that was written.
    """

    def __init__(self, directory: Path, number: int) -> None:
        self._directory = directory
        self.number = number

    def parts(
        self, view: View, sessions: Sequence[Folded], records: Sequence[tuple[int, Record]]
    ) -> tuple[Part, ...]:
        """The files of a view once these sessions are in it.

        Args:
            view: as it is.
            sessions: those that are added, or written again.
            records: the records of these sessions, by key.
        """
        added = _added(view, sessions, records)
        kept = {part.path: part for part in view.parts}
        for part in self._holding(view, {one.session.key for one in sessions}):
            rest = remaining_rows(self._directory, part, [one.session.key for one in sessions])
            added.setdefault(_folder(part), []).insert(0, rest)
            del kept[part.path]
        for folder, tables in added.items():
            rows = sum(table.num_rows for table in tables)
            small = [one for one in kept.values() if _folder(one) == folder and one.rows < _LARGE]
            for part in sorted(small, key=lambda one: one.rows):
                if part.rows > 2 * rows:
                    break
                tables.insert(0, remaining_rows(self._directory, part, ()))
                rows += part.rows
                del kept[part.path]
        return (*kept.values(), *self._written(added))

    def _holding(self, view: View, keys: set[int]) -> Iterable[Part]:
        """The files with rows of some of these sessions."""
        if not keys:
            return []
        low, high = min(keys), max(keys)
        near = [part for part in view.parts if part.first <= high and low <= part.last]
        return [part for part in near if not keys.isdisjoint(keys_of(self._directory, part))]

    def _written(self, added: dict[str, list[Table]]) -> list[Part]:
        parts = []
        for folder, tables in added.items():
            self.number += 1
            part = write_part(self._directory, folder, self.number, tables)
            if part is not None:
                parts.append(part)
        return parts


def _folder(part: Part) -> str:
    return part.path.rpartition("/")[0]


def _added(
    view: View, sessions: Sequence[Folded], records: Sequence[tuple[int, Record]]
) -> dict[str, list[Table]]:
    """New rows by folder."""
    if not sessions:
        return {}
    if view.same_as(RECORDS):
        return {folder_of(view, "records"): [record_table(records)]}
    added = {folder_of(view, "sessions"): [session_table(sessions)]}
    for scorer in dict.fromkeys(one.session.scorer for one in sessions):
        mine = [one for one in sessions if one.session.scorer == scorer]
        added[folder_of(view, "rounds", scorer)] = [round_table(mine)]
    return added
