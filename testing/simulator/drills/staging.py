"""Appends that are staged first and written later: in order, all behind a refused one refused too."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import cast

from ....engine.errors import DuologError, LogClosed, VersionConflict
from ....engine.events import SessionClosed
from ....engine.log import staging
from ....engine.log.append import Append
from ....engine.log.contract import Store
from ....engine.log.session_states import SessionStates, read_before
from ....engine.log.staging import SessionAppends, Staging
from ....engine.records import TRACE
from ...tools import collect, raises, require
from .ground import Ground, begun, closing, measured, opening, populate, said, soon

__all__ = ("keep_states", "stage", "write_staged")


async def write_staged(ground: Ground) -> None:
    """Staged appends are written in order; what follows a refused one is refused too."""
    async with ground.open("ordered") as log:
        staged = cast(Staging, log)
        require(not staged.followed, "nobody follows yet")
        async with log.subscribe():
            require(staged.followed, "now somebody does")
        appends = [_staged(staged, at, at) for at in range(4)]
        _tie(appends)
        require(await soon("writes", _written(staged, appends)) == 4, "the last position")
        found = await collect(log.read("s"))
        require([record.event for record in found] == [said(f"{at}").event for at in range(4)], "")
        wrong = [_staged(staged, 4, 4), _staged(staged, 5, 9), _staged(staged, 6, 6)]
        _tie(wrong)
        error = await raises(VersionConflict, _written(staged, wrong))
        require((error.expected, error.actual) == (9, 5), f"the first refusal is raised: {error}")
        require(len(await collect(log.read("s"))) == 5, "what is behind it is refused, too")
        for steps in range(1, 5):
            version = len(await collect(log.read("s")))
            more = [_staged(staged, at, version + at) for at in range(3)]
            _tie(more)
            waiting = [begun(_written(staged, more)), begun(more[-1].wait())]
            for _ in range(steps):
                await asyncio.sleep(0)
            waiting[0].cancel()
            await soon("others that wait are told", asyncio.wait([waiting[1]]))
            there = len(await collect(log.read("s"))) - version
            require(there in (0, 3), f"it is there whole or not at all: {there}")
            require(more[0].settled is (there == 3), "what is settled is there")
    await raises(LogClosed, _written(staged, []))


async def _written(log: Staging, appends: list[Append]) -> int:
    """Writes staged appends, and returns the last position. Raises why the first one was refused."""
    log.write_staged(appends)
    position = 0
    for append in appends:
        await append.wait()
        if isinstance(append.outcome, Exception):
            raise append.outcome
        require(bool(append.outcome), "what is settled has an outcome")
        position = append.outcome[-1].position if append.outcome else 0
    return position


async def _held(log: Store, count: int) -> None:
    """Waits until the session has that many records."""
    while len(await collect(log.read("s"))) < count:  # noqa: ASYNC110
        await asyncio.sleep(staging.WALL)  # whoever followed the log would have each record at once


def _staged(log: Staging, number: int, expected: int) -> Append:
    return log.stage("s", [said(f"{number}")], stream=TRACE, expected_version=expected)


def _tie(appends: list[Append]) -> None:
    for before, append in pairwise(appends):
        append.after = before


async def stage(ground: Ground) -> None:
    """A session's appends are handed back before they are written, and written when it matters."""
    async with ground.open("staged") as log:
        staged = cast(Staging, log)
        plain = SessionAppends(log, "p", staged=False)
        require(plain.staging is None, "staging is left to who asks for it")
        [record] = await plain.append("p", [said("at once")], expected_version=0)
        require(record.position == 1, "without it all is written at once")
        await plain.close()
        appends = SessionAppends(log, "s", staged=True)
        require(appends.staging is staged, "the log offers it")
        kept = await appends.append("s", [opening("t"), said("0", "i0")], expected_version=0)
        require([(r.position, r.version) for r in kept] == [(0, 1), (0, 2)], f"staged: {kept}")
        require(not await collect(log.read("s")), "nothing is written yet")
        await soon("it is written in time", _held(log, 2))
        await appends.flush()
        require(appends.position == 3, f"it knows the last position: {appends.position}")
        found = await collect(log.read("s"))
        same = [(r.version, r.event, r.caller_id) for r in found]
        require(same == [(r.version, r.event, r.caller_id) for r in kept], "as it was staged")
        version = 2
        for number in range(staging.EVENTS + 2):
            [record] = await appends.append("s", [said(f"{number}")], expected_version=version)
            version += 1
            require(record.version == version, f"versions count on: {record.version}")
        through = [record async for record in appends.read("s")]
        require(len(through) == version, f"a read has what is staged: {len(through)}")
        for number in range(staging.EVENTS):
            await appends.append("s", [said(f"more {number}")], expected_version=version)
            version += 1
        there = len(await collect(log.read("s")))
        require(there == version, f"enough events are written without being asked: {there}")
        measures = [measured(0.25, "m1"), measured(0.5, "m2")]
        await appends.append("s", measures, stream="judge@1", expected_version=0)
        again = await appends.append("s", measures[:1], stream="judge@1", expected_version=2)
        require(again[0].version == 1, f"an id that was staged is known: {again}")
        require(len(await collect(log.read("s", stream="judge@1"))) == 2, "and is there once")
        await appends.append("s", [said("last")], expected_version=version)
        [record] = await appends.append("s", [closing()], expected_version=version + 1)
        found = await collect(log.read("s"))
        closes = isinstance(found[-1].event, SessionClosed) and len(found) == version + 2
        require(closes, "a close is written before it returns")
        await appends.close()
        await _check_followed(ground, log)


async def _check_followed(ground: Ground, log: object) -> None:
    async with ground.open("followed") as other:
        appends = SessionAppends(other, "s", staged=True)
        async with other.subscribe() as subscription:
            [record] = await appends.append("s", [said("seen")], expected_version=0)
            require(record.position == 1, "with a follower nothing is held back")
            require(await soon("is delivered", anext(subscription)) == record, "it is delivered")
        error = (
            await raises(VersionConflict, appends.append("s", [said("wrong")], expected_version=7))
            if ground.draw & 1
            else None
        )
        require(error is None or error.actual == 1, f"a wrong version is refused: {error}")
        await appends.append("s", [said("held")], expected_version=1)
        await other.append("s", [said("another writer")], expected_version=1)
        await raises(VersionConflict, appends.flush())
        await raises(VersionConflict, appends.append("s", [said("on")], expected_version=2))
        await raises(DuologError, appends.flush())
        await appends.close()


async def keep_states(ground: Ground) -> None:
    """A cache of states keeps those that were used last, and those that are in use."""
    busy: set[str] = set()
    states: SessionStates[str] = SessionStates(2, lambda state: state in busy)
    for name in ("a", "b"):
        states.keep(name, name.upper())
    states.keep("a", "A")
    states.keep("c", "C")
    require(list(states) == ["A", "C"], f"the one that was used first goes: {list(states)}")
    busy |= {"A"}
    states.keep("d", "D")
    require(list(states) == ["A", "D"], f"one that is in use stays: {list(states)}")
    require((states.get("a"), states.get("c"), len(states)) == ("A", None, 2), "it says so")
    busy |= {"D"}
    states.keep("e", "E")
    require(len(states) == 3, "if all others are in use, all stay")
    busy.clear()
    states.evict()
    require(list(states) == ["D", "E"], f"until one can go: {list(states)}")
    require(states.drop("d") == "D" and states.drop("d") is None, "one that is dropped is gone")
    require(states.get("d") is None and len(states) == 1, "and not at hand")
    async with ground.open("states") as log:
        records = await populate(log)
        for record in records:
            before = [each async for each in read_before(log, record)]
            wanted = [
                each
                for each in records
                if each.session == record.session and each.position < record.position
            ]
            require(before == wanted, f"what lies before {record.position} is {before}")
