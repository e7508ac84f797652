"""Finds logs, sessions and points in them by the names that are given on the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.errors import InvalidInput

if TYPE_CHECKING:  # a command's --help loads this module, and neither msgspec nor a store
    from ..engine.log.contract import EventLog, SessionSummary, Store
    from ..engine.records import Redact
    from ..scoring.replay import Until

__all__ = (
    "existing_log",
    "find_session",
    "log_at",
    "name_of",
    "new_log",
    "one_named",
    "parse_until",
)


def log_at(where: str, *, create: bool, redact: Redact | None = None) -> Store:
    """The log at a path or URL.

    Args:
        where: the path or URL.
        create: create it if it is not there.
        redact: removes secrets from each draft before it is written; None for nothing.

    Raises:
        InvalidInput: a URL that names no store, or a directory.
    """
    from ..engine.log.open import open_log

    if not where:
        raise InvalidInput("the name of the log is empty")
    if "://" not in where and Path(where).is_dir():
        raise InvalidInput(f"{where} is a directory; name a file for the log")
    return open_log(where, create=create, redact=redact)


@asynccontextmanager
async def new_log(where: str) -> AsyncIterator[Store]:
    """The log at a path or URL, open; one that was not there before is gone again if the block fails
    before anything is in it.

    Raises:
        InvalidInput: as ``log_at``.
        LogUnavailable: it cannot be opened.
    """
    files = _missing_files(where)
    empty = False
    try:
        async with log_at(where, create=True) as log:
            try:
                yield log
            except BaseException:
                empty = not log.statistics().position
                raise
    finally:
        if empty:
            _remove(files)


def _missing_files(where: str) -> Sequence[Path]:
    """The files that a new log would create; empty if its path exists or it is not in a file."""
    from ..engine.log.exchange.output_file import log_files
    from ..engine.log.sqlite.file import parse

    path = parse(where).path if "://" not in where or where.startswith("sqlite:") else None
    return () if path is None or path.exists() else log_files(path)


def _remove(files: Sequence[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def existing_log(where: str) -> Store:
    """The log at a path or URL, which has to exist.

    Raises:
        InvalidInput: a URL that names no store, a directory, or a log in memory.
    """
    if where.startswith("memory:"):
        raise InvalidInput(f"{where} exists only in the program that made it; name a log in a file")
    return log_at(where, create=False)


async def find_session(log: EventLog, name: str, *, exact: bool = False) -> SessionSummary:
    """The session with this id, or, unless ``exact``, the only one whose id begins with it.

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
    """The id out of ``names`` that is ``name``, or, unless ``exact``, the only one beginning with it.

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
            f"{name!r} matches {len(found):,} sessions, such as {', '.join(found[:3])}; give more of "
            "the id"
        )
    raise InvalidInput(f"no session {name!r} in {where}{_suggestion(name, names)}")


def name_of(log: EventLog) -> str:
    """The name of a log in messages: its path if it is a file, else its URL."""
    return log.url.removeprefix("sqlite:///")


def _suggestion(name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    from ..engine.text import one_of

    if not names:
        return ": the log holds none"
    close = [other for other in names if name.lower() in other.lower()]
    heads = {other[: len(name)]: other for other in reversed(names[:10_000])}
    close = close or [heads[head] for head in get_close_matches(name, heads, cutoff=0.7)]
    close = close or get_close_matches(name, names[:10_000], cutoff=0.5)
    if close:
        return f"; did you mean {one_of(close[:3])}?"
    return f"; duolog sessions lists all {len(names):,}"


def parse_until(text: str) -> Until:
    """The point that a text denotes.

    ``round 3``, ``r3`` or ``3``; ``version 57`` or ``v57``; session time since the opening as ``90s``,
    ``1:30`` or ``1:02:03``; a local date and time such as ``2026-03-01T14:30``.

    Raises:
        InvalidInput: it denotes none.
    """
    import re
    from datetime import datetime

    from ..scoring.replay import Until

    asked = text.strip().lower()
    if found := re.fullmatch(r"(?:r|round[ :=]?)?\s*(\d+)", asked):
        return Until(round=int(found[1]))
    if found := re.fullmatch(r"(?:v|version[ :=]?)\s*(\d+)", asked):
        return Until(version=int(found[1]))
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*s", asked):
        return Until(seconds=float(found[1]))
    if found := re.fullmatch(r"(?:(\d+):)?(\d+):(\d{2}(?:\.\d+)?)", asked):
        hours, minutes, seconds = found[1] or 0, found[2], found[3]
        return Until(seconds=3600 * int(hours) + 60 * int(minutes) + float(seconds))
    try:
        return Until(time=datetime.fromisoformat(text.strip()).timestamp())
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(
            f"--until {text!r} is not a point: give a round (r3), a version (v57), session time "
            "(90s, 1:30) or a date and time (2026-03-01T14:30)"
        ) from None
