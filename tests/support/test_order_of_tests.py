"""Tests are dealt to the processes that run them so that each begins with its share of the long ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from order_of_tests import dealt

pytest_plugins = ["pytester"]

SETTINGS = """
[pytest]
asyncio_default_fixture_loop_scope = function
markers =
    long
    slow
    late
"""

SHARED = """
import pytest

@pytest.fixture(scope="session")
def litellm_at_work(): ...
"""

FILE = """
import pytest

@pytest.mark.late
def test_late(): ...

@pytest.mark.parametrize("number", range(8))
def test_quick(number): ...

def test_costly(litellm_at_work): ...

@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_slow(number): ...

@pytest.mark.long
@pytest.mark.parametrize("number", range(2))
def test_long(number): ...
"""


@pytest.fixture
def tests(pytester: pytest.Pytester) -> Sequence[pytest.Item]:
    """The tests of two files that are alike."""
    pytester.makeini(SETTINGS)
    pytester.makeconftest(SHARED)
    pytester.makepyfile(test_a=FILE, test_b=FILE)
    items, _ = pytester.inline_genitems()
    assert len(items) == 30
    return list(items)


def kind(test: pytest.Item) -> str:
    return test.name.partition("[")[0].removeprefix("test_")


def test_one_process_begins_with_the_long_ones_and_ends_with_the_late_ones(
    tests: Sequence[pytest.Item],
) -> None:
    ordered = dealt(tests, 1)
    assert sorted(map(id, ordered)) == sorted(map(id, tests))
    kinds = list(dict.fromkeys(kind(test) for test in ordered))
    assert kinds[0] == "long"
    assert {*kinds[1:3]} == {"slow", "costly"}
    assert kinds[3:] == ["quick", "late"]


def test_each_process_has_its_share_of_each_kind(tests: Sequence[pytest.Item]) -> None:
    ordered = dealt(tests, 2)
    assert sorted(map(id, ordered)) == sorted(map(id, tests))
    parts = ordered[:15], ordered[15:]  # as pytest-xdist divides them
    for part in parts:
        kinds = [kind(test) for test in part]
        assert kinds[:2] == ["long", "long"]
        assert kinds[-1] == "late"
        assert kinds.count("slow") == 3
        [file] = {
            test.path for test in part if kind(test) in ("slow", "late")
        }  # they share what is set up
        assert file.name in ("test_a.py", "test_b.py")
    assert sorted(sum(kind(test) == "costly" for test in part) for part in parts) == [0, 2]


def test_a_few_long_tests_are_enough_for_many_processes(tests: Sequence[pytest.Item]) -> None:
    few = [test for test in tests if kind(test) == "long"]
    assert sorted(map(id, dealt(few, 7))) == sorted(map(id, few))
    assert dealt([], 7) == []
