"""Tasks that are reused."""

from __future__ import annotations

import asyncio

import anyio
import pytest
from duolog.engine.workers import Workers


async def test_items_are_worked_on_at_the_same_time() -> None:
    both = anyio.Event()
    begun: set[int] = set()

    async def work(item: int) -> None:
        begun.add(item)
        if len(begun) == 2:
            both.set()
        await both.wait()

    async with anyio.create_task_group() as tasks:
        workers = Workers(tasks, work)
        workers.start(1)
        workers.start(2)
        workers.close()
    assert begun == {1, 2}


async def test_a_task_without_work_takes_the_next_item() -> None:
    used: list[asyncio.Task[object] | None] = []
    done = anyio.Event()

    async def work(item: anyio.Event) -> None:
        used.append(asyncio.current_task())
        item.set()

    async with anyio.create_task_group() as tasks:
        workers = Workers(tasks, work)
        for _ in range(3):
            done = anyio.Event()
            workers.start(done)
            await done.wait()
            await anyio.wait_all_tasks_blocked()
        workers.close()
    assert len(used) == 3
    assert len(set(used)) == 1


async def test_close_lets_work_in_progress_finish() -> None:
    finished: list[int] = []
    go_on = anyio.Event()

    async def work(item: int) -> None:
        await go_on.wait()
        finished.append(item)

    async with anyio.create_task_group() as tasks:
        workers = Workers(tasks, work)
        workers.start(1)
        await anyio.wait_all_tasks_blocked()
        workers.close()
        go_on.set()
    assert finished == [1]


async def test_an_error_of_the_work_ends_the_group_and_its_idle_tasks() -> None:
    async def work(item: int) -> None:
        if item:
            raise ValueError(item)

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            workers = Workers(tasks, work)
            workers.start(0)
            workers.start(0)
            await anyio.wait_all_tasks_blocked()
            workers.start(1)

    with pytest.raises(ExceptionGroup) as raised:
        await run()
    assert raised.group_contains(ValueError, match="1")


async def test_work_after_a_cancelled_wait_gets_a_new_task() -> None:
    done: list[int] = []

    async def work(item: int) -> None:
        done.append(item)

    async with anyio.create_task_group() as outer:
        workers = Workers(outer, work)
        workers.start(1)
        await anyio.wait_all_tasks_blocked()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            if "_run" in task.get_name():
                task.cancel()
        await anyio.wait_all_tasks_blocked()
        workers.start(2)
        await anyio.wait_all_tasks_blocked()
        workers.close()
    assert done == [1, 2]
