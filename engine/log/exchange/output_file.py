"""Writes output files: whole or not at all, and never over a log or over what is being read."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from ...errors import InvalidInput
from ..sqlite.tables import APPLICATION

__all__ = ("OutputRules", "check_output", "is_log", "log_files", "output_file", "sync_directory")

_Path: TypeAlias = str | os.PathLike[str]

_BESIDE: Final = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps next to a database file."""

_TABLES: Final = {"events", "sessions", "streams"}


class OutputRules(NamedTuple):
    """Which files an output file may replace; never a log.

    Attributes:
        inputs: files that are being read, which are never replaced either.
        replace: whether another file of its name may be replaced.
    """

    inputs: Sequence[Path] = ()
    replace: bool = True


_REPLACING: Final = OutputRules()


def log_files(path: Path) -> tuple[Path, ...]:
    """The file of a SQLite log, and those that SQLite keeps next to it."""
    return (path, *(Path(f"{path}{end}") for end in _BESIDE))


def check_output(path: _Path, rules: OutputRules = _REPLACING) -> None:
    """Checks that a file may be written, before there is anything to write.

    Raises:
        InvalidInput: it is a directory, a log or part of one, is being read, or exists and may not
            be replaced; or its directory does not exist, or takes no file.
    """
    with _errors_of(path):
        target = Path(os.path.realpath(path))
        _check(Path(path), target, rules)
        os.stat(target.parent)
        device = target.exists() and not target.is_file()
        if not device and not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, f"no file can be made in {target.parent}")


@contextmanager
def output_file(path: _Path, rules: OutputRules = _REPLACING) -> Iterator[BinaryIO]:
    """A file to write, whole or not at all.

    The data goes to a temporary file in the same directory. When the block ends, that file is
    synced and takes the name of the output file. If the block raises, no trace is left. A symbolic
    link's target is replaced. A device or a pipe is written directly.

    Args:
        path: the path of the file.
        rules: which files it may replace.

    Raises:
        InvalidInput: as ``check_output``, or it cannot be written.
    """
    with _errors_of(path):
        target = Path(os.path.realpath(path))
        _check(Path(path), target, rules)
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        name = target.with_name(f".{target.name[:100]}.{token_hex(8)}")
        # The system takes from a new file what this process takes from all: to ask it what, the mask
        # would have to be changed, for other threads too.
        at_first = 0o666 if mode is None else 0o600
        try:
            with open(
                name, "xb", opener=lambda path, flags: os.open(path, flags, at_first)
            ) as file:
                yield file
                file.flush()
                if mode is not None:
                    os.chmod(name, mode)
                os.fsync(file.fileno())
            _check(Path(path), target, rules)  # it may have appeared meanwhile
            if rules.replace:
                os.replace(name, target)
            else:
                _name(name, target)
            sync_directory(target.parent)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)


def is_log(path: Path) -> bool:
    """Whether a file is a Duolog log in SQLite, or a file that SQLite keeps next to one."""
    for end in _BESIDE:
        name = path.name.removesuffix(end)
        if name not in ("", path.name) and is_log(path.with_name(name)):
            return True
    try:
        if not stat.S_ISREG(path.stat().st_mode) or not path.stat().st_size:
            return False
    except OSError:
        return False
    # Opened by SQLite alone: closing it otherwise would let go of all locks of this process on it.
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application == APPLICATION:
            return True
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {name for (name,) in rows} >= _TABLES
    except sqlite3.DatabaseError as error:
        # A damaged one may be mended yet.
        return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CORRUPT
    finally:
        connection.close()


def _check(path: Path, target: Path, rules: OutputRules) -> None:
    if target.is_dir():
        raise InvalidInput(f"cannot write {path}: it is a directory")
    for read in rules.inputs:
        if target == Path(os.path.realpath(read)) or _same_file(target, read):
            raise InvalidInput(f"{path} is what this command reads: give the output another name")
    if is_log(target):
        raise InvalidInput(
            f"{path} is a Duolog log, or part of one, and is not overwritten: give the output "
            "another name"
        )
    if not rules.replace and target.is_file():
        raise InvalidInput(f"{path} exists: give the output another name, or replace it by --force")


def _same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there
        return False


def _name(temporary: Path, target: Path) -> None:
    """Gives a file its name if the name is free; in one step if the file system has hard links."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise InvalidInput(
            f"{target} has appeared meanwhile: give the output another name, or replace it by --force"
        ) from None
    except OSError:  # a file system without links
        os.replace(temporary, target)


def sync_directory(directory: Path) -> None:
    """Makes the names in a directory durable, if its file system can."""
    if sys.platform == "win32":  # which opens no directories
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # not all file systems sync directories; the contents are on the disk
        return
    finally:
        os.close(handle)


@contextmanager
def _errors_of(path: _Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise InvalidInput(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error
