"""Derived rows: cached results of folds over sessions. All stores share these checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final
from zlib import crc32

import msgspec

from ..errors import InvalidInput, LogError
from ..logger import get_logger
from .contract import Derived
from .summary import FORGOTTEN, SessionState

__all__ = ("NUMBERS", "DerivedRows", "Unkept", "check_rows", "derived_checksum", "derived_problem")

NUMBERS: Final = 8
"""How many numbers a row may have."""


def check_rows(rows: Sequence[Derived]) -> None:
    """Checks that stores can keep rows.

    Raises:
        InvalidInput: they cannot; says which row.
    """
    if len({(row.session, row.kind) for row in rows}) < len(rows):
        raise InvalidInput("derived rows are kept one for each session and kind, not two at once")
    for row in rows:
        numbers, whole = row.numbers, range(1 << 63)
        if not row.kind or row.version not in whole or row.position not in whole:
            raise InvalidInput(
                "a derived row needs a kind, and a version and a position from 0, not "
                f"{row.kind!r}, {row.version!r} and {row.position!r}"
            )
        if len(numbers) > NUMBERS or not all(n is None or math.isfinite(n) for n in numbers):
            raise InvalidInput(
                f"a derived row has at most {NUMBERS} numbers, each of them finite or None, not "
                f"{numbers!r} ({row.kind} of session {row.session!r})"
            )


def derived_checksum(row: Derived) -> int:
    """The checksum of a row: a row that was damaged is not given to a fold, which would believe it."""
    numbers = [None if number is None else float(number) for number in row.numbers]
    about = (row.session, row.kind, row.version, row.position, numbers)
    return crc32(row.payload, crc32(msgspec.json.encode(about)))


def derived_problem(row: Derived, crc: int, state: str | None, position: int | None) -> str:
    """The problem with a row that a store keeps; empty if there is none.

    Args:
        row: the row.
        crc: the checksum that is kept with it.
        state: the state of its session; None if the log has no such session.
        position: the position of the session's last record.
    """
    name = f"the derived row {row.kind!r}"
    if state is None or position is None:
        return f"{name} is of a session that the log does not have"
    if state == FORGOTTEN:
        return f"{name} is of a session that was forgotten"
    if crc != derived_checksum(row):
        return f"{name} is not what was written"
    if row.position > position:
        return f"{name} is ahead of its session: {row.position} is after {position}"
    return ""


@final
class DerivedRows:
    """Derived rows in memory, for a store that keeps the log's sessions there.

    Args:
        sessions: the log's sessions by name, in order of their first records; not copied.
    """

    def __init__(self, sessions: Mapping[str, SessionState]) -> None:
        self._sessions = sessions
        self._rows: dict[str, dict[str, Derived]] = {}

    def keep(self, rows: Sequence[Derived]) -> int:
        """Keeps rows; see ``EventLog.keep_derived``."""
        check_rows(rows)
        kept = 0
        for row in rows:
            state = self._sessions.get(row.session)
            if state is None or state.state == FORGOTTEN or row.position > state.position:
                continue
            of_session = self._rows.setdefault(row.session, {})
            old = of_session.get(row.kind)
            if old is None or old.version != row.version or old.position <= row.position:
                of_session[row.kind] = row
                kept += 1
        return kept

    def read(self, kind: str, version: int, sessions: Sequence[str] | None) -> Iterator[Derived]:
        """The rows of one kind and version; see ``EventLog.derived``."""
        wanted = None if sessions is None else frozenset(sessions)
        for session in tuple(self._sessions):
            row = self._rows.get(session, {}).get(kind)
            if row is not None and row.version == version and (wanted is None or session in wanted):
                yield row

    def forget(self, session: str) -> None:
        """Drops the rows of one session."""
        self._rows.pop(session, None)

    def drop(self) -> None:
        """Drops all rows."""
        self._rows.clear()


@final
class Unkept:
    """Says in the program's own log, once, that derived rows cannot be kept.

    Args:
        where: the log.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._said = False

    def say(self, error: LogError) -> None:
        """Says why they cannot."""
        if not self._said:
            self._said = True
            get_logger("log").info(
                "what is computed of sessions cannot be kept, and is computed again each time",
                log=self._where,
                error=str(error),
            )
