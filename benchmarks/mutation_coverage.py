"""A pytest plug-in that writes down which tests call which functions, so that a mutant is judged by those.

    python -P -m pytest -p duolog.benchmarks.mutation_coverage tests/engine tests/telemetry tests/scoring

It writes ``build/mutation-tests.json``: for each function of the packages that are changed, the tests that
call it and pass, the fastest first.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

__all__ = ("MAP", "callers")

ROOT = Path(__file__).resolve().parent.parent
MAP = ROOT / "build" / "mutation-tests.json"
_PLACES = tuple(str(ROOT / name) + "/" for name in ("engine/", "telemetry/", "scoring/"))

_called: set[tuple[str, str]] = set()
_tests: dict[str, tuple[float, frozenset[tuple[str, str]]]] = {}
_names: dict[str, str] = {}


def _trace(frame: FrameType, event: str, arg: object) -> None:
    code = frame.f_code
    name = code.co_filename
    path = _names.get(name)
    if path is None:
        whole = name.replace("/build/editable/duolog/", "/")
        path = _names[name] = whole[len(str(ROOT)) + 1 :] if whole.startswith(_PLACES) else ""
    if path:
        _called.add((path, code.co_qualname))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Traces one test, its fixtures included."""
    _called.clear()
    threading.settrace(_trace)
    sys.settrace(_trace)
    began = time.perf_counter()
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        _tests[item.nodeid] = time.perf_counter() - began, frozenset(_called)


_failed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Leaves out tests that fail without any mutant."""
    if not report.passed:
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Writes the map."""
    found: dict[str, list[tuple[float, str]]] = {}
    for test, (seconds, called) in _tests.items():
        for path, function in called if test not in _failed else ():
            found.setdefault(f"{path}:{function.split('.<locals>.<')[0]}", []).append(
                (seconds, test)
            )
    MAP.parent.mkdir(exist_ok=True)
    text = json.dumps({name: sorted(set(tests)) for name, tests in sorted(found.items())})
    MAP.write_text(text, encoding="utf-8")


def callers(path: str, function: str = "") -> list[str]:
    """The tests that call a function of a module, or any if none is named, the fastest first.

    Raises:
        OSError: the map was not written yet.
    """
    known = json.loads(MAP.read_text(encoding="utf-8"))
    names = [f"{path}:{function}"] if function else [n for n in known if n.startswith(f"{path}:")]
    return list(
        dict.fromkeys(test for _, test in sorted(one for n in names for one in known.get(n, ())))
    )
