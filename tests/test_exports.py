"""The interface as it can be seen: ``__all__`` of each module, and the names at the top."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import duolog
import pytest

FRAMEWORKS = {"duolog.train.verifiers": "verifiers"}
"""Modules for a framework that tests do not install; ``make adapters`` runs them."""

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(duolog.__path__, "duolog.")
    if not any(part.startswith("_") for part in found.name.split("."))
    and (found.name not in FRAMEWORKS or find_spec(FRAMEWORKS[found.name]) is not None)
)

ON_LITELLM = ("duolog.examples.litellm_loop", "duolog.interop.litellm.hooks")
"""Modules that load LiteLLM when they are imported, which takes seconds."""

PACKAGES = sorted({".".join(name.split(".")[:2]) for name in MODULES})
"""The modules and packages right below the root. A test for each module would cost more than what it looks at."""


def below(package: str) -> list[str]:
    inside = [name for name in MODULES if f"{name}.".startswith(f"{package}.")]
    return [name for name in inside if name not in ON_LITELLM]


def problems(name: str) -> list[str]:
    """The mistakes in the names that a module offers, and in its description of itself."""
    module = import_module(name)
    names = module.__all__
    found = [f"{name} has no {one}" for one in names if not hasattr(module, one)]
    if not isinstance(names, tuple):
        found.append(f"{name}: __all__ is no tuple")
    if len(set(names)) != len(names):
        found.append(f"{name}: __all__ has a name twice")
    if not (module.__doc__ or "").strip():
        found.append(f"{name} does not say what it is")
    return found


def test_the_root_offers_what_is_there() -> None:
    assert problems("duolog") == []


@pytest.mark.parametrize("package", PACKAGES)
def test_each_module_offers_what_is_there_and_says_what_it_is(package: str) -> None:
    assert [one for name in below(package) for one in problems(name)] == []


@pytest.mark.usefixtures("litellm_at_work")  # keeps what loads LiteLLM in one process
def test_so_do_those_on_litellm() -> None:
    assert {*ON_LITELLM} <= {*MODULES}
    assert [one for name in ON_LITELLM for one in problems(name)] == []


def test_no_module_is_left_out() -> None:
    looked_at = {name for package in PACKAGES for name in below(package)}
    assert looked_at | {*ON_LITELLM} == {*MODULES}


def test_what_is_wrong_is_found() -> None:
    odd = ModuleType("odd")
    odd.__dict__["__all__"] = ["here", "here", "gone"]
    odd.__dict__["here"] = 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "odd", odd)
        assert problems("odd") == [
            "odd has no gone",
            "odd: __all__ is no tuple",
            "odd: __all__ has a name twice",
            "odd does not say what it is",
        ]


def test_modules_are_found() -> None:
    assert {"duolog.cli.app", "duolog.engine.events", "duolog.scoring"} <= set(MODULES)


LAZY = ("duolog", "duolog.testing")
"""The packages whose names are imported when they are first used."""


def declared(name: str) -> dict[str, tuple[str, str]]:
    """What static tools see of a package: each name, the module that has it, and its name there."""
    package = import_module(name)
    tree = ast.parse(inspect.getsource(package))
    [block] = [node for node in tree.body if isinstance(node, ast.If) and not node.orelse][:1]
    return {
        alias.asname or alias.name: (f"{name}.{node.module}", alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("package", LAZY)
def test_static_tools_see_what_runs(package: str) -> None:
    module = import_module(package)
    names = declared(package)
    assert {n: home for n, (home, _) in names.items()} == {
        n: f"{package}{home}" for n, home in module._HOMES.items()
    }
    assert set(module.__all__) == {*names, *{"__version__"}.intersection(module.__all__)}
    for name, (home, name_there) in names.items():
        assert name == name_there
        assert getattr(module, name) is getattr(import_module(home), name)


@pytest.mark.parametrize("package", LAZY)
def test_the_names_that_are_listed_are_those_that_are_offered(package: str) -> None:
    module = import_module(package)
    assert {n for n in dir(module) if not n.startswith("__")} == {*module.__all__} - {"__version__"}
    assert set(module.__all__) <= set(dir(module))


def test_the_most_used_names_are_in_the_order_of_their_groups() -> None:
    assert list(duolog.__all__) == ["__version__", *duolog._HOMES]


def test_a_function_is_named_as_it_is_reached() -> None:
    for name in duolog.__all__:
        value = getattr(duolog, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__name__ == value.__qualname__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'duolog' has no attribute 'Nonsense'"):
        _ = getattr(duolog, "Nonsense")  # noqa: B009 (a type checker refuses duolog.Nonsense)
    with pytest.raises(AttributeError) as caught:
        _ = getattr(duolog, "Sesion")  # noqa: B009
    assert (caught.value.name, caught.value.obj) == ("Sesion", duolog)  # so that Python says which
