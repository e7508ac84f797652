"""The public API as its readers meet it: docstrings, signatures, types, and the pages on it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import get_type_hints, is_typeddict

import duolog
import pytest

PUBLIC = [(import_module(f"duolog{home}"), name) for name, home in duolog._HOMES.items()]
"""The public names, each with the module that has it."""

IDS = [f"{module.__name__}.{name}" for module, name in PUBLIC]


def functions(value: object) -> Iterator[tuple[str, Callable[..., object]]]:
    """The functions whose signatures a reader of a name may want to know, by their names."""
    if inspect.isfunction(value):
        yield value.__name__, value
    if inspect.isclass(value):
        for name, member in vars(value).items():
            function = member.fget if isinstance(member, property) else member
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
                yield name, function


def documented_in_source(module: ModuleType, name: str) -> bool:
    """Whether a text stands below the assignment of a name."""
    for statement, following in pairwise(ast.parse(inspect.getsource(module)).body):
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [statement.target]
            if isinstance(statement, ast.AnnAssign)
            else []
        )
        if name in {target.id for target in targets if isinstance(target, ast.Name)}:
            text = following.value if isinstance(following, ast.Expr) else None
            return isinstance(text, ast.Constant) and isinstance(text.value, str)
    return False


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=IDS)
def test_it_is_documented(module: ModuleType, name: str) -> None:
    value = getattr(module, name)
    if not inspect.isclass(value) and not inspect.isfunction(value):
        assert documented_in_source(module, name)
        return
    assert (vars(value)["__doc__"] if inspect.isclass(value) else value.__doc__ or "").strip()
    for member, function in functions(value):
        if member != "__init__" and function.__module__.startswith("duolog"):
            assert (function.__doc__ or "").strip(), f"{member} says nothing"


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=IDS)
def test_its_signature_and_types_resolve(module: ModuleType, name: str) -> None:
    value = getattr(module, name)
    if inspect.isclass(value):
        get_type_hints(value)
        if not is_typeddict(value) and not issubclass(value, Exception):
            inspect.signature(value)
    for _, function in functions(value):
        get_type_hints(function)
        inspect.signature(function, eval_str=True)
