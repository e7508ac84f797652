"""Loads a user's object from a Python file (``file.py:Name``) or a module (``module:Name``), and
finds the plug-ins of installed packages.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from . import codec
from .errors import DuologError, InvalidInput
from .plugins import error_with_place

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ("Loaded", "LoadedFrom", "entry_points", "load", "names_code")

_SUFFIX: Final = ".py"


class LoadedFrom(msgspec.Struct, frozen=True):
    """The source of a loaded object, recorded in the log so that it can be found again.

    Attributes:
        name: ``file.py:Name`` without folders, or ``module:Name``.
        digest: the digest of the file's text.
    """

    name: str
    digest: str


class Loaded(NamedTuple):
    """A loaded object and its source."""

    value: object
    origin: LoadedFrom


def entry_points(*, group: str) -> Sequence[EntryPoint]:
    """The entry points of installed packages in a group, in no particular order.

    They are read again only after a package was installed or removed, because reading the files of
    all packages is slow.
    """
    return _entry_points(group, tuple((place, _changed(place)) for place in sys.path))


@lru_cache(maxsize=64)
def _entry_points(group: str, places: tuple[tuple[str, int | None], ...]) -> Sequence[EntryPoint]:
    from importlib import metadata  # takes as long as opening a log, which needs no plug-in

    return tuple(metadata.entry_points(group=group))


def _changed(place: str) -> int | None:
    """When a directory of packages was last changed; None if it does not exist."""
    try:
        return os.stat(place or ".").st_mtime_ns
    except OSError:
        return None


def names_code(name: str) -> bool:
    """Whether a name refers to an object in a file or module, not to an installed plug-in."""
    return ":" in name or name.endswith(_SUFFIX)


def load(name: str, *, digest: str | None = None) -> Loaded:
    """Loads ``file.py:Name`` or ``module:Name``; a module is looked for in the current directory too.

    The folder of a file can be imported from, as for a script.

    Args:
        name: the name of the file or module, and of what is in it.
        digest: that the file has to have, if any; nothing of another one is executed.

    Raises:
        InvalidInput: there is no such thing, it cannot be loaded, or the file has another digest. An
            error of the file's own says in which line it was raised.
    """
    where, _, attribute = name.rpartition(":")
    if name.endswith(_SUFFIX):
        where, attribute = name, ""
    path = Path(where) if where.endswith(_SUFFIX) else _module_file(where)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from None
    if not attribute:
        raise InvalidInput(f"say what in {where} is meant, as {where}:NAME{_has(source)}")
    found = codec.digest(source.decode("utf-8", "replace").splitlines())
    if digest is not None and digest != found:
        raise InvalidInput(f"{where} has changed since")
    try:
        module = _from_file(path, source, found) if where.endswith(_SUFFIX) else _imported(where)
    except SyntaxError as error:
        file = Path(error.filename or where).name
        text = f": {error.text.strip()}" if error.text else ""
        raise InvalidInput(f"{file}, line {error.lineno}: {error.msg}{text}") from error
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, DuologError) else f"{type(error).__name__}: "
        raise InvalidInput(f"cannot load {where}: {kind}{error_with_place(error)}") from error
    try:
        value: object = getattr(module, attribute)
    except AttributeError:
        raise InvalidInput(f"{where} has no {attribute!r}{_has(source)}") from None
    short = path.name if where.endswith(_SUFFIX) else where
    return Loaded(value, LoadedFrom(f"{short}:{attribute}", found))


def _has(source: bytes) -> str:
    names = _names(source)
    return f"; it has: {', '.join(names)}" if names else ""


def _names(source: bytes) -> list[str]:
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError):
        return []
    names: list[str] = []
    for one in statements:
        if isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(one.name)
        elif isinstance(one, ast.Assign):
            names += [target.id for target in one.targets if isinstance(target, ast.Name)]
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            names.append(one.target.id)
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def _module_file(name: str) -> Path:
    """The file of a module; finds it without importing the packages that it is in."""
    folders: list[str] | None = [os.getcwd(), *sys.path]
    origin: str | None = None
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:end]), folders) if all(parts) else None
        if spec is None:
            hint = f"; the file is named {name}.py:NAME" if Path(f"{name}.py").is_file() else ""
            raise InvalidInput(f"no module {name!r} here{hint}")
        folders, origin = spec.submodule_search_locations, spec.origin
    if origin is None or not origin.endswith(_SUFFIX):
        raise InvalidInput(f"module {name!r} is not a Python file")
    return Path(origin)


def _imported(name: str) -> ModuleType:
    _make_importable(os.getcwd())
    return import_module(name)


def _from_file(path: Path, source: bytes, digest: str) -> ModuleType:
    """The module of a file, under the file's name unless another module has that name.

    A file that was loaded before, and has not changed since, is not executed again.
    """
    path = path.resolve()
    name = path.stem
    held = sys.modules.get(name)
    if _is_of(held, path) and held.__spec__.loader_state in (None, digest):  # type: ignore[union-attr]
        return held  # type: ignore[return-value]
    if (held is not None and not _is_of(held, path)) or name in sys.stdlib_module_names:
        name = f"{name}_{codec.digest(str(path))[:8]}"
        held = sys.modules.get(name)
        if held is not None and held.__spec__ and held.__spec__.loader_state == digest:
            return held
    spec = spec_from_file_location(name, path)
    if spec is None:
        raise InvalidInput(f"cannot load {path}")
    spec.loader_state = digest
    module = module_from_spec(spec)
    code = compile(source, str(path), "exec", dont_inherit=True)  # this never uses a stale cache
    _make_importable(str(path.parent))
    sys.modules[name] = module  # where its own classes look for their names
    try:
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_of(module: ModuleType | None, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and getattr(module, "__spec__", None) is not None and Path(file) == path


def _make_importable(folder: str) -> None:
    if folder not in sys.path:
        sys.path.append(folder)  # at the end, so that nothing in it hides a library
