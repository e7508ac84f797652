"""Checks what lies around a log: its end, the files that are written of it, imports of a part of it,
addresses that name no log, followers of a log that is away for a while.
"""

from __future__ import annotations

import asyncio
import io
import math
import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, closing
from functools import partial
from pathlib import Path
from typing import Final, cast, final

import msgspec

from ...engine.errors import (
    DuologError,
    InvalidInput,
    LogClosed,
    LogUnavailable,
    NotALog,
)
from ...engine.events import MessageSent
from ...engine.log.backoff import Backoff
from ...engine.log.contract import Derived, EventLog, SessionSummary, Store, Subscription
from ...engine.log.derived import NUMBERS
from ...engine.log.exchange.jsonl_export import export_jsonl, to_jsonl
from ...engine.log.exchange.jsonl_import import import_jsonl
from ...engine.log.exchange.output_file import OutputRules, check_output, output_file
from ...engine.log.follower import Follower
from ...engine.log.memory import MemoryLog
from ...engine.log.open import open_log
from ...engine.log.parts import Divisible
from ...engine.log.ranked import ROW, Arrangement, Ranked, Rows
from ...engine.log.searched import Searchable
from ...engine.log.summary import FORGOTTEN
from ...engine.records import Draft, Record
from ..tools import collect, message, raises, require
from .drafts import SECRET, cleaned

__all__ = (
    "Away",
    "check_addresses",
    "check_closed",
    "check_counts",
    "check_foreign_file",
    "check_gaps",
    "check_output_files",
    "check_restoring",
    "check_rows",
    "check_waiting",
)

_CALLS: Final[dict[str, Callable[[Store], object]]] = {
    "append": lambda log: log.append("closed", [message("closed")]),
    "append by id": lambda log: log.append("closed", [message("closed", "closed")]),
    "read": lambda log: log.read("s0"),
    "read_all": lambda log: log.read_all(),
    "read_all of a session": lambda log: log.read_all(session="s0"),
    "scan": lambda log: log.scan(lambda _: None),
    "subscribe": lambda log: log.subscribe(),
    "tap": lambda log: log.tap(),
    "checkpoint": lambda log: log.checkpoint("consumer", "1"),
    "sessions": lambda log: log.sessions(),
    "summary": lambda log: log.summary("s0"),
    "derived": lambda log: log.derived("fold 0", 1),
    "keep_derived": lambda log: log.keep_derived([]),
    "drop_derived": lambda log: log.drop_derived(),
    "outdated": lambda log: cast(Ranked, log).outdated("fold 0", 1),
    "arranged": lambda log: cast(Ranked, log).arranged(Arrangement(by="task", limit=1)),
    "numbers": lambda log: cast(Ranked, log).numbers(Rows("fold 0", 1), ["s0"]),
    "parts": lambda log: cast(Divisible, log).parts(1),
    "unread_texts": lambda log: cast(Searchable, log).unread_texts(1),
    "search_texts": lambda log: cast(Searchable, log).search_texts([["x"]], 1),
    "found_texts": lambda log: cast(Searchable, log).found_texts([["x"]], 1, ["s0"]),
    "keep_texts": lambda log: cast(Searchable, log).keep_texts([]),
    "restore": lambda log: log.restore([]),
    "forget": lambda log: log.forget("s0"),
    "vacuum": lambda log: log.vacuum(),
    "verify": lambda log: log.verify(),
}
"""All that one may ask of a log."""


async def check_closed(log: EventLog) -> None:
    """A log that is not open refuses everything, and says why."""
    for name, call in _CALLS.items():
        if hasattr(log, name.split()[0]):
            try:
                await _made(call(cast(Store, log)))
            except LogClosed:
                continue
            require(False, f"a log that is not open refuses {name}")


async def _made(made: object) -> None:
    if isinstance(made, AbstractAsyncContextManager):
        async with made:
            return
    if isinstance(made, AsyncIterator):
        await anext(made, None)
        return
    await cast(Awaitable[object], made)


async def check_counts(log: EventLog, records: Sequence[Record]) -> None:
    """An idle log counts as many as there are."""
    stands = log.statistics()
    require(stands.waiting == 0, f"nothing waits in an idle log: {stands.waiting}")
    require(stands.events <= len(records), f"a log counts what it has committed: {stands}")
    if isinstance(log, MemoryLog):
        require(stands.groups <= stands.events, f"a group has an event at least: {stands}")
        require((stands.groups > 0) == (stands.events > 0), f"and events come in groups: {stands}")
        require(stands.events == len(records), f"a log in memory has committed all: {stands}")
    if not hasattr(log, "verify"):
        return
    found = await cast(Store, log).verify()
    require(found.events == len(records), f"verify looks at all records: {found.events}")
    names = {record.session for record in records}
    gone = {record.session for record in records if record.body is None}
    counts = (found.sessions, found.forgotten)
    require(counts == (len(names), len(gone)), f"verify counts sessions: {counts}")
    if log.url.startswith(("memory:", "sqlite:")):
        unchecked = len(records) if isinstance(log, MemoryLog) else 0
        require(found.unchecked == unchecked, f"all of a file is checked: {found.unchecked}")
    streams = {f"{record.session}/{record.stream}" for record in records} if found.chained else ()
    require(set(found.heads) == set(streams), "a chain has a head of each stream")


async def check_restoring(records: Sequence[Record], draw: int) -> None:
    """An import calls the redaction hook, and refuses a damaged record alone."""
    said = [record for record in records if record.kind == "MessageSent" and record.body]
    if not said:
        return
    chosen = said[draw % len(said)]
    told = Draft(MessageSent(text=f"{SECRET} of {chosen.actor}"), chosen.actor, "human", 1.0)
    async with MemoryLog() as log:
        [raw] = await log.append(chosen.session, [told], stream=chosen.stream)
    damaged = msgspec.structs.replace(raw, version=2, body=b'{"text":1}', _event=None)
    erased = msgspec.structs.replace(raw, version=2, body=None, _event=None)
    async with MemoryLog(redact=cleaned) as log:
        first, wrong, gone = await log.restore([raw, damaged, erased])
        require(isinstance(first, Record) and first.event == cleaned(told).event, "it is cleaned")
        require(isinstance(wrong, DuologError), "a damaged record is refused alone")
        require(isinstance(gone, Record) and gone.body is None, "an erased one stays erased")
        first = (await collect(log.read_all()))[0]
        require(SECRET.encode() not in (first.body or b""), "a secret is not imported")
        again = await log.restore([raw])
        require(isinstance(again[0], DuologError | Record), "an import says what became of each")
    async with MemoryLog() as log:
        first, wrong = await log.restore([raw, damaged])
        require(isinstance(first, Record) and first.body == raw.body, "without a hook all stays")
        require(isinstance(wrong, DuologError), "a damaged record is refused alone")


async def check_gaps(records: Sequence[Record], draw: int) -> None:
    """A file without some of its lines is refused; with ``keep_going`` placeholders take their places."""
    traces: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        traces.setdefault((record.session, record.stream), []).append(record)
    long = [stream for stream in traces.values() if len(stream) > 2]
    if not long:
        return
    stream = long[draw % len(long)]
    begin = draw >> 4 & 3
    missing = stream[begin : begin + 1 + (draw >> 6 & 1)]
    if not missing or missing[-1] is stream[-1]:
        return
    if any(record.kind == "SessionClosed" for record in stream[: begin + len(missing)]):
        return  # only feedback may follow
    left = [record for record in records if record not in missing]
    data = b"".join(map(to_jsonl, left))
    async with MemoryLog() as copy:
        await raises(InvalidInput, import_jsonl(copy, io.BytesIO(data)))
    async with MemoryLog() as copy:
        taken = await import_jsonl(copy, io.BytesIO(data), keep_going=True)
        require(taken.lost == len(missing), f"an import counts what is missing: {taken}")
        require(taken.records == len(left), f"and what it takes: {taken}")
        found = await collect(copy.read(stream[0].session, stream=stream[0].stream))
        versions = [record.version for record in found]
        require(versions == [record.version for record in stream], f"versions stay: {versions}")
        lost = {record.version for record in missing}
        for was, now in zip(stream, found, strict=True):
            same = (was.body, was.actor, was.time) == (now.body, now.actor, now.time)
            require(same or was.version in lost, f"what is there stays as it was: {now}")
            require(was.version not in lost or not same, "and a placeholder says so")


async def check_output_files(log: EventLog, records: Sequence[Record]) -> None:
    """An export is there whole or not at all, replaces only what it may, and leaves nothing behind."""
    with tempfile.TemporaryDirectory(prefix="duolog-") as name:
        directory = Path(name)
        path, keep = directory / "out.jsonl", OutputRules(replace=False)
        require(await export_jsonl(log, path) == len(records), "an export counts what it writes")
        mask = os.umask(0)
        os.umask(mask)
        mode = path.stat().st_mode & 0o777
        require(mode == 0o666 & ~mask, f"a new file is as the system has it: {mode:o}")
        whole = b"".join(map(to_jsonl, records))
        require(path.read_bytes() == whole, "an export holds all records")
        path.chmod(0o640)
        with output_file(path) as file:
            file.write(b"replaced")
        require(path.read_bytes() == b"replaced", "a file is replaced")
        require(path.stat().st_mode & 0o777 == 0o640, "and keeps its mode")
        for rules in (keep, OutputRules(inputs=(path,))):
            _refused(partial(check_output, path, rules), "a file that is there or read")
        _refused(lambda: check_output(directory), "a directory")
        other = directory / "other"
        try:
            with output_file(other, keep) as file:
                file.write(b"mine")
                file.flush()
                require(not other.exists(), "a file has its name when it is whole")
                other.write_bytes(b"theirs")
            require(False, "a file that has appeared meanwhile is not replaced")
        except InvalidInput:
            pass
        require(other.read_bytes() == b"theirs", "what has appeared meanwhile stays")
        try:
            with output_file(directory / "third", keep):
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        with output_file(directory / "fourth", keep) as file:
            file.write(b"4")
        left = sorted(os.listdir(directory))
        require(left == ["fourth", "other", "out.jsonl"], f"nothing is left behind: {left}")


def _refused(call: Callable[[], object], what: str) -> None:
    try:
        call()
    except InvalidInput:
        return
    require(False, f"{what} is refused")


async def check_rows(log: EventLog, draw: int) -> None:
    """Rows that folds keep are found by session, in the order of their numbers, until they are dropped."""
    listed = [summary async for summary in log.sessions()]
    open_ = [summary for summary in listed if summary.state != FORGOTTEN]
    if not open_:
        return
    kind = "fold of all"
    numbers = [
        (draw * (7 + at) % 5, None if (draw + at) % 4 == 0 else at) for at in range(len(open_))
    ]
    rows = [
        Derived(
            session=summary.session,
            kind=kind,
            version=1,
            position=summary.position - (at == draw % 9),
            payload=summary.session.encode(),
            numbers=(float(first), None if second is None else float(second)),
        )
        for at, (summary, (first, second)) in enumerate(zip(open_, numbers, strict=True))
    ]
    for bad in (
        {"kind": ""},
        {"version": -1},
        {"version": 1 << 63},
        {"position": -1},
        {"position": 1 << 63},
        {"numbers": (math.inf,)},
        {"numbers": (0.0,) * (NUMBERS + 1)},
    ):
        await raises(InvalidInput, log.keep_derived([msgspec.structs.replace(rows[0], **bad)]))
    await raises(InvalidInput, log.keep_derived([rows[0], rows[0]]))
    other = Derived(session="nobody", kind=kind, version=1, position=0, payload=b"")
    kept = await log.keep_derived([*rows, other])
    require(kept == len(rows), f"it says how many rows it keeps: {kept}, not {len(rows)}")
    require(await collect(log.derived(kind, 1)) == rows, "rows are in the order of sessions")
    require(await collect(log.derived(kind, 2)) == [], "and have one version")
    some = [row for at, row in enumerate(rows) if draw >> at % 16 & 1]
    names = [row.session for row in reversed(some)]
    found = await collect(log.derived(kind, 1, sessions=[*names, "nobody"]))
    require(found == some, f"rows of some sessions are found: {names}")
    if isinstance(log, Ranked):
        late = [row.session for at, row in enumerate(rows) if at == draw % 9]
        require(await log.outdated(kind, 1) == late, f"a row that is behind is outdated: {late}")
        missing = [summary.session for summary in open_]
        require(await log.outdated(kind, 2) == missing, "and so is one that is not there")
        for number in (0, 1):
            for descending in (False, True):
                await _check_rank(log, kind, number, rows, listed, descending=descending)
    await log.drop_derived()
    require(await collect(log.derived(kind, 1)) == [], "rows that are dropped are gone")


async def _check_rank(
    log: Ranked,
    kind: str,
    number: int,
    rows: Sequence[Derived],
    listed: Sequence[SessionSummary],
    *,
    descending: bool,
) -> None:
    own = {row.session: row.numbers[number] for row in rows}

    def place(summary: SessionSummary) -> tuple[bool, float]:
        value = own.get(summary.session)
        return value is None, 0.0 if value is None else -value if descending else value

    wanted = [summary.session for summary in sorted(listed, key=place)]
    for limit in (1, len(wanted)):
        asked = Arrangement(
            by=f"{ROW}{number}", descending=descending, limit=limit, rows=Rows(kind, 1)
        )
        found = [one.session for one in await log.arranged(asked)]
        require(found == wanted[:limit], f"sessions are in the order of a number: {found}")


def check_addresses() -> None:
    """What names no log is refused, and a log tells its own address."""
    for url in ("sqlite:////tmp/a%25b%3Fc.db", "sqlite:////tmp/a.db?durability=normal"):
        made = open_log(url)
        require(open_log(made.url).url == made.url, f"a log tells its address: {made.url}")
        require(made.url.split("?")[0] == url.split("?")[0], f"as it was given: {made.url}")
    for url in (
        "",
        "sqlite://",
        ":memory:",
        "sqlite:///:memory:",
        "nowhere://x",
        "sqlite:///x?a=1",
    ):
        _refused(partial(open_log, url), repr(url))
    for option in ("durability=all", "chain=maybe", "durability=", "chain="):
        _refused(partial(open_log, f"sqlite:///x.db?{option}"), option)


async def check_foreign_file(opening: Callable[[Path], EventLog], directory: Path) -> None:
    """A file of SQLite that is not a log is refused, and stays as it is."""
    path = directory / "foreign.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE mine (a)")
    before = path.read_bytes()
    try:
        async with opening(path):
            require(False, "a file that is not a log is not opened")
    except NotALog:
        pass
    require(path.read_bytes() == before, "a file that is not a log stays as it is")
    path.unlink()


async def check_waiting(log: EventLog, records: Sequence[Record]) -> None:
    """A follower of a log that is away tries again, waits longer each time, and leaves nothing out."""
    if len(records) < 2:
        return
    away = Away(log, 3)
    told: list[float] = []
    clock = asyncio.get_running_loop().time
    began = clock()
    backoff = Backoff()
    async with Follower(
        cast(EventLog, away), backoff=backoff, on_unavailable=lambda _, wait: told.append(wait)
    ) as follower:
        first = await anext(follower)
        require(len(told) == 3, f"each failure is told: {told}")
        require(clock() - began > sum(told) - 1e-6 > 0.0, f"it waits between attempts: {told}")
        require(first == records[0], "a follower begins with the first record")
        rest = await follower.take(1)
        require(len(rest) == 1, f"it gives no more than it is asked for: {len(rest)}")
        more = min(len(records) - 2, 2)
        got = [*rest, *(await follower.take(more) if more else ())]
        require(len(got) <= 1 + more, f"it gives no more than it is asked for: {len(got)}")
        require(got == list(records[1 : 1 + len(got)]), "and leaves nothing out")
        require(follower.statistics().failures == 3, "it counts what failed")
        require(follower.position == 0, "nothing is processed until it is said to be")
        follower.done(records[0].position)
        require(follower.position >= records[0].position, "it knows what is processed")
    require(follower.ended, "a follower ends with its block")
    async with Follower(log, after_position=records[-1].position) as follower:
        settling = asyncio.get_running_loop().create_task(follower.settle())
        await asyncio.sleep(0)
        require(not settling.done(), "a follower that has not begun has not settled")
        await follower.begin()
        await asyncio.wait([settling], timeout=60.0)
        settled = settling.done()
        settling.cancel()
        await asyncio.wait([settling])
        require(settled, "it has settled if there is nothing to process when it begins")


@final
class Away:
    """A log that cannot be read some times."""

    def __init__(self, log: EventLog, times: int) -> None:
        self._log = log
        self._times = times

    def subscribe(self, *, session: str | None = None, after_position: int = 0) -> Subscription:
        """Fails some times, and then is the log's own."""
        if self._times:
            self._times -= 1
            raise LogUnavailable("it is away")
        return self._log.subscribe(session=session, after_position=after_position)

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)
