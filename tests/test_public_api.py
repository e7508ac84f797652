"""The public API as its readers meet it: docstrings, signatures, types, and the pages on it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import get_type_hints, is_typeddict

import duolog
import pytest
from documents import snippets

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"

DIRECTIVE = re.compile(r"^\.\. auto(?:class|exception|function):: duolog\.(\w+)$", re.MULTILINE)

ELSEWHERE = re.compile(
    r"^\.\. auto(?:class|exception|function):: (duolog(?:\.\w+)+)\.(\w+)$", re.MULTILINE
)

MODULE = re.compile(
    r"^### (\S+)\n\n```{eval-rst}\n\.\. automodule:: (\S+)\n   :members: ([^:`]*)", re.MULTILINE
)


LATE = {"duolog.experiments.reports", "duolog.experiments.spec"}
"""Modules at the root whose types load much, such as NumPy: only a type checker imports these with the module."""


FRAMEWORKS = {"duolog.train.gymnasium", "duolog.train.verifiers"}
"""Modules that the reference does not list: their types are those of a framework, which may be missing."""


def submodules() -> dict[str, tuple[str, ...]]:
    """The public submodules and their public names, as the reference lists them."""
    page = (REFERENCE / "submodules.md").read_text(encoding="utf-8")
    found = MODULE.findall(page)
    assert page.count("automodule::") == len(found) == len({module for _, module, _ in found})
    assert all(title == module for title, module, _ in found)
    listed = {module: tuple(re.findall(r"\w+", names)) for _, module, names in found}
    for path in REFERENCE.glob("*.md"):
        for module, name in ELSEWHERE.findall(path.read_text(encoding="utf-8")):
            listed[module] = (*listed.get(module, ()), name)
    return listed


SUBMODULES = submodules()

PUBLIC = [
    *((import_module(f"duolog{home}"), name) for name, home in duolog._HOMES.items()),
    *((import_module(module), name) for module, names in SUBMODULES.items() for name in names),
]
"""The public names, each with the module that has it."""

PARTS = sorted({".".join(module.__name__.split(".")[:2]) for module, _ in PUBLIC})
"""The packages that have them. A test for each name would cost more than what it looks at."""


def public_in(part: str) -> list[tuple[ModuleType, str]]:
    return [
        (module, name) for module, name in PUBLIC if f"{module.__name__}.".startswith(f"{part}.")
    ]


def test_each_public_name_is_looked_at() -> None:
    assert sorted(
        (module.__name__, name) for part in PARTS for module, name in public_in(part)
    ) == sorted((module.__name__, name) for module, name in PUBLIC)


def test_the_reference_lists_each_name_at_the_root_once() -> None:
    pages = [path.read_text(encoding="utf-8") for path in sorted(REFERENCE.glob("*.md"))]
    listed = [name for page in pages for name in DIRECTIVE.findall(page)]
    assert sorted(listed) == sorted(duolog._HOMES)
    elsewhere = sum(len(ELSEWHERE.findall(page)) for page in pages)
    modules = sum(len(MODULE.findall(page)) for page in pages)
    assert sum(page.count(".. auto") for page in pages) == len(listed) + elsewhere + modules


@pytest.mark.parametrize("module", SUBMODULES)
def test_the_reference_lists_what_a_submodule_offers(module: str) -> None:
    names = SUBMODULES[module]
    offered = import_module(module).__all__
    assert len(set(names)) == len(names)
    assert set(names) <= set(offered)
    at_root = {name for name, home in duolog._HOMES.items() if f"duolog{home}" == module}
    assert at_root.isdisjoint(names)


def imports(text: str) -> Iterator[tuple[str, str]]:
    """The names that a program imports from Duolog, each with its module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("duolog."):
            yield from ((node.module or "", alias.name) for alias in node.names)
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if "duolog." in alias.name)


@pytest.mark.parametrize(
    "path", ["README.md", "docs/*.md", "examples/*.py"], ids=["readme", "docs", "examples"]
)
def test_what_we_show_uses_public_names_only(root: Path, path: str) -> None:
    shown = []
    for file in sorted(root.glob(path)):
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".py":
            shown.append((file, text))
        else:
            programs = [one.text for one in snippets(text) if one.language == "python"]
            shown.extend((file, program) for program in programs)
    assert shown
    for file, text in shown:
        for module, name in imports(text):
            if module in FRAMEWORKS:
                continue
            at_root = f"duolog{duolog._HOMES.get(name, '')}" == module
            listed = SUBMODULES.get(module, ())
            assert at_root or name in listed or (listed and not name), (
                f"{file.name}: {module} {name}"
            )


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
    """Whether a docstring follows the assignment of a name."""
    statements = ast.parse(inspect.getsource(module)).body
    for statement, following in pairwise(statements):
        if isinstance(statement, ast.ImportFrom) and name in [a.name for a in statement.names]:
            home = resolve_name(f"{'.' * statement.level}{statement.module}", module.__package__)
            return documented_in_source(import_module(home), name)
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


def undocumented(module: ModuleType, name: str) -> Iterator[str]:
    """A public name, or what is part of it, that says nothing."""
    value = getattr(module, name)
    whole = f"{module.__name__}.{name}"
    if not inspect.isclass(value) and not inspect.isfunction(value):
        if not documented_in_source(module, name):
            yield whole
        return
    if not (vars(value)["__doc__"] if inspect.isclass(value) else value.__doc__ or "").strip():
        yield whole
    for member, function in functions(value):
        ours = member != "__init__" and function.__module__.startswith("duolog")
        if ours and not (function.__doc__ or "").strip():
            yield f"{whole}.{member}"


@pytest.mark.parametrize("part", PARTS)
def test_they_are_documented(part: str) -> None:
    assert [one for module, name in public_in(part) for one in undocumented(module, name)] == []


@cache
def late_types(module: str) -> dict[str, object]:
    """The names that a late module imports for a type checker."""
    if module not in LATE:
        return {}
    found: dict[str, object] = {}
    for node in ast.parse(inspect.getsource(import_module(module))).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            code = compile(ast.Module(node.body, []), module, "exec")
            exec(code, {"__package__": module.rpartition(".")[0]}, found)
    assert found
    return found


def unresolved(module: ModuleType, name: str) -> str | None:
    """Says why a signature or a type of a public name cannot be resolved; None if they can."""
    value = getattr(module, name)
    late = late_types(module.__name__)
    try:
        if inspect.isclass(value):
            get_type_hints(value, localns=late)
            if not is_typeddict(value) and not issubclass(value, Exception):
                inspect.signature(value)
        for _, function in functions(value):
            get_type_hints(function, localns=late)
            inspect.signature(function, eval_str=True, locals=late)
    except (AttributeError, NameError, TypeError, ValueError) as error:
        return f"{module.__name__}.{name}: {error!r}"
    return None


@pytest.mark.parametrize("part", PARTS)
def test_their_signatures_and_types_resolve(part: str) -> None:
    found = [unresolved(module, name) for module, name in public_in(part)]
    assert [one for one in found if one is not None] == []
