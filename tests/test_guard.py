"""The guard against blocking calls, itself tested: it catches what blocks, and nothing else."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import anyio.to_thread
import duolog.engine
import pytest
from blockbuster import BlockingError


def within_the_engine(call: Callable[[], object]) -> Callable[[], object]:
    """A function that makes the call, and passes for one of the engine's by its file name."""
    names: dict[str, Callable[[Callable[[], object]], object]] = {}
    path = Path(duolog.engine.__path__[0], "no_such_module.py")
    exec(compile("def make(call): return call()", path, "exec"), names)
    return lambda: names["make"](call)


async def test_a_blocking_call_in_the_loop_is_caught() -> None:
    with pytest.raises(BlockingError, match=r"time\.sleep"):
        within_the_engine(lambda: time.sleep(0))()


async def test_reading_a_file_in_the_loop_is_caught() -> None:
    with pytest.raises(BlockingError, match=r"\.read"):
        within_the_engine(Path(__file__).read_bytes)()


async def test_blocking_in_a_thread_is_allowed() -> None:
    assert await anyio.to_thread.run_sync(within_the_engine(Path(__file__).read_bytes))


async def test_starting_a_thread_is_allowed() -> None:
    thread = threading.Thread(target=lambda: None)
    within_the_engine(thread.start)()
    await anyio.to_thread.run_sync(thread.join)


async def test_importing_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_of_the_guards_test.py").write_text("loaded = True\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = within_the_engine(lambda: import_module("module_of_the_guards_test"))()
    assert vars(module)["loaded"]


async def test_printing_is_allowed() -> None:
    within_the_engine(lambda: print("to be read", flush=True))()  # noqa: T201


def test_without_a_loop_anything_goes() -> None:
    within_the_engine(lambda: time.sleep(0))()


def test_time_limits_of_tests_notice_hangs_alone() -> None:
    """A limit that a busy machine could miss fails a test that nothing is wrong with."""
    least = {r"fail_after\((\d+(?:\.\d+)?)\)": 120, r"mark\.timeout\((\d+)\)": 900}
    short = [
        (path.name, found[0])
        for path in Path(__file__).parent.rglob("*.py")
        for limit, seconds in least.items()
        for found in re.finditer(limit, path.read_text(encoding="utf-8"))
        if 0 < float(found[1]) < seconds
    ]
    assert short == []
