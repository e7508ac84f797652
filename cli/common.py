"""What the commands share: naming a log or a session, running a coroutine, writing results."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from ..engine.errors import InvalidInput

if TYPE_CHECKING:  # a command's --help loads this module, and neither msgspec nor a store
    from ..engine.log.contract import EventLog, SessionSummary, Store

__all__ = (
    "choices",
    "collect_rarely",
    "example",
    "existing_log",
    "find_session",
    "log_at",
    "name_of",
    "numbers",
    "one_named",
    "one_of",
    "print_json",
    "print_text",
    "run",
    "say",
    "written",
)

_T = TypeVar("_T")


def example(*commands: str, note: str = "") -> str:
    """The end of a command's help: example commands, each on a line of its own, and a note."""
    lines = ["\b", "Example:" if len(commands) == 1 else "Examples:"]
    text = "\n".join([*lines, *(f"  {command}" for command in commands)])
    return f"{text}\n\n{note}" if note else text


def log_at(where: str, *, create: bool) -> Store:
    """The log at a path or URL.

    Raises:
        InvalidInput: a URL that names no store, or a directory.
    """
    from ..engine.log.open import open_log

    if not where:
        raise InvalidInput("the name of the log is empty")
    if "://" not in where and Path(where).is_dir():
        raise InvalidInput(f"{where} is a directory; name a file for the log")
    return open_log(where, create=create)


def existing_log(where: str) -> Store:
    """The log at a path or URL, which has to be there.

    Raises:
        InvalidInput: a URL that names no store, a directory, or a log in memory.
    """
    if where.startswith("memory:"):
        raise InvalidInput(f"{where} lives only in the program that made it; name a log in a file")
    return log_at(where, create=False)


async def find_session(log: EventLog, name: str, *, exact: bool = False) -> SessionSummary:
    """The session of this id, or, unless ``exact``, the only one whose id begins so.

    Raises:
        InvalidInput: there is none, or there are several.
    """
    from ..engine.errors import SessionNotFound

    if name:
        try:
            return await log.summary(name)
        except SessionNotFound:
            pass
    names = [summary.session async for summary in log.sessions()]
    return await log.summary(one_named(name, names, name_of(log), exact=exact))


def one_named(name: str, names: Sequence[str], where: str, *, exact: bool = False) -> str:
    """The session of this id, or, unless ``exact``, the only one whose id begins so.

    Raises:
        InvalidInput: there is none, or there are several.
    """
    if name in names:
        return name
    found = [] if exact else [other for other in names if other.startswith(name)]
    if len(found) == 1 and name:
        return found[0]
    if found:
        raise InvalidInput(
            f"{len(found)} sessions begin with {name!r}, among them {', '.join(found[:3])}: give "
            "more of the id"
        )
    raise InvalidInput(f"there is no session {name!r} in {where}{_instead(name, names)}")


def name_of(log: EventLog) -> str:
    """A log's name in messages: the path, where it is a file."""
    return log.url.removeprefix("sqlite:///")


def _instead(name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    if not names:
        return ": the log holds none"
    close = [other for other in names if name.lower() in other.lower()]
    heads = {other[: len(name)]: other for other in reversed(names[:10_000])}
    close = close or [heads[head] for head in get_close_matches(name, heads, cutoff=0.7)]
    close = close or get_close_matches(name, names[:10_000], cutoff=0.5)
    if close:
        return "; did you mean " + " or ".join(close[:3]) + "?"
    return f"; duolog sessions lists the {len(names)} that there are"


def collect_rarely() -> None:
    """Has the garbage collector look less often: a big log makes millions of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def run(main: Callable[[], Awaitable[_T]]) -> _T:
    """Runs a command's coroutine to its end."""
    import anyio

    return anyio.run(main)


def print_json(value: object) -> None:
    """Prints a value as one line of JSON in UTF-8, for programs to read."""
    import msgspec

    _print(msgspec.json.encode(value) + b"\n")


def print_text(text: str) -> None:
    """Prints a text as it is, in UTF-8, for programs to read."""
    _print(text.encode())


def _print(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def say(text: str) -> None:
    """Tells the person at the terminal something that is no result."""
    sys.stderr.write(f"{text}\n")


def choices(text: str, what: str) -> list[str]:
    """The names in a comma-separated option, each once, in order.

    Raises:
        InvalidInput: there is none.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise InvalidInput(f"{what} is empty: name at least one, separated by commas")
    return names


def one_of(text: str, what: str, known: Iterable[str]) -> list[str]:
    """The names in a comma-separated option, all of which have to be known.

    Raises:
        InvalidInput: there is none, or one that is not known.
    """
    names = choices(text, what)
    listed = list(known)
    for name in names:
        if name not in listed:
            raise InvalidInput(f"{what} knows no {name!r}; choose from {', '.join(listed)}")
    return names


def numbers(text: str, what: str) -> tuple[int, ...]:
    """The whole numbers in a comma-separated option, each at least 1, each once, in order.

    Raises:
        InvalidInput: there is none, or something else.
    """
    found = []
    for name in choices(text, what):
        if not name.isdecimal() or int(name) < 1:
            raise InvalidInput(
                f"{what} takes whole numbers from 1, separated by commas, not {name!r}"
            )
        found.append(int(name))
    return tuple(dict.fromkeys(found))


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file to write, whole or not at all: it takes the place of the old one only at the end.

    Raises:
        InvalidInput: it cannot be written.
    """
    target = path.resolve()
    try:
        if target.exists() and not target.is_file():  # a device or a pipe takes what comes
            with target.open("wb") as file:
                yield file
            return
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with open(handle, "wb") as file:
                yield file
            os.chmod(name, mode)
            os.replace(name, target)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
