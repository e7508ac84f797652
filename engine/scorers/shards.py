"""Shards of a log's sessions, divided fairly among the processes that work on them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, final
from zlib import crc32

import anyio

from ..errors import LogError, LogUnavailable
from ..log.leases import LeaseHolder
from ..logger import get_logger

__all__ = ("SHARDS", "ShardKeeper", "shard_of")

SHARDS: Final = 32
"""How many shards there are: so many processes at most have work. It is part of checkpoints' names."""


def shard_of(session: str) -> int:
    """The shard of a session."""
    return crc32(session.encode("utf-8", "surrogatepass")) % SHARDS


@final
class ShardKeeper:
    """Holds this process's share of the shards, by leases: all of them if it is the only process.

    A process that joins is given some. If a process dies, its shards are divided once its leases
    have expired.

    Args:
        holder: of this process's leases.
        work: the work done on the shards; only processes with the same work divide them.
        on_taken: called with shards that this process holds from now on.
        on_left: called with a shard before it is given back.
        on_lost: called with a shard that another process has taken.

    Attributes:
        holder: as given.
        mine: the shards that this process holds.
        processes: how many processes were at work at the last look, including this one.
    """

    def __init__(
        self,
        holder: LeaseHolder,
        work: str,
        *,
        on_taken: Callable[[Sequence[int]], Awaitable[None]],
        on_left: Callable[[int], Awaitable[None]],
        on_lost: Callable[[int], None],
    ) -> None:
        self.holder = holder
        self._present = f"score/{work}/process/{holder.name}"
        self._presence = f"score/{work}/process/"
        self._shard = f"score/{work}/shard/"
        self._on_taken = on_taken
        self._on_left = on_left
        self._on_lost = on_lost
        self.mine: set[int] = set()
        self.processes = 1

    async def keep(self, every: float) -> None:
        """Takes and gives back shards every ``every`` seconds, until it is cancelled.

        Raises:
            LogError: the log cannot be used any more.
        """
        while True:
            try:
                await self.share()
            except LogUnavailable as error:
                get_logger("leases").warning("shards were not divided", error=str(error))
            await anyio.sleep(every)

    async def share(self) -> None:
        """Counts the active processes once, and takes or gives back shards for a fair share."""
        await self.holder.claim(self._present, lambda: None)
        others = await self.holder.others()
        self.processes = 1 + sum(name.startswith(self._presence) for name in others)
        fair = -(-SHARDS // self.processes)
        left: list[int] = []
        try:
            for shard in sorted(self.mine)[fair:]:
                await self._on_left(shard)
                self.mine.discard(shard)
                left.append(shard)
        finally:
            await self.holder.release(*map(self._lease, left))
        free = [shard for shard in range(SHARDS) if self._lease(shard) not in others]
        await self._take([shard for shard in free if shard not in self.mine], fair)

    async def _take(self, free: Sequence[int], fair: int) -> None:
        """Takes free shards in one go, until this process has its fair share."""
        taken: list[int] = []
        try:
            for shard in free:
                if len(self.mine) >= fair:
                    break
                if await self.holder.claim(self._lease(shard), partial(self._lose, shard)):
                    self.mine.add(shard)
                    taken.append(shard)
            if taken:
                await self._on_taken(taken)
        except LogError:  # their outstanding work is unknown: they are taken again
            for shard in taken:
                self._lose(shard)
            await self.holder.release(*map(self._lease, taken))
            raise
        for shard in taken:
            if shard not in self.mine:  # another process has it since
                self._on_lost(shard)

    def _lease(self, shard: int) -> str:
        return f"{self._shard}{shard}"

    def _lose(self, shard: int) -> None:
        self.mine.discard(shard)
        self._on_lost(shard)
