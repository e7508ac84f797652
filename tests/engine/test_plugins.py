"""The boundary around plug-ins: only a cancellation that is ours passes it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from duolog.engine.errors import PluginFailed
from duolog.engine.plugins import PluginCall, error_with_place, failure_of


async def await_what_is_gone() -> None:
    """Awaits a cancelled task, as a plug-in with tasks may."""
    gone = asyncio.ensure_future(anyio.sleep_forever())
    gone.cancel()
    await gone


async def call_what_is_gone() -> None:
    with PluginCall("hook"):
        await await_what_is_gone()


async def test_a_cancellation_that_nobody_asked_for_is_a_failure() -> None:
    with pytest.raises(PluginFailed, match="hook raised CancelledError; nobody cancelled it") as at:
        await call_what_is_gone()
    assert isinstance(failure_of(at.value), asyncio.CancelledError)


async def test_a_request_that_a_library_left_uncounted_does_not_hide_that() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await anyio.lowlevel.checkpoint()
    assert task.cancelling() == 1  # as old versions of async_timeout leave it
    with pytest.raises(PluginFailed):
        await call_what_is_gone()
    task.uncancel()


@pytest.mark.parametrize("early", [False, True])
async def test_a_cancellation_of_the_task_passes(early: bool) -> None:
    async def work() -> None:
        if early:  # asked for before the call, and delivered within
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        with PluginCall("hook"):
            await anyio.sleep_forever()

    task = asyncio.ensure_future(work())
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_what_is_raised_in_place_of_a_cancellation_is_the_cancellation() -> None:
    async def hook() -> None:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            raise ValueError("on its way out") from None

    with anyio.move_on_after(0) as scope:
        with PluginCall("hook"):
            await hook()
    assert scope.cancelled_caught

    async def timed() -> None:
        async with asyncio.timeout(0):
            with PluginCall("hook"):
                await hook()

    with pytest.raises(TimeoutError):
        await timed()


async def swallow_and_fail() -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await anyio.sleep_forever()
    raise ValueError("on its way out")


async def fail_in_a_task() -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(swallow_and_fail)


@pytest.mark.parametrize("hook", [swallow_and_fail, fail_in_a_task])
async def test_an_error_that_does_not_know_of_the_cancellation_is_it_as_well(
    hook: Callable[[], Awaitable[None]],
) -> None:
    with anyio.move_on_after(0.001) as scope:
        with PluginCall("hook"):
            await hook()
    assert scope.cancelled_caught


async def test_a_scope_of_the_call_itself_is_no_cancellation_of_ours() -> None:
    with pytest.raises(TimeoutError), PluginCall("hook"), anyio.fail_after(0):
        await anyio.sleep_forever()


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        GeneratorExit(),
        BaseExceptionGroup("tasks", [asyncio.CancelledError()]),
    ],
    ids=repr,
)
async def test_what_is_no_exception_becomes_one(error: BaseException) -> None:
    with pytest.raises(PluginFailed) as found, PluginCall("hook"):
        raise error
    assert found.value.raised is error


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), BaseExceptionGroup("tasks", [KeyboardInterrupt()]), KeyError("x")],
    ids=repr,
)
async def test_a_persons_interrupt_passes_and_so_does_an_exception(error: BaseException) -> None:
    with pytest.raises(type(error)) as found, PluginCall("hook"):
        raise error
    assert found.value is error


async def test_a_coroutine_that_is_closed_while_it_waits_closes() -> None:
    async def work() -> None:
        with PluginCall("hook"):
            await asyncio.sleep(0)

    async def enter() -> None:
        waiting.send(None)

    waiting = work()
    await asyncio.ensure_future(enter())
    waiting.close()  # raises where GeneratorExit does not pass


def test_outside_of_any_event_loop_nothing_is_ours() -> None:
    with pytest.raises(PluginFailed, match="CancelledError"), PluginCall("hook"):
        raise asyncio.CancelledError


def test_an_error_names_its_place_in_a_file_of_ones_own_and_no_folder() -> None:
    def decide() -> None:
        json.loads("{")

    with pytest.raises(ValueError, match="Expecting property name") as found:
        decide()
    error, trace = found.value, found.tb.tb_next
    assert trace is not None
    line = decide.__code__.co_firstlineno + 1
    text = error_with_place(error)
    assert text == f"{error} (test_plugins.py, line {line}, in decide)"
    assert str(Path(__file__).parent) not in text
    assert error_with_place(error.with_traceback(trace.tb_next)) == str(error), "a library's own"
