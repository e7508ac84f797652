"""Modules that take long to import, imported by the test that first uses them: else each process
that runs a part of the tests would import all of them, to collect tests that others run."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

__all__ = ("imported_later",)


def imported_later(name: str) -> Any:  # noqa: ANN401 (as a module is, to a type checker)
    """A placeholder for a module until one of its names is used. If the library is missing, the
    tests of the calling module are skipped."""
    if find_spec(name.partition(".")[0]) is None:
        pytest.skip(f"needs {name}", allow_module_level=True)
    return _Later(name)


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # pytest asks this of each name in a module of tests
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
