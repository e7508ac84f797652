"""Parts of a log: whole sessions that follow one another, for processes that read it together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from ..errors import NotALog
from ..records import Record

__all__ = ("Divisible", "Part", "check_count", "divided", "joined")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Whole sessions of a log, that follow one another in order of their first records.

    Attributes:
        first: key of the first of them in its store.
        last: key of the last one.
        after: a position before which they have no record.
        upto: the position up to which they are read: that of the last record of all of them.
        records: how many records they have up to there.
    """

    first: int
    last: int
    after: int
    upto: int
    records: int


@runtime_checkable
class Divisible(Protocol):
    """A log that other processes can open and read in parts."""

    async def parts(self, count: int) -> Sequence[Part]:
        """The log as of now in at most so many parts, of about as many records each.

        In order: all sessions of a part began before those of the next one.

        Raises:
            LogClosed: the log is closed.
        """
        ...

    async def scan_part(self, part: Part, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands the records of a part to a function, in order of position, as ``EventLog.scan`` does.

        Raises:
            NotALog: the sessions have not as many records as the part says.
            LogClosed: the log is closed.
        """
        ...


def divided(sessions: Sequence[tuple[int, int, int]], count: int) -> list[Part]:
    """Divides sessions into parts, each of which begins after position 0.

    Args:
        sessions: key, number of records and position of the last record of each, in order of their first
            records.
        count: how many parts there are at most.
    """
    total = sum(records for _, records, _ in sessions)
    parts: list[Part] = []
    first = before = done = 0
    for at, (key, records, _) in enumerate(sessions):
        done += records
        full = len(parts) + 1 < count and done * count >= total * (len(parts) + 1)
        if not full and at + 1 < len(sessions):
            continue
        some = sessions[first : at + 1]
        upto = max(position for _, _, position in some)
        parts.append(Part(first=some[0][0], last=key, after=0, upto=upto, records=done - before))
        first, before = at + 1, done
    return parts


def joined(parts: Sequence[Part]) -> Part:
    """Parts that follow one another, as one."""
    return Part(
        first=parts[0].first,
        last=parts[-1].last,
        after=parts[0].after,
        upto=max(part.upto for part in parts),
        records=sum(part.records for part in parts),
    )


def check_count(part: Part, found: int) -> None:
    """Checks that a part was read whole.

    Raises:
        NotALog: it has fewer records, or more.
    """
    if found != part.records:
        raise NotALog(
            f"the log is damaged: its list of sessions counts {part.records:,} records, but "
            f"{found:,} exist; run duolog verify, or restore a backup"
        )
