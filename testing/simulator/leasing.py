"""Leases at work on a simulated log: a lease has one holder for as long as it is renewed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import final

from ...engine.errors import LogUnavailable
from ...engine.log.contract import EventLog
from ...engine.log.leases import LeaseHolder, Leases, LeaseTerms, Leasing
from ..tools import require
from .scenario import Operation

__all__ = ("compete", "lease")

_TERMS = LeaseTerms(lasts=0.4, renewed=0.1, looked_at=0.1)


@final
class _Holder:
    """One of the competitors, and the leases that it has lost."""

    def __init__(self, log: Leasing) -> None:
        self.lost: list[str] = []
        self.leases = log.leases()
        self.holder = LeaseHolder(self.leases, _TERMS)
        self.keeping = asyncio.get_running_loop().create_task(self.holder.keep())

    async def claim(self, name: str) -> bool:
        return await self.holder.claim(name, lambda: self.lost.append(name))

    async def end(self) -> None:
        self.keeping.cancel()
        await asyncio.wait([self.keeping])


async def lease(
    log: EventLog, other: EventLog, operation: Operation, calm: Callable[[], bool]
) -> None:
    """Two holders compete for names; one keeps what it has, gives it back, or dies.

    Args:
        log: a log.
        other: the same, or another one on the same file.
        operation: names what is claimed.
        calm: whether nothing has held up the disk; else a lease may run out, and be lost.
    """
    if not (isinstance(log, Leasing) and isinstance(other, Leasing)):
        return
    names = [f"lease {operation.number}"]
    if set(names) & set(await log.leases().holders()):  # of an operation that lost its power
        await asyncio.sleep(_TERMS.lasts)
    one, two = _Holder(log), _Holder(other)
    try:
        await _compete(one, two, names, calm)
        await _outlive(one, names[0], calm)
        await _ask_again(one, names[0], calm)
    finally:
        await one.end()
        await two.end()
    if calm():
        held = await log.leases().holders()
        require(not held.keys() & set(names), f"who ends gives back what it has: {held}")


async def _compete(one: _Holder, two: _Holder, names: list[str], calm: Callable[[], bool]) -> None:
    for name in names:
        claims = await asyncio.gather(one.claim(name), two.claim(name))
        require(not calm() or sorted(claims) == [False, True], f"{name} has one holder: {claims}")
        winner, loser = (one, two) if claims[0] else (two, one)
        again = await winner.claim(name)
        require(not (again and calm()), "what is held is not given twice")
        await asyncio.sleep(_TERMS.lasts * 2.5)
        if not calm():
            return
        require(not await loser.claim(name), "a lease that is renewed is not free")
        held, own = await loser.holder.others(), await winner.holder.others()
        require(held.get(name) == winner.holder.name, f"others see who holds {name}: {held}")
        require(name not in own, "what a holder has is not held by others")
        await winner.holder.release(name)
        if not calm():
            return
        require(await loser.claim(name), "what was given back is free")
        require(not (one.lost or two.lost), f"what is renewed is not lost: {one.lost + two.lost}")
        await loser.holder.release(name)


async def compete(
    log: EventLog, other: EventLog, operation: Operation, calm: Callable[[], bool]
) -> None:
    """Two holders claim the same names at once, for so long that time does not matter."""
    if not (isinstance(log, Leasing) and isinstance(other, Leasing)):
        return
    names = [f"lease {operation.number}.{at}" for at in range(3)]
    one, two = log.leases(), other.leases()
    mine, theirs = await asyncio.gather(
        one.claim(names, "one", 3600.0), two.claim(names[::-1], "two", 3600.0)
    )
    require(not mine & theirs, f"a lease has one holder: {mine & theirs}")
    if calm():
        require(mine | theirs == set(names), "what is free is taken")
    await one.release(names, "one")
    taken = await two.claim(names, "two", 3600.0)
    require(not calm() or taken == set(names), "what was given back is free")
    await two.release(names, "two")


async def _ask_again(one: _Holder, name: str, calm: Callable[[], bool]) -> None:
    """A claim that failed may be made again."""
    away = LeaseHolder(_Away(one.leases), _TERMS)
    try:
        await away.claim(name, lambda: None)
        require(False, "a claim fails if the log is away")
    except LogUnavailable:
        pass
    taken = await away.claim(name, lambda: None)
    require(not calm() or taken, "a claim that failed may be made again")
    await one.leases.release([name], away.name)


@final
class _Away:
    """Leases of a log that is away once."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._failed = False

    async def claim(self, names: Sequence[str], holder: str, seconds: float) -> frozenset[str]:
        if not self._failed:
            self._failed = True
            raise LogUnavailable("it is away")
        return await self._leases.claim(names, holder, seconds)

    async def release(self, names: Sequence[str], holder: str) -> None:
        await self._leases.release(names, holder)

    async def holders(self, prefix: str = "") -> Mapping[str, str]:
        return await self._leases.holders(prefix)


async def _outlive(one: _Holder, name: str, calm: Callable[[], bool]) -> None:
    """A lease of a process that died runs out, and one whose holder was too late is lost."""
    dead = await one.leases.claim([name], "dead", _TERMS.lasts)
    if not calm():
        return
    require(dead == {name}, "what is free is taken")
    await asyncio.sleep(_TERMS.lasts / 2)
    early = await one.claim(name)
    require(not calm() or not early, "a lease holds until it has run out")
    await asyncio.sleep(_TERMS.lasts)
    late = await one.claim(name)
    if not calm():
        return
    require(late, "a lease that has run out is free")
    taken: frozenset[str] = frozenset()
    for _ in range(5):  # a renewal may come in between
        if not taken:
            await one.leases.release([name], one.holder.name)
            taken = await one.leases.claim([name], "thief", 60.0)
    require(not calm() or taken == {name}, "what was given back is free for others")
    await asyncio.sleep(_TERMS.renewed * 2)
    require(not calm() or one.lost == [name], f"who has lost a lease is told, once: {one.lost}")
    await one.leases.release([name], "thief")
