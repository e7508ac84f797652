"""Nothing of a session is left after ``forget``, wherever it was."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from typing import Final, final

from ....engine.errors import DuologError, InvalidInput, SessionClosedError, SessionNotFound
from ....engine.log.contract import Derived, Store
from ....engine.log.exchange import copying
from ....engine.log.exchange.jsonl_export import export_jsonl
from ....engine.log.memory import MemoryLog
from ....engine.log.searched import Searchable, SessionText
from ....engine.records import Record
from ...tools import collect, raises, require
from .ground import Ground, begun, feedback, populate, said, soon

__all__ = ("copy", "forget", "race", "search")

_SECRET: Final = "a word that nobody may read"
_FAMILY: Final = {"a", "f", "g"}
"""The session that is forgotten, its fork, and the fork of that."""


@final
class _Cache:
    name = "told"

    def __init__(self) -> None:
        self.told: list[str] = []

    async def forget(self, sessions: Sequence[str]) -> None:
        self.told += sessions


async def forget(ground: Ground) -> None:
    """Forgetting empties a session and its forks: in the log, its files, its rows, and what waits for readers."""
    async with ground.open("forgotten") as log:
        records = await populate(log, bodies=_SECRET)
        head = len(records)
        rows = [_row(record) for record in records]
        await log.keep_derived([rows[-1], rows[3]])
        behind, own = log.subscribe(), log.subscribe(session="f")
        live, tap = log.subscribe(after_position=head), log.tap()
        await raises(InvalidInput, log.forget([]))
        await raises(SessionNotFound, log.forget("nobody"))
        await raises(SessionNotFound, log.forget(["a", "nobody"]))
        require(await collect(log.read_all()) == records, "what is refused erases nothing")
        async with behind, own, live, tap:
            first = await soon("reads", anext(behind))
            catching = begun(anext(own)) if ground.draw & 1 else None
            records += await log.append("a", [said(f"{_SECRET} waits")])
            records += await log.append("b", [feedback("waits, too")])
            if catching is not None and ground.draw & 2:
                await asyncio.sleep(0.1)
            cache = _Cache()
            result = await log.forget("a", caches=[cache], compact=False)
            # What was delivered before it returned may still have its body.
            late = int(catching is not None and catching.done())
            require(set(result.sessions) == _FAMILY, f"forks are forgotten: {result.sessions}")
            require(len(result.sessions) == len(_FAMILY), "each once")
            require(cache.told == list(result.sessions), f"a cache is told: {cache.told}")
            require(result.caches == ("told",), f"which is said: {result.caches}")
            stored = ground.directory is not None
            require(result.compacted == (not stored) == (not result.held_up), f"{result}")
            got = [first, *[await soon("reads", anext(behind)) for _ in records[1:]]]
            _check_erased(got[1:], records[1:], "a subscription that is behind")
            waited = [await soon("reads", anext(live)) for _ in records[head:]]
            _check_erased(waited, records[head:], "a live subscription")
            tapped = [await soon("reads", anext(tap)) for _ in records[head:]]
            _check_erased(tapped, records[head:], "a tap")
            forked = [record for record in records if record.session == "f"]
            mine: list[Record] = []
            if catching is not None:
                mine.append(await soon("reads", catching))
            mine += [await soon("reads", anext(own)) for _ in forked[len(mine) :]]
            _check_erased(mine[late:], forked[late:], "a subscription to a fork")
        await _check_gone(log, records, uncompacted=len(_FAMILY) if stored else 0)
        again = await log.forget(["a", "a"])
        require(set(again.sessions) == _FAMILY, f"it may be said twice: {again.sessions}")
        require(again.compacted and not again.held_up, f"and finishes what was left: {again}")
        if stored:
            await _check_files(ground, log)
        await _check_gone(log, records, uncompacted=0)
        with_id = [
            record for record in records if record.caller_id == "1" and record.session == "a"
        ]
        require(bool(with_id), "the first message has an id")
        [known] = await log.append("a", [said(f"{_SECRET} one", "1")])
        require(known.position == with_id[0].position, "an id that was there is known")
        require(known.body is None, "and what it said is not")
        await raises(SessionClosedError, log.append("a", [said("new")]))
        await raises(SessionClosedError, log.append("f", [said("new")], stream="judge@1"))
        require(await log.keep_derived(rows[:1]) == 0, "no row of it is kept")
        [last] = await log.append("c", [said("others go on")])
        require(last.position == len(records) + 1, "others go on")
    if ground.directory is not None:
        async with ground.open("forgotten") as log:
            await _check_gone(log, [*records, last], uncompacted=0)
            await raises(SessionClosedError, log.append("g", [said("new")]))


def _row(record: Record) -> Derived:
    return Derived(
        session=record.session, kind="fold", version=1, position=record.position, payload=b"row"
    )


def _check_erased(got: Sequence[Record], wanted: Sequence[Record], who: str) -> None:
    where, there = [r.position for r in got], [r.position for r in wanted]
    require(where == there, f"{who} is given {where}, not {there}")
    for record, original in zip(got, wanted, strict=True):
        if record.session in _FAMILY:
            require(record.body is None, f"{who} is given no body of a forgotten session: {record}")
        else:
            require(record == original, f"{who} is given the others as they are: {record}")


async def _check_gone(log: Store, records: Sequence[Record], *, uncompacted: int) -> None:
    _check_erased(await collect(log.read_all()), records, "a read")
    scanned: list[Record] = []
    await log.scan(scanned.extend)
    _check_erased(scanned, records, "a scan")
    for name in _FAMILY:
        mine = [record for record in records if record.session == name]
        _check_erased(await collect(log.read_all(session=name)), mine, "a read of a session")
        about = await log.summary(name)
        facts = (about.state, about.task, about.instance, dict(about.group), about.events)
        require(facts == ("forgotten", "", "", {}, len(mine)), f"a summary says {facts}")
    rows = [row.session async for row in log.derived("fold", 1)]
    require(not _FAMILY & set(rows), f"rows of forgotten sessions are gone: {rows}")
    file = io.BytesIO()
    await export_jsonl(log, file)
    require(_SECRET.encode() not in file.getvalue(), "an export has nothing of it")
    found = await log.verify()
    require(not found.problems, f"a log that has forgotten is whole: {found.problems}")
    counts = (found.events, found.forgotten, found.uncompacted)
    require(counts == (len(records), len(_FAMILY), uncompacted), f"verify counts {counts}")


async def _check_files(ground: Ground, log: Store) -> None:
    assert ground.directory is not None
    for path in ground.directory.glob("forgotten*"):
        held = _SECRET.encode() in path.read_bytes()
        require(not held, f"a file that was compacted has nothing of it: {path.name}")
    result = await log.vacuum()
    require(result.finished, "nothing holds it up")
    require(0 < result.after <= result.before, f"room is given back: {result}")


async def race(ground: Ground) -> None:
    """Nothing of a session is delivered once ``forget`` has returned, even to readers that were at it."""
    async with ground.open("raced") as log:
        for turn in range(4):
            session = f"raced {turn}"
            appended = [
                (await log.append(session, [said(f"{_SECRET} {at}")]))[0].position
                for at in range(9)
            ]
            gone = asyncio.Event()
            readers = [
                begun(_read_through(log, session if at & 1 else None, appended, at, gone))
                for at in range(6)
            ]
            for _ in range((ground.draw >> turn) % 5):
                await asyncio.sleep(0)
            await log.forget(session, compact=False)
            gone.set()
            for reader in readers:
                await soon("reads to the end", reader)


async def _read_through(
    log: Store, session: str | None, positions: Sequence[int], steps: int, gone: asyncio.Event
) -> None:
    """Follows some records, slowly, and checks that none of them has a body once they are gone."""
    async with log.subscribe(session=session, after_position=positions[0] - 1) as subscription:
        for position in positions:
            for _ in range(steps):
                await asyncio.sleep(0)
            record = await anext(subscription)
            require(record.position == position, f"{record.position} is delivered, not {position}")
            late = gone.is_set() and record.body is not None
            require(not late, f"what was forgotten is not delivered: {record.position}")


async def copy(ground: Ground) -> None:
    """A copy holds what its source does, resumes at its end, and forgets with it."""
    async with ground.open("source") as log, MemoryLog() as target:
        records = await populate(log, bodies=_SECRET)
        half = len(records) // 2
        await target.restore(records[:half])
        told: list[int] = []
        copied = await copying.copy_log(log, target, progress=told.append)
        counts = (copied.records, copied.position, copied.forgotten)
        require(counts == (len(records) - half, len(records), ()), f"a copy counts {counts}")
        require(told[-1] == len(records) and told == sorted(set(told)), f"it tells: {told}")
        require(await collect(target.read_all()) == records, "a copy is as its source")
        await log.forget("f")
        copied = await copying.copy_log(log, target)
        require(set(copied.forgotten) == {"f", "g"}, f"it forgets, too: {copied.forgotten}")
        require(
            await collect(target.read_all()) == await collect(log.read_all()), "and is the same"
        )
        copied = await copying.copy_log(log, target)
        require(copied.forgotten == () and copied.records == 0, f"once: {copied}")
        following = begun(copying.copy_log(log, target, follow=True))
        await asyncio.sleep(0.1)
        for number in range(5):
            await log.append("c", [said(f"new {number}")])
        await asyncio.sleep(1.0)
        wanted = await collect(log.read_all())
        require(await collect(target.read_all()) == wanted, "a copy that follows has what is new")
        await log.forget("a")
        await asyncio.sleep(5 * copying._ERASURES)
        wanted = await collect(log.read_all())
        require(await collect(target.read_all()) == wanted, "and forgets what its source forgets")
        following.cancel()
        await asyncio.wait([following])
        await target.append("c", [said("its own")])
        await raises(InvalidInput, copying.copy_log(log, target))
    async with ground.open("begun") as log, MemoryLog() as target:
        records = await populate(log, bodies=_SECRET)
        await target.restore(records[: 2 + ground.draw % 8])
        await log.forget("a")
        copied = await copying.copy_log(log, target)
        wanted = await collect(log.read_all())
        require(await collect(target.read_all()) == wanted, "what a copy had begun is forgotten")
        require("a" in copied.forgotten, f"which it says: {copied}")
    async with ground.open("another") as log, MemoryLog() as target:
        one = await populate(log)
        changed = [said("one"), said("two")]
        await target.append("a", changed)
        await raises(InvalidInput, copying.copy_log(log, target))
        require(len(await collect(target.read_all())) == 2, "another log is left as it is")
        async with MemoryLog() as twin:
            outcomes = await twin.restore([*one[:2], one[4], one[1]])
            kinds = [isinstance(each, DuologError) for each in outcomes]
            require(
                kinds == [False, False, True, False] or kinds[2:] == [True, True], f"{outcomes}"
            )


async def search(ground: Ground) -> None:
    """Texts that are kept of sessions are found by their words, until they are forgotten."""
    async with ground.open("searched") as log:
        if not isinstance(log, Searchable):
            return
        records = await populate(log)
        names = ["a", "b", "f", "c", "g"]
        require(await log.unread_texts(1) == names, "no session has a text yet")
        require(list(await log.search_texts([["red"]], 1)) == [], "so nothing is found")
        require(list(await log.found_texts([["red"]], 1, names)) == [], "nor in them")
        end = len(records)
        texts = [
            SessionText("a", 1, end, ("red apple", "green pear tree")),
            SessionText("b", 1, 7, ("red pears and more", "nothing")),
            SessionText("f", 1, 1, ("too old",)),
            SessionText("nobody", 1, 1, ("red",)),
            SessionText("c", 1, 12, ()),
            SessionText("g", 1, end + 9, ("red",)),
        ]
        require(await log.keep_texts([]) == 0, "nothing may be kept")
        kept = await log.keep_texts(texts)
        require(kept == 4, f"texts of sessions that are as far are kept: {kept}")
        require(await log.unread_texts(1) == ["f", "g"], f"{await log.unread_texts(1)}")
        require(await log.unread_texts(2) == names, "each version has texts of its own")
        for phrases, wanted in (
            ([["red"]], ["a", "b"]),
            ([["re"]], ["a", "b"]),
            ([["pear"]], ["a", "b"]),
            ([["green", "pear"]], ["a"]),
            ([["green", "tree"]], []),
            ([["red"], ["pears"]], ["b"]),
            ([["red"], ["tree"]], []),
            ([["blue"]], []),
        ):
            found = list(await log.search_texts(phrases, 1))
            require(found == wanted, f"{phrases} is found in {wanted}, not {found}")
        require(list(await log.search_texts([["red"]], 2)) == [], "not in another version")
        parts = [tuple(each) for each in await log.found_texts([["pear"]], 1, ["b", "a", "f"])]
        require(parts == [("a", "green pear tree"), ("b", "red pears and more")], f"{parts}")
        parts = [tuple(each) for each in await log.found_texts([["pear"]], 1, ["b"])]
        require(parts == [("b", "red pears and more")], f"only in those: {parts}")
        require(await log.keep_texts([SessionText("a", 2, end, ("blue",))]) == 1, "it is replaced")
        require(list(await log.search_texts([["red"]], 1)) == ["b"], "the old one is gone")
        require(list(await log.search_texts([["blue"]], 2)) == ["a"], "the new one is there")
        [more] = await log.append("b", [feedback("more")])
        require("b" in await log.unread_texts(1), "what is appended is unread")
        require(await log.keep_texts([SessionText("b", 1, more.position, ("yellow",))]) == 1, "")
        await log.forget("a")
        require(list(await log.search_texts([["blue"]], 2)) == [], "a forgotten text is not found")
        require(await log.keep_texts([SessionText("a", 2, end, ("blue",))]) == 0, "nor kept")
        require(list(await log.search_texts([["yellow"]], 1)) == ["b"], "the others are")
        require("a" not in await log.unread_texts(1), "a forgotten session is not to be read")
        await log.drop_derived()
        require(list(await log.search_texts([["yellow"]], 1)) == [], "texts can be dropped")
        found_all = await log.verify()
        require(not found_all.problems, f"and the log is whole: {found_all.problems}")
