"""Divides a log's sessions among the processes that score them: one process scores a session, by a lease."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final, TypeAlias, final

from ..log.leases import LeaseHolder

__all__ = ("Division", "IsNear")

IsNear: TypeAlias = Callable[[str, int], bool]
"""Whether this process wrote a session last, up to a trace version."""

_RECORDS: Final = "records"
_READS: Final = "reads"


@final
class Division:
    """Says which sessions this process may score, and holds the leases on them.

    The process that wrote a session last comes first. If no process that records wants the session, the
    process with the highest digest of session and process takes it, so that all agree without asking.

    Args:
        holder: the holder of this process's leases.
        work: the work done on the sessions; only processes with the same work divide them.
        is_near: whether this process wrote a session last; None if it does not record.
        grace: seconds for which other processes leave a session to the one that wrote it last.
        on_lost: called with a session that another process has taken.

    Attributes:
        holder: as given.
        mine: the sessions that this process scores.
        processes: how many processes were at work at the last look, including this one.
    """

    def __init__(
        self,
        holder: LeaseHolder,
        work: str,
        *,
        is_near: IsNear | None,
        grace: float,
        on_lost: Callable[[str], None],
    ) -> None:
        self.holder = holder
        self._presence = f"score/{work}/process/"
        self._present = f"{self._presence}{_READS if is_near is None else _RECORDS}/{holder.name}"
        self._session = f"score/{work}/session/"
        self._is_near = is_near
        self._grace = grace
        self._on_lost = on_lost
        self.mine: set[str] = set()
        self._leaving: set[str] = set()
        self._others: tuple[str, ...] = ()
        self._recorded_elsewhere = False
        self.processes = 1

    async def look(self) -> None:
        """Counts the active processes, and shows that this one is.

        Raises:
            LogError: the leases cannot be read.
        """
        await self.holder.claim(self._present, lambda: None)
        others = await self.holder.others(self._presence)
        found = [name[len(self._presence) :].partition("/") for name in others]
        self._others = tuple(process for _, _, process in found)
        self._recorded_elsewhere = any(what == _RECORDS for what, _, _ in found)
        self.processes = 1 + len(found)

    def is_near(self, session: str, version: int) -> bool:
        """Whether this process wrote a session last, up to a trace version."""
        return self._is_near is not None and self._is_near(session, version)

    def lends(self, session: str, version: int) -> bool:
        """Whether a session that is claimed now may go to another process that writes it later.

        If another process records, and did not claim it, whoever writes the session does not score.
        """
        return self.is_near(session, version) or not self._recorded_elsewhere

    def has_left(self, session: str, version: int) -> bool:
        """Whether another process seems to have written a session last, and may score it."""
        return self._recorded_elsewhere and not self.is_near(session, version)

    def wait(self, session: str, version: int) -> float | None:
        """Seconds to wait before this process claims a session; None to leave it to others."""
        if self.is_near(session, version):
            return 0.0
        own = _weight(session, self.holder.name)
        if any(_weight(session, other) > own for other in self._others):
            return None
        return self._grace if self._recorded_elsewhere else 0.0

    async def claim(self, sessions: Sequence[str]) -> frozenset[str]:
        """Claims sessions; returns those that this process scores from now on.

        Raises:
            LogError: as ``Leases.claim``.
        """
        size = len(self._session)
        taken = await self.holder.claim_all(
            [self._session + session for session in sessions], lambda name: self._lose(name[size:])
        )
        won = frozenset(name[size:] for name in taken)
        self.mine |= won
        return won

    def leave(self, session: str) -> None:
        """Scores a session no more; ``release`` then gives its lease back."""
        if session in self.mine:
            self.mine.discard(session)
            self._leaving.add(session)

    async def release(self) -> None:
        """Gives back the leases on the sessions that were left."""
        leaving, self._leaving = self._leaving, set()
        await self.holder.release(*(self._session + session for session in leaving))

    def _lose(self, session: str) -> None:
        self._leaving.discard(session)
        if session in self.mine:
            self.mine.discard(session)
            self._on_lost(session)


def _weight(session: str, process: str) -> bytes:
    """The claim of a process to a session: evenly spread, and the same in every process."""
    return blake2b(f"{session}\n{process}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
