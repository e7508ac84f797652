"""Links that operators share: each has a role and an expiry, and can be revoked.

A token holds a random id and is signed, so it cannot be guessed or changed. A revocation is kept in the
log as a checkpoint of that id. So it holds for every server of the log, and after a restart. The list of
links is this server's own.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Final, Literal, final

import msgspec

from ....engine.errors import CheckpointConflict, InvalidInput
from ....engine.log.contract import Advance, EventLog
from .identity import Access, Identity

__all__ = ("Link", "Links")

_CONSUMER: Final = "revoked-link"
_REVOKED: Final = 1
_MOST: Final = 1000  # links that a server lists
_DAY: Final = 86_400.0
_LONGEST: Final = 365.0  # days
_NAME: Final = 60


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A shared link, without its token.

    Attributes:
        id: random, and part of its token.
        role: the rights of its holder.
        name: whom it is for, or what for; may be empty.
        made: when it was made, in seconds since 1970.
        until: when it ends.
        revoked: whether it was revoked.
    """

    id: str
    role: Literal["viewer", "operator"]
    name: str
    made: float
    until: float
    revoked: bool = False


@final
class Links:
    """Makes, lists and revokes links.

    Args:
        access: signs their tokens.
        log: keeps revocations.
        now: the time in seconds since 1970.
    """

    def __init__(
        self, access: Access, log: EventLog, *, now: Callable[[], float] = time.time
    ) -> None:
        self._access = access
        self._log = log
        self._now = now
        self._made: dict[str, Link] = {}
        self._revoked: set[str] = set()

    def make(
        self, role: Literal["viewer", "operator"], days: float, name: str = ""
    ) -> tuple[Link, str]:
        """Makes a link.

        Returns:
            The link, and its token, which is kept nowhere.

        Raises:
            InvalidInput: the expiry or the name is invalid, or there are too many links.
        """
        if not 0 < days <= _LONGEST:
            raise InvalidInput(f"a link holds for up to {_LONGEST:.0f} days, not {days:g}")
        if len(name) > _NAME or (name and not name.isprintable()):
            raise InvalidInput(f"a name has at most {_NAME} characters, on one line")
        if len(self._made) >= _MOST:
            raise InvalidInput(f"this server has made {_MOST:,} links; start it again for more")
        now = self._now()
        link = Link(
            id=secrets.token_urlsafe(16), role=role, name=name, made=now, until=now + days * _DAY
        )
        self._made[link.id] = link
        return link, self._access.shared(Identity(role), link.until, link.id)

    def listed(self) -> list[Link]:
        """The links that have not ended, the latest first."""
        now = self._now()
        return [one for one in reversed(self._made.values()) if one.until > now]

    async def revoke(self, ident: str) -> None:
        """Revokes a link at once, for good.

        Raises:
            InvalidInput: this server has made no such link.
            LogError: the log cannot be written; the link is revoked on this server only.
        """
        link = self._made.get(ident)
        if link is None:
            raise InvalidInput(f"this server has made no link {ident[:40]!r}")
        self._revoked.add(ident)
        self._made[ident] = msgspec.structs.replace(link, revoked=True)
        advance = Advance(consumer=_CONSUMER, version=ident, expected=0, position=_REVOKED)
        try:
            await self._log.append("links", [], checkpoint=advance)
        except CheckpointConflict:  # revoked already
            return

    async def learn(self, ident: str) -> None:
        """Looks up in the log whether a link is revoked that this server has not made.

        It looks each time, since the server that made the link can revoke it at any time.

        Raises:
            LogError: the log cannot be read.
        """
        if not ident or ident in self._made or ident in self._revoked:
            return
        if await self._log.checkpoint(_CONSUMER, ident) == _REVOKED:
            self._revoked.add(ident)

    def is_revoked(self, ident: str) -> bool:
        """Whether a link is revoked, as far as this server knows."""
        return ident in self._revoked
