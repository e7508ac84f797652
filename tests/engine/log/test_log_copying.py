"""A log is copied unchanged into another store, continues after it, and keeps sessions forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
import virtual_loop
from duolog.engine.errors import InvalidInput
from duolog.engine.log.contract import SessionSummary, Store
from duolog.engine.log.exchange.copying import copy_log
from duolog.engine.log.exchange.jsonl_export import to_jsonl
from duolog.engine.log.open import open_log
from duolog.testing.tools import appended, collect, message
from scripted_logs import MOVES, interleave, script_of

Urls = Callable[[], tuple[str, str]]


@pytest.fixture(params=["to sqlite", pytest.param("to postgres and back", marks=pytest.mark.slow)])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The stores that a log goes through, one after the other."""
    middle = "memory://"
    if "postgres" in request.param:
        middle = request.getfixturevalue("postgres").url(partition="100")
    return [f"sqlite:///{tmp_path}/a.db", middle, f"sqlite:///{tmp_path}/b.db?chain=yes"]


async def test_a_copy_holds_the_same_records_at_the_same_positions(urls: list[str]) -> None:
    async with open_log(urls[0]) as a, open_log(urls[1]) as b, open_log(urls[2]) as c:
        await interleave(a, [script_of(MOVES, "s"), script_of(MOVES[::-1], "t")], (0, 1, 1, 0))
        await appended(a, "u", 150)
        await a.forget("t")
        first, second = await copy_log(a, b), await copy_log(b, c)
        held = [to_jsonl(record) for record in await collect(a.read_all())]
        assert first.records == second.records == len(held)
        for copy in (b, c):
            assert [to_jsonl(record) for record in await collect(copy.read_all())] == held
            assert await collect(copy.sessions()) == await collect(a.sessions())
            assert not (await copy.verify()).problems


async def test_it_goes_on_where_the_copy_ends_and_forgets_what_was_forgotten(
    urls: list[str],
) -> None:
    async with open_log(urls[0]) as source, open_log(urls[1]) as target:
        await appended(source, "s", 30)
        await appended(source, "t", 3)
        assert (await copy_log(source, target)).records == 33
        await appended(source, "s", 5)
        await source.forget("t")
        again = await copy_log(source, target)
        assert (again.records, again.position, again.forgotten) == (5, 38, ("t",))
        assert (await copy_log(source, target)).records == 0
        assert all(record.body is None for record in await collect(target.read("t")))


async def test_a_copy_that_got_erased_records_after_whole_ones_forgets_those_too(
    urls: list[str],
) -> None:
    async with open_log(urls[0]) as source, open_log(urls[1]) as target:
        await appended(source, "s", 3)
        await copy_log(source, target)
        await appended(source, "s", 2)
        await source.forget("s")
        again = await copy_log(source, target)
        assert (again.records, again.forgotten) == (2, ("s",))
        assert all(record.body is None for record in await collect(target.read("s")))
        assert not (await target.verify()).problems


async def test_a_log_that_holds_something_else_is_left_as_it_is() -> None:
    async with open_log("memory://") as source, open_log("memory://") as target:
        await appended(source, "s", 3)
        await appended(target, "other", 2)
        with pytest.raises(
            InvalidInput, match=r"not the beginning of .* they differ at position 1"
        ):
            await copy_log(source, target)
        assert len(await collect(target.read_all())) == 2


async def test_it_follows_a_source_that_grows() -> None:
    async with open_log("memory://") as source, open_log("memory://") as target:
        await appended(source, "s", 2)
        reached = anyio.Event()

        def progress(position: int) -> None:
            if position == 5:
                reached.set()

        async def follow() -> None:
            await copy_log(source, target, follow=True, progress=progress)

        with anyio.fail_after(120):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow)
                await source.append("s", [message("x")] * 3)
                await reached.wait()
                tasks.cancel_scope.cancel()
        assert len(await collect(target.read("s"))) == 5


async def test_to_forget_it_lists_the_sessions_of_the_source_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_log("memory://") as source, open_log(f"{tmp_path}/copy.db") as target:
        for name in ("s", "t"):
            await appended(source, name, 2)
        await copy_log(source, target)
        await source.forget("s")
        monkeypatch.delattr(type(target), "sessions")
        assert (await copy_log(source, target)).forgotten == ("s",)
        assert (await copy_log(source, target)).forgotten == ()


def test_the_longer_a_look_for_what_was_forgotten_takes_the_fewer_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[float] = []

    async def follow() -> None:
        async with open_log("memory://") as source, open_log("memory://") as target:

            async def sessions(_: Store) -> AsyncIterator[SessionSummary]:
                looks.append(anyio.current_time())
                if len(looks) == 4:
                    tasks.cancel_scope.cancel()
                await anyio.sleep((1.0, 10.0, 2.0, 0.0)[len(looks) - 1])
                yield await source.summary("s")

            await appended(source, "s", 2)
            monkeypatch.setattr(type(source), "sessions", sessions)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(copy_log, source, target, follow=True))

    virtual_loop.run(follow)
    assert [round(later - earlier) for earlier, later in pairwise(looks)] == [31, 210, 42]


@pytest.mark.parametrize("between", [0.0, 0.01])  # with 0.0 all comes just as the time is over
async def test_while_it_follows_it_forgets_what_is_forgotten(
    between: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duolog.engine.log.exchange.copying._ERASURES", between)
    async with open_log("memory://") as source, open_log("memory://") as target:
        await appended(source, "s", 2)
        with anyio.fail_after(120):
            async with anyio.create_task_group() as tasks, target.tap() as tap:
                tasks.start_soon(partial(copy_log, source, target, follow=True))
                assert [(await anext(tap)).version for _ in range(2)] == [1, 2]
                await source.forget("s")
                while (await target.summary("s")).state != "forgotten":  # though it always grows
                    await appended(source, "t", 1)
                    assert (await anext(tap)).session == "t"
                tasks.cancel_scope.cancel()
