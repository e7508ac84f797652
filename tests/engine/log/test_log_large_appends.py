"""Large appends are checked in a thread, and those of one session keep their order."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from duolog.engine.errors import CodecError
from duolog.engine.events import ActionTaken, MessageSent, SessionOpened
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft

SIZE = 40_000


class Watched(dict[str, object]):
    """Arguments that wait when they are compared, and note in which thread that is."""

    def __init__(self, size: int = SIZE) -> None:
        super().__init__(text="x" * size)
        self.go_on = threading.Event()
        self.thread = 0

    def __eq__(self, other: object) -> bool:
        self.thread = threading.get_ident()
        if self.thread != threading.main_thread().ident:
            assert self.go_on.wait(300)
        return super().__eq__(other)

    __hash__ = None


def acting(arguments: dict[str, object]) -> Draft:
    return Draft(ActionTaken("search", arguments), "ada", "agent", 0.0)  # type: ignore[arg-type]


def saying(text: str) -> Draft:
    return Draft(MessageSent(text), "ann", "human", 0.0)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_log("memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/log.db")


async def kinds(log: Store, session: str) -> list[str]:
    return [record.kind async for record in log.read(session)]


async def test_ordinary_appends_are_checked_at_once(store: Store) -> None:
    async with store as log:
        small = Watched(10)
        await log.append("s", [acting(small)])
        assert small.thread == threading.get_ident()


async def test_a_large_append_holds_up_its_own_session_only(store: Store) -> None:
    async with store as log:
        large = Watched()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(log.append, "s", [acting(large)])
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(log.append, "s", [saying("later")])
            await log.append("other", [saying("meanwhile")])
            assert await kinds(log, "s") == []
            large.go_on.set()
        assert await kinds(log, "s") == ["ActionTaken", "MessageSent"]
        assert large.thread not in (0, threading.get_ident())


@pytest.mark.parametrize("which", ["checked", "in line"])
async def test_who_is_cancelled_leaves_nothing_and_lets_nobody_ahead(
    which: str, store: Store
) -> None:
    checked, in_line = Watched(), Watched()
    scope = anyio.CancelScope()

    async def cancelled(log: Store, arguments: Watched) -> None:
        with scope:
            await log.append("s", [acting(arguments)])

    async def kept(log: Store, arguments: Watched) -> None:
        await log.append("s", [acting(arguments)])

    first, second = (cancelled, kept) if which == "checked" else (kept, cancelled)
    async with store as log:
        async with anyio.create_task_group() as tasks:
            for append, arguments in ((first, checked), (second, in_line)):
                tasks.start_soon(append, log, arguments)
                await anyio.lowlevel.checkpoint()
            tasks.start_soon(log.append, "s", [saying("last")])
            await anyio.lowlevel.checkpoint()
            scope.cancel()
            await anyio.lowlevel.checkpoint()
            assert await kinds(log, "s") == []  # the last one has not got ahead
            checked.go_on.set()
            in_line.go_on.set()
        assert await kinds(log, "s") == ["ActionTaken", "MessageSent"]
        await log.append("s", [saying("at once again")])


async def test_a_log_that_closes_waits_for_what_is_being_checked(tmp_path: Path) -> None:
    large = Watched()
    url = f"sqlite:///{tmp_path}/log.db"
    async with anyio.create_task_group() as tasks, open_log(url) as log:
        tasks.start_soon(log.append, "s", [acting(large)])
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(log.aclose)
        await anyio.lowlevel.checkpoint()
        large.go_on.set()
    async with open_log(url) as log:
        assert await kinds(log, "s") == ["ActionTaken"]


async def test_a_large_append_is_refused_as_a_small_one_is(store: Store) -> None:
    async with store as log:
        arguments: dict[str, object] = {"text": "x" * SIZE, "number": float("nan")}
        with pytest.raises(CodecError, match="a number that JSON cannot say"):
            await log.append("s", [acting(arguments)])
        assert await kinds(log, "s") == []
        opened = SessionOpened(
            task="t", instance="i", participants=(), clock="utc", config={"text": "x" * SIZE}
        )
        await log.append("s", [Draft(opened, "engine", "environment", 0.0)])
        assert (await log.summary("s")).task == "t"
        assert [record.event async for record in log.read("s")] == [opened]
