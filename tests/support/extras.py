"""Programs as they run where only some extras are installed: what the others bring cannot be imported."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ("hide_extras",)


def hide_extras(root: Path, installed: Collection[str], where: Path) -> Path:
    """Makes a directory for ``PYTHONPATH`` in which programs miss what no extra here asks for.

    Args:
        root: the checkout.
        installed: the extras that are there.
        where: a directory that is there, to put it into.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    there = _names(project["dependencies"])
    missing: set[str] = set()
    for extra, requirements in extras.items():
        if extra in installed:
            there |= _names(requirements)
        elif extra not in ("all", "dev", "docs"):
            missing |= _names(requirements)
    modules = [
        module
        for module, distributions in packages_distributions().items()
        if {canonicalize_name(name) for name in distributions} & (missing - there)
    ]
    assert modules, "every extra is there"
    hidden = where / "hidden"
    hidden.mkdir(exist_ok=True)
    text = f"import sys\nsys.modules.update(dict.fromkeys({sorted(modules)!r}))\n"
    (hidden / "sitecustomize.py").write_text(text, encoding="utf-8")
    return hidden


def _names(requirements: Collection[str]) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}
