"""The rows of a log's sessions: rows stored in the log, and newly folded ones.

A large log is folded by several processes, each of which folds some sessions. They are plain programs
that read a request and write rows (see ``worker``), so they can be started from any script or notebook.
This process folds the rows that another did not deliver, so errors are the same as with one
process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from random import Random
from subprocess import DEVNULL
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from ...engine.errors import InvalidInput
from ...engine.log.contract import Derived, EventLog, SessionSummary
from ...engine.log.parts import Divisible, Part
from ...engine.logger import get_logger
from ...engine.records import Record
from ...engine.rounds import Rounds
from ...engine.session.time.timing import Timing
from ..trajectory.options import Options
from .kept import kind_of, pack, unpack
from .rows import FOLD_VERSION, Folded, SessionFold

__all__ = (
    "LARGE",
    "WORKER",
    "PartRequest",
    "Shared",
    "changed_rows",
    "fold_part",
    "folded",
)

LARGE: Final = 5_000
"""Sessions, none of them kept, that several processes fold."""

_RECORDS: Final = 1 << 17
"""Records that are worth several processes, however few sessions they are of."""

_PARTS: Final = 3
"""Parts for each process, so that all are done at about one time."""

_BATCH: Final = 500
_FEW: Final = 4  # a session read by itself costs so much more than in a scan
WORKER: Final = ("-m", "duolog.scoring.columns.worker")
"""The program that folds a part of a log."""


def _say_nothing(how: str) -> None:
    """Ignores that a process ended early; the default."""


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """Other processes that fold a large log.

    Attributes:
        url: path or URL by which they open the log, with a password if it needs one.
        processes: how many there are at most.
        on_ended: called once if some of them end too early, with the reason of the first.
    """

    url: str
    processes: int
    on_ended: Callable[[str], None] = _say_nothing


class PartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What another process is asked to fold, and how: see ``Options``.

    Attributes:
        sessions: the sessions of the part that are wanted.
        asker: id of the process that asks.
    """

    url: str
    asker: int
    part: Part
    sessions: frozenset[str]
    rounds: Rounds
    utility: str | None
    judge: str
    timing: Timing
    idle_cap: int | float

    def options(self) -> Options:
        """The options to fold with."""
        return Options(
            rounds=self.rounds,
            utility=self.utility,
            judge=self.judge,
            timing=self.timing,
            idle_cap=self.idle_cap,
        )


async def folded(
    log: EventLog,
    options: Options | None = None,
    *,
    sessions: Iterable[str] | None = None,
    shared: Shared | None = None,
) -> AsyncIterator[Folded]:
    """The rows of sessions as of now, in order of their first records.

    Only sessions that are new, or have grown since their rows were kept, are folded; their rows are kept
    then, unless the options hold your own functions.

    Args:
        log: the log.
        options: how to score.
        sessions: only these; None for all.
        shared: other processes that may fold a part of a large log each; None for this one alone.

    Raises:
        CodecError: a body that is needed is damaged.
        PluginFailed: ``Options.count`` or ``Options.vague`` raised.
        LogClosed: the log is closed.
    """
    options = options or Options()
    wanted = None if sessions is None else frozenset(sessions)
    there = {
        one.session: one async for one in log.sessions() if wanted is None or one.session in wanted
    }
    kind = kind_of(options)
    rows: dict[str, Derived | Folded] = {}
    if kind:
        asked = None if wanted is None else [*there]
        async for kept in log.derived(kind, FOLD_VERSION, sessions=asked):
            if kept.session in there and kept.position >= there[kept.session].position:
                rows[kept.session] = kept
    new = {name: one for name, one in there.items() if name not in rows}
    if kind and shared is not None:
        made = await _by_processes(log, options, new, shared)
        await log.keep_derived(made)
        rows |= {one.session: one for one in made}
        new = {name: one for name, one in new.items() if name not in rows}
    async for folds in _folds(log, options, new):
        fresh = await anyio.to_thread.run_sync(_made, folds)
        if kind:
            pairs = zip(fresh, folds, strict=True)
            await log.keep_derived([pack(row, fold.position, kind) for row, fold in pairs])
        rows |= {row.session.session: row for row in fresh}
    for name in there:
        if (found := rows.pop(name, None)) is not None:
            yield unpack(found) if isinstance(found, Derived) else found


async def changed_rows(log: EventLog, count: int) -> list[str]:
    """Checks a sample of the rows that a log keeps: folds their sessions again.

    Args:
        log: the log.
        count: how many sessions to check, at most.

    Returns:
        The sessions whose rows differ from what their records give.
    """
    options = Options()
    kind = kind_of(options)
    there = {one.session: one.position async for one in log.sessions()}
    known = {one.session: one async for one in log.derived(kind, FOLD_VERSION)}
    current = sorted(name for name, one in known.items() if there.get(name) == one.position)
    chosen = Random(0).sample(current, min(count, len(current)))
    different = []
    for name in chosen:
        fold = await _read(log, SessionFold(name, options))
        if fold.position == known[name].position:
            again = pack(fold.folded(), fold.position, kind)
            different += [] if again == known[name] else [name]
    return sorted(different)


async def _folds(
    log: EventLog, options: Options, new: Mapping[str, SessionSummary]
) -> AsyncIterator[list[SessionFold]]:
    """The folds of some sessions, some at a time."""
    folds: dict[str, SessionFold] = {}
    if _FEW * sum(one.events for one in new.values()) < log.statistics().position:
        for name in new:
            folds[name] = await _read(log, SessionFold(name, options, strict=True))
    elif new:
        await log.scan(_consumer(options, new.keys(), folds, strict=True))
    while folds:
        some = [folds.pop(name) for name in [*folds][:_BATCH]]
        yield some


async def _read(log: EventLog, fold: SessionFold) -> SessionFold:
    async for record in log.read_all(session=fold.session):
        fold.feed(record)
    return fold


def _consumer(
    options: Options, wanted: Collection[str], folds: dict[str, SessionFold], *, strict: bool
) -> Callable[[Sequence[Record]], None]:
    """Feeds records of some sessions to their folds."""

    def consume(records: Sequence[Record]) -> None:
        for record in records:
            session = record.session
            fold = folds.get(session)
            if fold is None:
                if session not in wanted:
                    continue
                fold = folds[session] = SessionFold(session, options, strict=strict)
            fold.feed(record)

    return consume


def _made(folds: Sequence[SessionFold]) -> list[Folded]:
    return [fold.folded() for fold in folds]


# --- several processes -----------------------------------------------------------------------------


async def fold_part(log: EventLog, request: PartRequest) -> list[Derived]:
    """The rows of a part of a log, but for those with a problem.

    Raises:
        DuologError: the log cannot be read in parts, or not at all.
    """
    if not isinstance(log, Divisible):
        raise InvalidInput(f"{log.url} cannot be read in parts")
    options, folds = request.options(), dict[str, SessionFold]()
    await log.scan_part(request.part, _consumer(options, request.sessions, folds, strict=False))
    kind = kind_of(options)
    rows = [(fold.folded(), fold.position) for fold in folds.values()]
    return [pack(row, position, kind) for row, position in rows if not row.session.unreadable]


async def _by_processes(
    log: EventLog, options: Options, new: Mapping[str, SessionSummary], shared: Shared
) -> list[Derived]:
    """The rows of some sessions, by other processes; nothing is known of those that it does not give."""
    records = sum(one.events for one in new.values())
    if shared.processes < 2 or not isinstance(log, Divisible):
        return []
    if len(new) < LARGE and records < _RECORDS:
        return []
    limiter = anyio.CapacityLimiter(shared.processes)
    found: list[Derived] = []
    ended: list[str] = []

    async def ask(part: Part) -> None:
        request = PartRequest(
            url=shared.url,
            asker=os.getpid(),
            part=part,
            sessions=frozenset(new),
            rounds=options.rounds,
            utility=options.utility,
            judge=options.judge,
            timing=options.timing,
            idle_cap=options.idle_cap,
        )
        async with limiter:
            try:
                found.extend(await _asked(request))
            except _Ended as error:
                get_logger("scoring").warning("a process that folds ended", error=str(error))
                ended.append(str(error))

    parts = await log.parts(_PARTS * shared.processes)
    async with anyio.create_task_group() as tasks:
        for part in parts:
            tasks.start_soon(ask, part)
    if ended:
        shared.on_ended(ended[0])
    return found


class _Ended(Exception):
    """A process could not be started, or ended before it answered."""


async def _asked(request: PartRequest) -> list[Derived]:
    command = [sys.executable, "-P", *WORKER]
    try:
        with anyio.CancelScope(shield=True):  # else nothing would end one that has just begun
            process = await anyio.open_process(command, stderr=DEVNULL)
    except OSError as error:
        raise _Ended(str(error)) from error
    answer: list[bytes] = []

    async def read(stdout: AsyncIterable[bytes]) -> None:
        answer.extend([piece async for piece in stdout])

    async with process, anyio.create_task_group() as tasks:
        assert process.stdin is not None
        assert process.stdout is not None
        tasks.start_soon(read, process.stdout)
        with suppress(OSError, anyio.BrokenResourceError):  # it has ended: its exit code says why
            await process.stdin.send(msgspec.msgpack.encode(request))
        await process.stdin.aclose()
        code = await process.wait()
    if code:
        raise _Ended(f"signal {-code}" if code < 0 else f"exit code {code}")
    try:
        return await anyio.to_thread.run_sync(_rows, b"".join(answer))
    except msgspec.DecodeError as error:
        raise _Ended("no answer") from error


_rows = msgspec.msgpack.Decoder(list[Derived]).decode
