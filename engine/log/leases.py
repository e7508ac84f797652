"""Leases divide work among the processes that share one log; the interface that stores implement.

A lease keeps other processes off a piece of work for some seconds, by the store's clock. Its holder
renews it as long as it lives. A lease saves work and guarantees nothing: a holder that was wrongly
taken for dead may still append. Its append then fails if another process was faster, because every
append of a session states the version that it expects.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, final, runtime_checkable

import anyio
import msgspec

from ..errors import InvalidInput, LogClosed, LogError, LogUnavailable
from ..logger import get_logger

__all__ = ("LeaseHolder", "LeaseTerms", "Leases", "Leasing")

_GOODBYE: Final = 2.0  # seconds to give leases back in, at the end


class Leases(Protocol):
    """Leases on names, kept next to a log and never in it."""

    async def claim(self, names: Sequence[str], holder: str, seconds: float) -> frozenset[str]:
        """Claims those of these names that are free, and renews those that this holder has.

        A name is free if no holder has claimed it, or its holder has released it or has not renewed
        it for the seconds of its claim. Clocks of callers do not matter. Idempotent.

        Args:
            names: what to claim.
            holder: name of the claimant; different for each process.
            seconds: how long the claim lasts unless it is renewed.

        Returns:
            Those that the holder has now.

        Raises:
            LogUnavailable: the store cannot be reached, or cannot write.
            LogClosed: the log is closed.
        """
        ...

    async def release(self, names: Sequence[str], holder: str) -> None:
        """Gives back what the holder has of these names. Raises as ``claim``."""
        ...

    async def holders(self, prefix: str = "") -> Mapping[str, str]:
        """The holder of each name, without expired leases. Raises as ``claim``.

        Args:
            prefix: only names that begin with it.
        """
        ...


@runtime_checkable
class Leasing(Protocol):
    """A log that several processes may share, and whose work they may divide."""

    def leases(self) -> Leases:
        """The leases of this log. Raises LogClosed, and NewerLog if a newer Duolog took it over."""
        ...


@final
class LeaseTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How leases are kept, in seconds.

    Attributes:
        lasts: until the work of a process that died is free for others.
        renewed: between two renewals.
        looked_at: between two looks at what others hold.
        grace: for which work is left to the process that is nearest to it.
    """

    lasts: float = 30.0
    renewed: float = 10.0
    looked_at: float = 1.0
    grace: float = 2.0


@final
class LeaseHolder:
    """The leases of this process: renews them while it lives, and notices if one was lost.

    Args:
        leases: the leases of the log.
        terms: how they are kept.

    Attributes:
        name: the holder's name: this machine, this process, and a random part.

    Raises:
        InvalidInput: terms that no lease can have.
    """

    def __init__(self, leases: Leases, terms: LeaseTerms) -> None:
        if min(terms.renewed, terms.looked_at) <= 0 or terms.lasts < 0:
            raise InvalidInput(f"leases need times above 0, not {terms}")
        self._leases = leases
        self._terms = terms
        self._held: dict[str, Callable[[], object]] = {}
        self._unsure: set[str] = set()  # claimed or given back in calls that have not returned
        self._leaving: set[str] = set()  # those of them that are still to be released
        self._renewing = anyio.Lock()
        self.name = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"

    async def keep(self) -> None:
        """Renews the held leases until it is cancelled; then releases all of them."""
        try:
            while True:
                await anyio.sleep(self._terms.renewed)
                await self._renew()
        finally:
            await self._give_back()

    async def claim(self, name: str, on_lost: Callable[[], object]) -> bool:
        """Takes a lease, if it is free, here as elsewhere; whether it was.

        Args:
            name: of what.
            on_lost: called once if another process gets it later, as it was not renewed in time.

        Raises:
            LogError: as ``Leases.claim``.
        """
        return name in await self.claim_all([name], lambda _: on_lost())

    async def claim_all(
        self, names: Sequence[str], on_lost: Callable[[str], object]
    ) -> frozenset[str]:
        """Takes those of some leases that are free, here as elsewhere, in one call to the store.

        Args:
            names: of what.
            on_lost: called once with a lease that another process gets later.

        Raises:
            LogError: as ``Leases.claim``.
        """
        asked = [name for name in names if name not in self._held and name not in self._unsure]
        if not asked:
            return frozenset()
        self._unsure.update(asked)
        try:
            taken = await self._leases.claim(asked, self.name, self._terms.lasts)
        except LogError:
            # Those that were taken all the same run out by themselves, or are claimed again here.
            self._unsure.difference_update(asked)
            raise
        self._unsure.difference_update(asked)
        for name in taken:
            self._held[name] = partial(on_lost, name)
        return taken

    async def release(self, *names: str) -> None:
        """Releases those of these leases that are still held; if that fails, they expire.

        One call to the store releases the leases of several tasks.
        """
        held = [name for name in names if self._held.pop(name, None) is not None]
        self._unsure.update(held)
        self._leaving.update(held)
        if held:
            async with self._renewing:  # else a renewal on its way would take them again
                await self._release_all()

    async def _release_all(self) -> None:
        """Releases all pending leases, also those of tasks that wait to release them."""
        leaving, self._leaving = self._leaving, set()
        if not leaving:
            return
        try:
            await self._leases.release(sorted(leaving), self.name)
        except LogError as error:
            self._warn("leases were not given back, and run out", error)
        except BaseException:
            self._leaving |= leaving  # for the other tasks, which were not cancelled
            raise
        self._unsure -= leaving

    async def others(self, prefix: str = "") -> dict[str, str]:
        """The leases of other processes: holder by name. Raises as ``Leases.holders``."""
        held = await self._leases.holders(prefix)
        return {name: holder for name, holder in held.items() if holder != self.name}

    async def _renew(self) -> None:
        async with self._renewing:
            names = sorted(self._held)
            try:
                kept = await self._leases.claim(names, self.name, self._terms.lasts)
            except LogUnavailable as error:
                self._warn("leases were not renewed; trying again", error)
                return
        for name in names:
            if name not in kept and (lost := self._held.pop(name, None)) is not None:
                get_logger("leases").warning("a lease was lost", name=name, holder=self.name)
                lost()

    async def _give_back(self) -> None:
        names = sorted({*self._held, *self._unsure})
        self._held.clear()
        with anyio.move_on_after(_GOODBYE, shield=True):
            try:
                if names:
                    await self._leases.release(names, self.name)
            except LogClosed:
                pass  # they run out
            except LogError as error:
                self._warn("leases were not given back, and run out", error)

    def _warn(self, what: str, error: LogError) -> None:
        get_logger("leases").warning(what, holder=self.name, error=str(error))
