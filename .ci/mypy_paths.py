"""Lets ``mypy FILE`` work in the checkout, whatever its name: a plug-in of mypy.

The checkout is the package ``duolog``. mypy names a module by the directories above its file, and refuses
a package whose directory is called, say, ``duolog-main``. A file of the package is therefore checked under its
other path, that of the link which an editable installation makes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mypy.plugin import Plugin

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "build" / "editable" / "duolog"
APART = {".ci", "benchmarks", "build", "docs", "tests"}
"""Directories that are not part of the package; nor is what begins with a dot."""


def by_package(argument: str) -> str:
    """The path by which a file or directory is part of the package; any other argument as it is."""
    path = Path(argument).resolve()
    if argument.startswith("-") or not path.exists() or not path.is_relative_to(ROOT):
        return argument
    inside = path.relative_to(ROOT)
    top = inside.parts[0] if inside.parts else ""
    return argument if top in APART or top.startswith(".") else str(PACKAGE / inside)


def plugin(version: str) -> type[Plugin]:
    """Starts mypy again where paths in its command are to be replaced."""
    if Path(sys.argv[0]).stem in ("mypy", "__main__"):
        command = [by_package(argument) for argument in sys.argv[1:]]
        shown = [str(PACKAGE) in argument for argument in command]
        if command != sys.argv[1:] and any(shown):
            sys.exit(subprocess.call([sys.executable, "-m", "mypy", *command]))
    return Plugin
