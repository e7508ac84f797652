"""Gathering: one commit for events that come shortly after each other, unless a caller waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import duolog
import pytest
import virtual_loop
from duolog import InvalidInput

LINGER = 0.05


def played(record: Callable[[duolog.Log], Awaitable[None]], linger: float = LINGER) -> float:
    """The seconds that it takes to record something, in which only waits count."""

    async def main() -> float:
        async with duolog.open("memory://", linger=linger) as log:
            begin = anyio.current_time()
            await record(log)
            return anyio.current_time() - begin

    return virtual_loop.run(main)


@pytest.mark.parametrize(("linger", "commits"), [(LINGER, 2), (0.0, 4)])
def test_what_comes_within_a_moment_is_committed_together(linger: float, commits: int) -> None:
    async def record(log: duolog.Log) -> None:
        sessions = [await log.session(name) for name in ("a", "b")]
        await log.settle()
        before = log.statistics().groups
        for session in (*sessions, *sessions):
            await session.human.says("Hello.")
            await anyio.sleep(LINGER / 10)
        await log.settle()
        assert log.statistics().groups - before == commits  # of two sessions

    played(record, linger)


async def _durably(log: duolog.Log) -> None:
    session = await log.session("s")
    await session.human.says("Hello.", durable=True)


async def _with_a_receipt(log: duolog.Log) -> None:
    session = await log.session("s")
    receipt = await session.human.says("Hello.")
    await receipt.written()


async def _flushed(log: duolog.Log) -> None:
    session = await log.session("s")
    await session.human.says("Hello.")
    await session.flush()


async def _closed(log: duolog.Log) -> None:
    session = await log.session("s")
    await session.human.says("Hello.")
    await log.aclose()


async def _many(log: duolog.Log) -> None:
    session = await log.session("s")
    for number in range(300):
        receipt = await session.human.says(str(number))
    while receipt.record is None:
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("record", [_durably, _with_a_receipt, _flushed, _closed, _many])
def test_nothing_is_gathered_while_somebody_waits(
    record: Callable[[duolog.Log], Awaitable[None]],
) -> None:
    assert played(record) == 0.0


@pytest.mark.parametrize("handled", ["on_update", "on_stop", "iterated", ""])
def test_nothing_is_gathered_for_whom_updates_are_handed_to(handled: str) -> None:
    async def record(log: duolog.Log) -> None:
        if handled == "on_update":
            log.watch(on_update=lambda update: None).start()
        elif handled == "on_stop":
            log.watch(on_stop=lambda advice: None).start()
        elif handled == "iterated":
            await log.watch().__aenter__()
        else:
            log.watch().start()  # measures, and hands nothing to anybody
        session = await log.session("s")
        receipt = await session.human.says("Hello.")
        while receipt.record is None:
            await anyio.lowlevel.checkpoint()
            if not handled:
                await anyio.sleep(LINGER)

    assert (played(record) > 0.0) is not bool(handled)


@pytest.mark.parametrize("linger", [-0.001, 0.051, float("nan")])
async def test_a_linger_out_of_its_range_is_refused(linger: float) -> None:
    with pytest.raises(InvalidInput, match=r"linger is from 0 to 0\.05 seconds"):
        async with duolog.open("memory://", linger=linger):
            pass
