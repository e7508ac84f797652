"""Links that operators share: each has a role and an expiry, and can be revoked.

A token holds a random id and is signed, so it cannot be guessed or changed. A revocation is kept in the
log as a checkpoint of that id. So it holds for every server of the log, and after a restart. The list of
links, without their tokens, is in a file next to the log, if there is one.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

import anyio
import anyio.to_thread
import msgspec

from ....engine.errors import CheckpointConflict, InvalidInput
from ....engine.log.contract import Advance, EventLog
from .identity import Access, Identity

__all__ = ("Link", "Links")

_CONSUMER: Final = "revoked-link"
_REVOKED: Final = 1
_MOST: Final = 1000  # links that are listed
_DAY: Final = 86_400.0
_LONGEST: Final = 365.0  # days
_NAME: Final = 60


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A shared link, without its token.

    Attributes:
        id: random, and part of its token.
        identity: the rights of its holder.
        name: whom it is for, or what for; may be empty.
        made: when it was made, in seconds since 1970.
        until: when it ends.
        revoked: whether it was revoked.
    """

    id: str
    identity: Identity
    name: str
    made: float
    until: float
    revoked: bool = False


_decode = msgspec.json.Decoder(Link).decode


@final
class Links:
    """Makes, lists and revokes links.

    Args:
        access: signs their tokens.
        log: keeps revocations.
        path: the file that keeps the list, readable only by its owner; None to forget it at the end.
        now: the time in seconds since 1970.
    """

    def __init__(
        self,
        access: Access,
        log: EventLog,
        path: Path | None = None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._access = access
        self._log = log
        self._path = path
        self._now = now
        self._made: dict[str, Link] = {}
        self._revoked: set[str] = set()
        self._writing = anyio.Lock()

    async def make(self, identity: Identity, days: float, name: str = "") -> tuple[Link, str]:
        """Makes a link.

        Returns:
            The link, and its token, which is kept nowhere.

        Raises:
            InvalidInput: the expiry or the name is invalid, there are too many links, or the list
                cannot be written.
        """
        if not 0 < days <= _LONGEST:
            raise InvalidInput(f"a link holds for up to {_LONGEST:.0f} days, not {days:g}")
        if len(name) > _NAME or (name and not name.isprintable()):
            raise InvalidInput(f"a name has at most {_NAME} characters, on one line")
        if len(await self._valid()) >= _MOST:
            raise InvalidInput(f"there are {_MOST:,} links already; wait until some have expired")
        now = self._now()
        link = Link(
            id=secrets.token_urlsafe(16),
            identity=identity,
            name=name,
            made=now,
            until=now + days * _DAY,
        )
        if self._path is not None:
            async with self._writing:
                await anyio.to_thread.run_sync(_add, self._path, link)
        self._made[link.id] = link
        return link, self._access.shared(identity, link.until, link.id)

    async def listed(self) -> list[Link]:
        """The links that have not expired, the latest first.

        Raises:
            InvalidInput: the file of the list cannot be read.
            LogError: the log cannot be read.
        """
        links = await self._valid()
        for link in links:
            await self.learn(link.id)
        replace = msgspec.structs.replace
        return [replace(one, revoked=one.id in self._revoked) for one in links]

    async def _valid(self) -> list[Link]:
        """The links that have not expired, the latest first, revoked or not."""
        if self._path is not None:
            for link in await anyio.to_thread.run_sync(_read, self._path):
                self._made.setdefault(link.id, link)
        now = self._now()
        found = sorted(self._made.values(), key=lambda one: one.made, reverse=True)
        return [one for one in found if one.until > now]

    async def revoke(self, ident: str) -> None:
        """Revokes a link at once, for good.

        Raises:
            InvalidInput: there is no such link.
            LogError: the log cannot be written; the link is revoked on this server only.
        """
        if ident not in self._made and ident not in {one.id for one in await self._valid()}:
            raise InvalidInput(f"no link {ident[:40]!r}")
        self._revoked.add(ident)
        advance = Advance(consumer=_CONSUMER, version=ident, expected=0, position=_REVOKED)
        try:
            await self._log.append("links", [], checkpoint=advance)
        except CheckpointConflict:  # revoked already
            return

    async def learn(self, ident: str) -> None:
        """Looks up in the log whether a link is revoked.

        It looks each time, since any server of the log can revoke it at any time.

        Raises:
            LogError: the log cannot be read.
        """
        if not ident or ident in self._revoked:
            return
        if await self._log.checkpoint(_CONSUMER, ident) == _REVOKED:
            self._revoked.add(ident)

    def is_revoked(self, ident: str) -> bool:
        """Whether a link is revoked, as far as this server knows."""
        return ident in self._revoked


def _add(path: Path, link: Link) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "ab") as file:
            file.write(msgspec.json.encode(link) + b"\n")
    except OSError as error:
        raise InvalidInput(f"cannot keep the list of links in {path}: {error.strerror}") from error


def _read(path: Path) -> list[Link]:
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
    except OSError as error:
        raise InvalidInput(f"cannot read the list of links in {path}: {error.strerror}") from error
    try:
        return [_decode(line) for line in lines]
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{path} is not a list of links: {error}; move it away") from error
