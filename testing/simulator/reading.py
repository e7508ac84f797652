"""Checks that all ways of reading a log agree, and that damage of its file is found."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final

from msgspec.structs import replace

from ...engine.errors import (
    CodecError,
    DuologError,
    DuplicateConflict,
    InvalidInput,
    LogUnavailable,
    SessionNotFound,
)
from ...engine.events import MessageSent, SessionClosed, SessionOpened, SnapshotTaken, Unknown
from ...engine.log.contract import Derived, EventLog, SessionSummary, Store
from ...engine.log.derived import NUMBERS
from ...engine.log.exchange.copying import copy_log
from ...engine.log.exchange.jsonl_export import export_jsonl
from ...engine.log.exchange.jsonl_import import import_jsonl
from ...engine.log.memory import MemoryLog
from ...engine.log.parts import Divisible, joined
from ...engine.records import TRACE, Draft, Record
from ..tools import collect, message, raises, require
from .scenario import Operation

__all__ = (
    "DAMAGES",
    "check_derived",
    "check_reading",
    "check_refusals",
    "damage",
    "derive",
    "find_damage",
)


async def check_reading(log: EventLog, records: Sequence[Record], draw: int) -> None:
    """Compares every way of reading an idle log with its records.

    Args:
        log: the log.
        records: all of it.
        draw: where reads begin.
    """
    records = list(records)
    scanned: list[Record] = []
    await log.scan(scanned.extend)
    require(scanned == records, "a scan gives all records")
    after = draw % (len(records) + 2)
    found = await collect(log.read_all(after_position=after))
    require(found == records[after:], f"read_all gives what comes after {after}")
    known = log.statistics().position
    alone = isinstance(log, MemoryLog)  # else another process may have written
    require(known == len(records) or (not alone and known < len(records)), "it knows its end")
    sessions = list(dict.fromkeys(record.session for record in records))
    for session in sessions:
        mine = [record for record in records if record.session == session]
        wanted = _summary(session, mine)
        found_summary = await log.summary(session)
        require(found_summary == wanted, f"a summary says {found_summary}, and not {wanted}")
        later = [record for record in mine if record.position > after]
        found = await collect(log.read_all(session=session, after_position=after))
        require(found == later, f"read_all of a session gives what comes after {after}")
        for stream in {record.stream for record in mine}:
            of_stream = [record for record in mine if record.stream == stream]
            version = draw % (len(of_stream) + 1)
            found = await collect(log.read(session, stream=stream, after_version=version))
            require(found == of_stream[version:], f"read gives what comes after {version}")
    await raises(SessionNotFound, log.summary("nobody"))
    require(await collect(log.read("nobody")) == [], "a session that is not there has no records")
    listed = [summary.session async for summary in log.sessions()]
    require(listed == sessions, "sessions are listed in order of their first records")
    if isinstance(log, Divisible):
        await _check_parts(log, records, sessions)
    await _check_files(log, records, sessions, draw)


def _summary(session: str, records: Sequence[Record]) -> SessionSummary:
    """Computes the summary of a session from its records."""
    trace = [record for record in records if record.stream == TRACE]
    about = SessionSummary(
        session=session,
        events=len(records),
        version=len(trace),
        opened=trace[0].time if trace else 0.0,
        last=trace[-1].time if trace else 0.0,
        position=records[-1].position,
    )
    if any(record.body is None for record in records):
        return _with(about, state="forgotten")
    for record in trace:
        event = record.event
        if isinstance(event, SessionOpened):
            group = event.config.get("group")
            labels = dict(group) if isinstance(group, dict) else about.group
            about = _with(about, task=event.task, instance=event.instance, group=labels)
        elif isinstance(event, SessionClosed):
            about = _with(about, state=event.reason)
    return about


def _with(about: SessionSummary, **values: object) -> SessionSummary:
    fields = {name: getattr(about, name) for name in SessionSummary.__struct_fields__}
    return SessionSummary(**(fields | values))


async def _check_parts(log: Divisible, records: Sequence[Record], sessions: Sequence[str]) -> None:
    for count in (1, 2, 5):
        parts = await log.parts(count)
        require(len(parts) <= count, "there are no more parts than were asked for")
        require(sum(part.records for part in parts) == len(records), "parts hold all records")
        whole = [*parts, joined(parts)] if parts else []
        gathered: list[str] = []
        for part in whole:
            got: list[Record] = []
            await log.scan_part(part, got.extend)
            names = {record.session for record in got}
            mine = [record for record in records if record.session in names]
            require(got == mine, "a part holds whole sessions, in order")
            if part is not whole[-1]:
                gathered += dict.fromkeys(record.session for record in got)
        require(gathered == list(sessions), "each session is in one part, and parts follow on")


async def _check_files(
    log: EventLog, records: Sequence[Record], sessions: Sequence[str], draw: int
) -> None:
    """A file of JSON Lines restores the log, also if a part of it was imported before."""
    file = io.BytesIO()
    require(await export_jsonl(log, file) == len(records), "an export counts what it writes")
    async with MemoryLog() as copy:
        if records:
            cut = draw % len(records)
            await copy.restore(records[:cut])
            file.seek(0)
            taken = await import_jsonl(copy, file)
            counts = (taken.records, taken.known, taken.lost, taken.problems)
            wanted = (len(records) - cut, cut, 0, ())
            require(counts == wanted, f"an import counts what it takes: {taken}")
            require(await collect(copy.read_all()) == records, "an import gives the log back")
        copied = await copy_log(log, copy)
        require(copied.records == 0, "a copy that is complete takes nothing")
    if sessions:
        session = sessions[draw % len(sessions)]
        some = io.BytesIO()
        mine = [record for record in records if record.session == session]
        count = await export_jsonl(log, some, sessions=[session, session])
        require(count == len(mine), "an export of a session counts its records")
        await raises(SessionNotFound, export_jsonl(log, some, sessions=["nobody"]))
    async with MemoryLog() as other:
        await other.append("another", [message("another")])
        if records:
            await raises(InvalidInput, copy_log(log, other))


async def check_refusals(log: EventLog) -> None:
    """What no log takes is refused, and changes nothing."""
    said = message("said")
    other = Draft(MessageSent(text="x"), "ann", "human", 1.0, "twice")
    await raises(InvalidInput, log.append("session", []))
    await raises(InvalidInput, log.append("", [said]))
    await raises(InvalidInput, log.append("session", [said], stream=""))
    await raises(DuplicateConflict, log.append("session", [other, other]))
    for bad in (
        {"time": float("nan")},
        {"role": "king"},
        {"id": ""},
        {"seen": -1},
        {"event": Unknown("", 1, b"{}")},
        {"event": Unknown("Other", -1, b"{}")},
        {"event": SnapshotTaken(content=1, digest="wrong")},
    ):
        await _refused(log.append("session", [said, replace(said, **bad)]), bad)
    for call in (
        lambda: log.subscribe(after_position=-1),
        lambda: log.tap(buffer=0),
        lambda: log.read("session", after_version=-1),
        lambda: log.read_all(after_position=-1),
    ):
        await raises(InvalidInput, _called(call))


async def _refused(appending: Awaitable[object], what: object) -> None:
    try:
        await appending
    except (InvalidInput, DuplicateConflict, CodecError):
        return
    require(False, f"an append with {what} is refused")


async def _called(call: object) -> None:
    made = call()  # type: ignore[operator]
    if isinstance(made, AsyncIterator):
        await anext(made, None)


async def derive(
    log: EventLog, operation: Operation, forgotten: Collection[str], calm: Callable[[], bool]
) -> None:
    """Keeps a derived row of a session, and reads it back.

    Args:
        log: the log.
        operation: what is done, and to which session.
        forgotten: sessions that are forgotten, or may be.
        calm: whether the disk works, and nobody else uses it.
    """
    session, draw, kind = f"s{operation.session}", operation.draw, f"fold {operation.worker}"
    try:
        about = await log.summary(session)
    except SessionNotFound:
        return
    version, ahead = 1 + draw % 2, draw >> 1 & 7 == 0
    row = Derived(
        session=session,
        kind=kind,
        version=version,
        position=about.position + 1000 * ahead,
        payload=str(draw).encode(),
        numbers=((), (None,), (1.5, None), (0.0, 1.0, 2.0, 3.0))[draw >> 4 & 3],
    )
    for wrong in (
        Derived(session=session, kind="", version=1, position=0, payload=b""),
        Derived(
            session=session,
            kind=kind,
            version=1,
            position=0,
            payload=b"",
            numbers=(0.0,) * (NUMBERS + 1),
        ),
    ):
        await raises(InvalidInput, log.keep_derived([wrong]))
    kept = await log.keep_derived([row])
    found = await collect(log.derived(kind, version, sessions=[session]))
    whole = [each async for each in log.derived(kind, version) if each.session == session]
    if not calm() or session in forgotten:
        return
    require(kept == (not ahead), f"a row is kept if its session is as far: {kept}")
    require(found == whole, "rows of some sessions are those of all")
    require(row in found or ahead, "a row that is kept is read back")
    if not ahead:
        older = Derived(
            session=session, kind=kind, version=version, position=row.position - 1, payload=b"old"
        )
        kept = await log.keep_derived([older])
        require(not (kept and calm()), "an older row does not replace a newer one")
        other = await collect(log.derived(kind, 3 - version, sessions=[session]))
        require(other == [], "a session has one row of each kind")


async def check_derived(log: EventLog, forgotten: Collection[str], workers: int) -> None:
    """Checks that derived rows of forgotten sessions, and dropped rows, are gone."""
    for kind in (f"fold {worker}" for worker in range(workers)):
        for version in (1, 2):
            left = [row.session async for row in log.derived(kind, version)]
            require(not set(left) & set(forgotten), f"derived rows of forgotten sessions: {left}")
    if isinstance(log, MemoryLog):
        await log.drop_derived()
    for kind in (f"fold {worker}" for worker in range(workers)):
        left = [row.session async for row in log.derived(kind, 1)]
        require(not left or not isinstance(log, MemoryLog), "rows that were dropped are gone")


# --- damage ---------------------------------------------------------------------------------------

DAMAGES: Final = (
    "UPDATE events SET body = body || ' ' WHERE position = :any AND body IS NOT NULL",
    "UPDATE events SET actor = actor || 'x' WHERE position = :any",
    "UPDATE events SET time = time + 1 WHERE position = :any",
    "UPDATE events SET version = version + 1 WHERE position = :last",
    "UPDATE events SET body = NULL WHERE position = :any AND body IS NOT NULL",
    "UPDATE events SET crc = NULL WHERE position = :any",
    "DELETE FROM events WHERE position = :any",
    "DELETE FROM events WHERE position = :last",
    "UPDATE sessions SET events = events + 1",
    "UPDATE sessions SET last = last + 1",
    "UPDATE sessions SET task = task || 'x' WHERE state <> 'forgotten'",
    "UPDATE sessions SET state = 'finished' WHERE state = 'open'",
    "UPDATE checkpoints SET position = position + 1",
    "UPDATE identity SET crc = crc + 1",
    "UPDATE identity SET log = log || 'x'",
    "UPDATE chain SET hash = zeroblob(32) WHERE position = :any",
    "UPDATE chain SET mac = zeroblob(32) WHERE position = :any",
    "DELETE FROM chain WHERE position = :any",
)
"""What may be damaged in a file, as statements."""


def damage(path: Path, random: Random) -> str:
    """Damages a log in a closed file; gives the statement, empty if nothing changed."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        execute = connection.execute
        tables = {
            name for (name,) in execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        triggers = execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            execute(f'DROP TRIGGER "{name}"')
        (last,) = execute("SELECT coalesce(max(position), 0) FROM events").fetchone()
        statement = random.choice(DAMAGES)
        if statement.split(" WHERE ")[0].replace("DELETE FROM", "UPDATE").split()[1] not in tables:
            return ""
        given = {"any": random.randint(1, max(1, last)), "last": last}
        try:
            changed = execute(statement, given).rowcount
        except sqlite3.IntegrityError:
            return ""
        for _, sql in triggers:
            execute(sql)
        return statement if changed else ""


async def find_damage(log: Store, what: str) -> None:
    """Damage is found when the log is opened, or by ``verify``."""
    try:
        async with log:
            problems = (await log.verify()).problems
    except LogUnavailable:
        raise
    except DuologError:
        return  # it is not even opened
    require(bool(problems), f"damage is found: {what}")
