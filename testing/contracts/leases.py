"""Checks the contract of ``Leases``, for stores whose logs several processes may share.

async def test_my_leases(tmp_path):
    async with open_log(url) as one, open_log(url) as other:
        await check_leases(one.leases(), other.leases())
"""

from __future__ import annotations

from functools import partial

import anyio

from ...engine.log.leases import Leases
from ..tools import require

__all__ = ("check_leases",)

_LONG = 3600.0


async def check_leases(one: Leases, other: Leases) -> None:
    """Checks that leases keep their contract.

    Args:
        one: a log that is open, and on which there are no leases.
        other: the same log, opened again, by another process perhaps.

    Raises:
        AssertionError: a promise is broken; says which.
    """
    with anyio.fail_after(60):
        await _check_claims(one, other)
        await _check_releases(one, other)
        await _check_ends(one, other)
        await _check_competition(one, other)


async def _check_claims(one: Leases, other: Leases) -> None:
    require(await one.holders() == {}, "there must be no leases at first")
    require(await one.claim([], "ann", _LONG) == set(), "nothing is claimed where nothing is named")
    taken = await one.claim(["b", "a"], "ann", _LONG)
    require(taken == {"a", "b"}, f"what is free is taken: {taken}")
    taken = await other.claim(["a", "c", "b"], "ben", _LONG)
    require(taken == {"c"}, f"what somebody holds is not free: {taken}")
    taken = await other.claim(["a", "b", "c"], "ann", _LONG)
    require(taken == {"a", "b"}, f"a claim is renewed by its holder: {taken}")
    for leases in (one, other):
        held = dict(await leases.holders())
        require(held == {"a": "ann", "b": "ann", "c": "ben"}, f"everybody sees who holds: {held}")
    held = dict(await one.holders("b"))
    require(held == {"b": "ann"}, f"a prefix selects names: {held}")


async def _check_releases(one: Leases, other: Leases) -> None:
    await other.release(["a", "c", "nothing"], "ben")
    held = dict(await one.holders())
    require(held == {"a": "ann", "b": "ann"}, f"only the holder gives a lease back: {held}")
    require(await other.claim(["c"], "ann", _LONG) == {"c"}, "what was given back is free")
    await one.release(["a", "b", "c"], "ann")
    require(await other.holders() == {}, "nobody holds what was given back")


async def _check_ends(one: Leases, other: Leases) -> None:
    await one.claim(["x"], "ann", 0.0)
    require(await other.holders() == {}, "a lease that has run out has no holder")
    require(await one.claim(["x"], "ann", 0.0) == {"x"}, "it is renewed where nobody took it")
    require(await other.claim(["x"], "ben", _LONG) == {"x"}, "a lease that has run out is free")
    require(await one.claim(["x"], "ann", _LONG) == set(), "who was too late has lost it")
    await one.release(["x"], "ann")
    require(await one.holders() == {"x": "ben"}, "and gives nothing back")
    await other.release(["x"], "ben")


async def _check_competition(one: Leases, other: Leases) -> None:
    names = [f"n{number}" for number in range(12)]
    taken: dict[str, frozenset[str]] = {}

    async def claim(leases: Leases, holder: str, wanted: list[str]) -> None:
        taken[holder] = await leases.claim(wanted, holder, _LONG)

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            wanted = names if number % 3 else names[::-1]
            work = partial(claim, one if number % 2 else other, f"holder {number}", wanted)
            tasks.start_soon(work)
    each = sorted(name for mine in taken.values() for name in mine)
    require(
        each == sorted(names), f"each name has one holder of those who claim it at once: {each}"
    )
    held = dict(await one.holders())
    own = {name: holder for holder, mine in taken.items() for name in mine}
    require(held == own, "who was given a lease holds it")
