"""A log knows the state of its file: that it is not there, not its own, taken over, cut off, or damaged."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio

from ....engine.errors import (
    InvalidInput,
    LogClosed,
    LogGone,
    LogNotFound,
    LogUnavailable,
    NewerLog,
    NotALog,
    OutcomeUnknown,
)
from ....engine.log.contract import Advance, Derived, Store
from ....engine.log.exchange.output_file import check_output, is_log
from ....engine.log.open import open_log
from ....engine.records import Record
from ...tools import collect, raises, require
from ..around import check_addresses, check_foreign_file, check_output_files
from .ground import Ground, begun, feedback, populate, said, soon

__all__ = ("chain", "fail", "hold", "lose", "mark", "open_files", "outlive", "overtake")

T = TypeVar("T")


def _statements(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def _opened(path: Path, options: str = "", *, create: bool = True) -> Store:
    return open_log(f"sqlite:///{path}{options}", create=create)


def _is_there(path: str | Path) -> bool:
    return os.path.exists(path)


async def open_files(ground: Ground) -> None:
    """Only a log is opened, and only created if it is to be."""
    if ground.directory is None:
        return
    check_addresses()
    path = ground.directory / "opened.db"
    await raises(LogNotFound, _enter(_opened(path, create=False)))
    require(not path.exists(), "a log that is not to be created is not")
    await raises(LogUnavailable, _enter(_opened(ground.directory / "no" / "where.db")))
    await raises(NotALog, _enter(_opened(ground.directory)))
    await check_foreign_file(_opened, ground.directory)
    text = ground.directory / "text.db"
    text.write_bytes(b"this is not a database at all" * 100)
    await raises(NotALog, _enter(_opened(text)))
    text.write_bytes(b"")
    await raises(NotALog, _enter(_opened(text, create=False)))
    async with _opened(text) as log:
        await log.append("a", [said("an empty file becomes a log")])
    async with _opened(path) as log:
        records = await populate(log)
        await check_output_files(log, records)
        for end in ("", "-wal"):
            refused = path.with_name(path.name + end)
            if _is_there(refused):
                require(is_log(refused), f"{refused.name} is a part of a log")
                await raises(InvalidInput, _called(partial(check_output, refused)))
        await raises(LogClosed, _enter(log))
    async with _opened(path, create=False) as log:
        require(await collect(log.read_all()) == records, "a log that is there is opened")
        [more] = await log.append("b", [feedback("more")])
        require(more.position == len(records) + 1, "and goes on")
    await raises(InvalidInput, _enter(_opened(path, "?chain=yes")))
    size = path.stat().st_size
    cut = ground.directory / "cut.db"
    cut.write_bytes(path.read_bytes()[: size // 2])
    await raises(NotALog, _read(_opened(cut)))


async def _enter(log: Store) -> None:
    async with log:
        pass


async def _called(call: Callable[[], object]) -> None:
    call()


async def _read(log: Store) -> list[Record]:
    async with log:
        found = await collect(log.read_all())
        problems = (await log.verify()).problems
        if problems:
            raise NotALog(str(problems[0]))
        return found


async def lose(ground: Ground) -> None:
    """A log whose file is taken away says so, to those who append and to those who wait."""
    if ground.directory is None:
        return
    for number, spoil in enumerate((_remove, _replace, _overwrite, _lose_wal, _swap_wal)):
        path = ground.directory / f"lost{number}.db"
        log = _opened(path)
        async with log:
            await populate(log)
            if spoil in (_replace, _overwrite):
                await log.vacuum()
                await log.append("c", [said("behind it")])
            async with log.subscribe(after_position=log.statistics().position) as waits:
                waiting = begun(anext(waits))
                await asyncio.sleep(0.5)
                require(not waiting.done(), "nothing has happened yet")
                spoil(path)
                await asyncio.sleep(1.0)
                try:
                    await soon("answers", log.append("c", [said("lost")]))
                    gone = False
                except (LogGone, NotALog, LogUnavailable):
                    gone = True
                require(gone, f"a log without its file takes nothing: {spoil.__name__}")
                await soon("who waits is told", asyncio.wait([waiting]))
                error = waiting.exception()
                told = isinstance(error, (LogGone, NotALog, LogUnavailable))
                require(told, f"who waits is told: {error!r}, {spoil.__name__}")
                if spoil in (_remove, _lose_wal):
                    await raises(LogGone, log.append("c", [said("lost")]))
                    await raises(LogGone, log.forget("c"))
                    await raises(LogGone, log.vacuum())


def _remove(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def _replace(path: Path) -> None:
    other = path.with_name("other.db")
    _statements(other, "CREATE TABLE t (a)")
    other.replace(path)


def _overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\0" * 4096)


def _lose_wal(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


def _swap_wal(path: Path) -> None:
    wal = path.with_name(path.name + "-wal")
    content = wal.read_bytes()
    other = path.with_name("swapped")
    other.write_bytes(content)
    other.replace(wal)


async def overtake(ground: Ground) -> None:
    """A log that a newer Duolog has written can be read, and not written, by whoever has it open."""
    if ground.directory is None:
        return
    path = ground.directory / "newer.db"
    async with _opened(path) as log:
        records = await populate(log)
        layout = "PRAGMA user_version = 99"
        _statements(path, layout)
        row = Derived(session="a", kind="fold", version=1, position=1, payload=b"")
        writes: dict[str, Callable[[Store], Awaitable[object]]] = {
            "append": lambda log: log.append("a", [said("late")]),
            "forget": lambda log: log.forget("a"),
            "vacuum": lambda log: log.vacuum(),
            "drop_derived": lambda log: log.drop_derived(),
            "restore": lambda log: _first(log.restore(records[:1])),
        }
        for name, write in writes.items():
            await raises(NewerLog, write(log))
            require(await log.keep_derived([row]) == 0, f"no row is kept after {name}")
        require(await collect(log.read_all()) == records, "it can be read")
    async with _opened(path) as log:
        for write in writes.values():
            await raises(NewerLog, write(log))
        require(await log.keep_derived([row]) == 0, "no row is kept")
        require(await collect(log.read_all()) == records, "it can be read")
        require((await log.summary("b")).state == "finished", "its list, too")


async def _first(restoring: Awaitable[Sequence[object]]) -> None:
    for each in await restoring:
        if isinstance(each, Exception):
            raise each


_OPTIONS: Final = ("", "?durability=normal")


async def mark(ground: Ground) -> None:
    """A log whose end is missing says so and takes nothing more, unless it was never promised."""
    if ground.directory is None:
        return
    for number, options in enumerate(_OPTIONS):
        path = ground.directory / f"marked{number}.db"
        head, copy = Path(f"{path}-head"), ground.directory / f"torn{number}.db"
        async with _opened(path, options) as log:
            before = await populate(log)
            found = await log.verify()
            require(found.marked and not found.problems, f"an open log has a mark: {found}")
            await log.vacuum()  # all is in the file now
            records = await log.append("c", [said("acknowledged"), said("and lost")])
            shutil.copy(path, copy)
            shutil.copy(head, f"{copy}-head")
            whole = (await log.verify()).problems
            require(not whole, f"a log that is whole has no problems: {whole}")
        require(not _is_there(head), "a log that is closed needs no mark")
        async with _opened(copy, options) as log:
            require(await collect(log.read_all()) == before, "what is left can be read")
            problems = [each.what for each in (await log.verify()).problems]
            first, last = len(before) + 1, records[-1].position
            says = any(f"position {first} to {last}" in what for what in problems)
            require(says, f"verify says what is missing: {problems}")
            if options:
                [more] = await log.append("c", [said("goes on")])
                require(more.position == first, "an end that was not promised is written again")
            else:
                await raises(NotALog, log.append("c", [said("must not go on")]))
                await raises(NotALog, log.forget("c"))
                await raises(NotALog, log.vacuum())
        require(_is_there(f"{copy}-head") == (not options), "the mark stays while it is needed")
        if not options:
            os.unlink(f"{copy}-head")
            async with _opened(copy) as log:
                [more] = await log.append("c", [said("without them")])
                require(more.position == first, "without the mark the log goes on")


_FAILURES: Final = ("sync", "write", "torn", "full", "read")


async def fail(ground: Ground) -> None:
    """Whichever operation of the disk fails: an append says truly whether it is there, or that it may be."""
    if ground.directory is None:
        return
    for at in range(1, 8):
        what = _FAILURES[(ground.draw // 2 + at) % len(_FAILURES)]
        own = (f"id {at}", f"also {at}")
        drafts = [said(f"{at}", own[0]), said("and more", own[1])]
        async with ground.open("failing") as log:
            before = await log.checkpoint("c", "1")
            move = Advance(consumer="c", version="1", expected=before, position=before + 1)
            ground.fail(what, 1 + (at - 1) * 3)
            try:
                got = await log.append("s", drafts, checkpoint=move)
                fate = "acknowledged"
            except OutcomeUnknown:
                got, fate = [], "unknown"
            except LogUnavailable:
                got, fate = [], "refused"
            ground.fail("", 0)
            for end in ("", "-wal"):  # as a crash at this moment leaves them
                shutil.copy(
                    ground.directory / f"failing.db{end}", ground.directory / f"crash{at}.db{end}"
                )
            if ground.draw & 1 << at:
                with suppress(LogUnavailable, NotALog):  # it may have to be opened again
                    await collect(log.read_all())
        async with ground.open("failing") as log:
            all_there = await collect(log.read("s"))
            there = [record for record in all_there if record.caller_id in own]
            moved = await log.checkpoint("c", "1") - before
            require(len(there) in (0, 2), f"an append is there whole or not at all: {there}")
            require(moved == (1 if there else 0), f"and its checkpoint with it: {moved}")
            require(fate != "acknowledged" or there == got, f"{what} at {at}: it is there")
            require(fate != "refused" or not there, f"{what} at {at}: it was refused, and is there")
            again = await log.append("s", drafts)
            require(not there or again == there, "an append that is repeated is there once")
            require((await log.verify()).problems == (), "and the log is whole")
        async with ground.open(f"crash{at}") as log:
            left = [r for r in await collect(log.read("s")) if r.caller_id in own]
            require(len(left) in (0, 2), f"after a crash it is there whole or not at all: {left}")
            require(
                fate != "acknowledged" or left == got, f"{what} at {at}: it is there after a crash"
            )
            require(
                fate != "refused" or not left, f"{what} at {at}: refused, and there after a crash"
            )


async def hold(ground: Ground) -> None:
    """An append waits while another process writes to the file, but not for ever."""
    if ground.directory is None:
        return
    path = ground.directory / "held.db"
    async with ground.open("held") as log:
        await log.append("s", [said("first")])
        waiting = await _held(path, 0.05, log.append("s", [said("second")]))
        [record] = await soon("an append that had to wait", waiting)
        require(record.version == 2, f"it is behind the first one: {record}")
        waiting = await _held(path, 2.0, log.append("s", [said("too late")]))
        await raises(LogUnavailable, waiting)
        [record] = await log.append("s", [said("third")])
        require(record.version == 3, f"what was refused is not there: {record}")


async def _held(path: Path, seconds: float, work: Awaitable[T]) -> asyncio.Task[T]:
    """Begins something while another connection holds a file for some time; it may still be at work."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        task = begun(work)
        await anyio.sleep(seconds)
        other.execute("ROLLBACK")
    return task


async def chain(ground: Ground) -> None:
    """A chained log gives the head of each stream, which stay the same when it is opened again."""
    if ground.directory is None:
        return
    path = ground.directory / "chained.db"
    async with _opened(path, "?chain=yes") as log:
        records = await populate(log)
        heads = dict((await log.verify()).heads)
        require(set(heads) == {f"{r.session}/{r.stream}" for r in records}, f"{sorted(heads)}")
        require(len(set(heads.values())) == len(heads), "each stream has its own")
    async with _opened(path) as log:
        found = await log.verify()
        require(found.chained and dict(found.heads) == heads, "they stay the same")
        await log.append("a", [said("one more")])
        after = dict((await log.verify()).heads)
        changed = {name for name in after if after[name] != heads[name]}
        require(changed == {"a/trace"}, f"an append changes the head of its stream: {changed}")
        await log.forget("f")
        found = await log.verify()
        require(dict(found.heads) == after, "forgetting keeps them")
        require(not found.problems, f"and the chain whole: {found.problems}")
        await log.append("c", [said("on")])
    _statements(
        path,
        *_without_triggers(path),
        "UPDATE events SET body = CAST(replace(CAST(body AS TEXT), 'two', 'too') AS BLOB) "
        "WHERE position = 5",
    )
    async with _opened(path) as log:
        problems = (await log.verify()).problems
        where = {each.position for each in problems}
        require(where == {5}, f"what was changed is named: {problems}")
        require({each.session for each in problems} == {"b"}, f"with its session: {problems}")
        whats = {each.what.split(":")[0] for each in problems}
        require(len(whats) >= 2, f"the checksum and the chain both tell: {whats}")


def _without_triggers(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        return [f'DROP TRIGGER IF EXISTS "{name}"' for (name,) in found]


async def outlive(ground: Ground) -> None:
    """Two logs on one file take turns: each sees what the other has written, forgotten and moved."""
    if ground.directory is None:
        return
    path = ground.directory / "turns.db"
    options = "?chain=yes" if ground.draw & 1 else ""
    async with _opened(path, options) as one:
        async with _opened(path) as two:
            wanted: list[Record] = await populate(one)
            for number in range(6):
                log = two if number % 2 else one
                drafts = [said(f"{number}", f"turn {number}"), said("again")]
                wanted += await log.append("c", drafts)
                other = one if number % 2 else two
                again = await other.append("c", drafts[:1])
                require(again == wanted[-2:-1], "an id of the other is known")
                require(await collect(other.read_all()) == wanted, "each sees all")
            summaries = [await collect(log.sessions()) for log in (one, two)]
            require(summaries[0] == summaries[1], "each lists the same")
            await two.forget("a")
            require((await one.summary("f")).state == "forgotten", "each forgets")
            for record in await collect(one.read_all()):
                gone = record.session in ("a", "f", "g")
                require((record.body is None) == gone, f"for both: {record}")
            require((await one.verify()).problems == (), "and both are whole")
        [last] = await one.append("b", [feedback("left")])
        require(last.position == len(wanted) + 1, "one goes on without the other")
    require(not _is_there(f"{path}-head"), "the last one takes the mark away")
