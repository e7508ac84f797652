"""The Duolog installation: how to add an extra to it, and how to call a program that it includes."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ("install_command", "program")

_NAME = "duolog"
_PACKAGE = Path(__file__).resolve().parents[1]


def install_command(extra: str) -> str:
    """The command that adds an extra to this installation, from a checkout or a package index.

    Args:
        extra: the extra's name in ``pyproject.toml``.
    """
    pip = program("pip") or f"{shlex.quote(sys.executable)} -m pip"
    if (_PACKAGE / "pyproject.toml").is_file():  # it runs out of the checkout
        return f"{pip} install -e '{_from_here(_PACKAGE)}[{extra}]'"
    source = _source()
    return f"{pip} install '{_NAME if source is None else source}[{extra}]'"


def program(name: str) -> str | None:
    """How a shell calls a program of this Python's environment: by name, if it finds that one.

    Args:
        name: the name of the program.

    Returns:
        Its name, or its path from here; None if the environment lacks the program.
    """
    script = Path(sys.executable).with_name(name)
    if not script.is_file():
        return None
    found = shutil.which(name)
    if found is not None and Path(found).absolute() == script:
        return name
    return shlex.quote(_from_here(script))


def _source() -> str | None:
    """The checkout that was installed; None if the source is something else, or is gone."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        about = distribution(_NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    url: str = json.loads(about)["url"] if about else ""
    path = Path(unquote(urlsplit(url).path))
    if urlsplit(url).scheme == "file" and (path / "pyproject.toml").is_file():
        return _from_here(path)
    return None


def _from_here(path: Path) -> str:
    """A path that shells and pip recognise as one; relative if below the current directory."""
    here = Path.cwd()
    if not path.is_relative_to(here):
        return str(path)
    short = str(path.relative_to(here))
    return short if "/" in short or short == "." else f"./{short}"
