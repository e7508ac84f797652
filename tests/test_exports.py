"""The interface as it can be seen: ``__all__`` of each module, and the names at the top."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import duolog
import pytest

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(duolog.__path__, "duolog.")
    if not any(part.startswith("_") for part in found.name.split("."))
)


@pytest.mark.parametrize("name", ["duolog", *MODULES])
def test_all_names_what_is_there(name: str) -> None:
    module = import_module(name)
    names = module.__all__
    assert isinstance(names, tuple)
    assert len(set(names)) == len(names)
    assert [n for n in names if not hasattr(module, n)] == []


@pytest.mark.parametrize("name", ["duolog", *MODULES])
def test_a_module_says_what_it_is(name: str) -> None:
    assert (import_module(name).__doc__ or "").strip()


def test_modules_are_found() -> None:
    assert {"duolog.cli.app", "duolog.engine.events", "duolog.scoring"} <= set(MODULES)


def declared(root: Path) -> dict[str, tuple[str, str]]:
    """What static tools see at the top: each name, the module that has it, and its name there."""
    tree = ast.parse((root / "__init__.py").read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If) and not node.orelse][:1]
    return {
        alias.asname or alias.name: (f"duolog.{node.module}", alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_static_tools_see_what_runs(root: Path) -> None:
    names = declared(root)
    assert {"__version__", *names} == set(duolog.__all__)
    for name, (module, name_there) in names.items():
        assert getattr(duolog, name) is getattr(import_module(module), name_there)


def test_names_can_be_listed() -> None:
    assert set(duolog.__all__) <= set(dir(duolog))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'duolog' has no attribute 'Nonsense'"):
        _ = getattr(duolog, "Nonsense")  # noqa: B009 (a type checker refuses duolog.Nonsense)


def has_docstring(module: str, name: str) -> bool:
    value = getattr(import_module(module), name)
    if inspect.isclass(value) or inspect.isfunction(value):
        return bool(vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__)
    body = ast.parse(inspect.getsource(import_module(module))).body
    for statement, following in pairwise(body):
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [statement.target]
            if isinstance(statement, ast.AnnAssign)
            else []
        )
        if name in {t.id for t in targets if isinstance(t, ast.Name)}:
            text = following.value if isinstance(following, ast.Expr) else None
            return isinstance(text, ast.Constant) and isinstance(text.value, str)
    return False


def test_the_top_level_names_are_documented(root: Path) -> None:
    assert [n for n, home in declared(root).items() if not has_docstring(*home)] == []
