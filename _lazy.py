"""The names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ("lazy_names",)


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its name.
        homes: each public name, and the module that has it, relative to the package.
    """
    module = sys.modules[package]

    def get(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=module
            )
        value = getattr(import_module(home, package), name)
        setattr(module, name, value)
        return value

    def listed() -> list[str]:
        return sorted({*homes, *(name for name in vars(module) if name.startswith("__"))})

    return get, listed
