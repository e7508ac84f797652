"""Identities in the workbench: roles, tokens in links, and the contents of cookies.

Nothing of it is kept on the server. Tokens and cookies are signed with a secret, and carry their
expiry. So they survive a restart of the server, and a new secret revokes all of them.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import math
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Final, Literal, final

import msgspec

from ....engine.errors import InvalidInput

__all__ = ("LIFE", "Access", "Identity", "WorkbenchRole")

LIFE: Final = 30 * 86400.0
"""Seconds that links and cookies hold, unless it is said otherwise."""

WorkbenchRole = Literal["viewer", "operator", "participant"]
"""The rights of a user. A viewer reads all sessions, without their private parts. An operator reads
everything, and takes part in sessions. A participant sees one session, as one of its actors.
"""


class Identity(msgspec.Struct, frozen=True):
    """The identity of a user.

    Attributes:
        role: their rights.
        actor: the name that a participant has in the session.
        session: the one session that a participant may see.
    """

    role: WorkbenchRole
    actor: str = ""
    session: str = ""

    def __post_init__(self) -> None:
        if (self.role == "participant") != bool(self.actor and self.session):
            raise InvalidInput("only an actor of the session can be a participant")

    @property
    def reads_log(self) -> bool:
        """Whether all sessions are open to them."""
        return self.role != "participant"


class _Pass(msgspec.Struct, frozen=True):
    """The signed contents: an identity, its expiry, in seconds since 1970, and the id of the shared link."""

    identity: Identity
    until: int
    link: str = ""


_decode = msgspec.json.Decoder(_Pass).decode
_encode = msgspec.json.Encoder().encode


@final
class Access:
    """Makes and checks tokens and cookies.

    Args:
        secret: signs them; it is also the operator's token, valid as long as the secret.
        read_only: whether all users may only read; the operator's token is a viewer's then.
        life: seconds that links and cookies hold. A cookie ends with the link that it was given for.
        now: the time in seconds since 1970.

    Attributes:
        read_only: whether all users may only read.
        life: seconds that links and cookies hold.
        cookie_name: the name of the cookie, another one for each secret.

    Raises:
        InvalidInput: ``life`` is not above 0, or without an end.
    """

    def __init__(
        self,
        secret: str,
        *,
        read_only: bool = False,
        life: float = LIFE,
        now: Callable[[], float] = time.time,
    ) -> None:
        if not 0 < life < math.inf:
            raise InvalidInput(f"links hold for a time above 0, not for {life:g} seconds")
        self._secret = secret.encode()
        self.life = life
        self._now = now
        self.read_only = read_only
        self.cookie_name = f"duolog-{sha256(b'name' + self._secret).hexdigest()[:12]}"

    def token(self, identity: Identity) -> str:
        """The token of an identity, for a link."""
        if identity == Identity("operator"):
            return self._secret.decode()
        return self._signed("link", identity, self._end())

    def shared(self, identity: Identity, until: float, link: str) -> str:
        """The token of a link that can be revoked.

        Args:
            identity: whose rights its holder has.
            until: when it ends, in seconds since 1970.
            link: its id.
        """
        return self._signed("link", identity, int(until), link)

    def link_of(self, *, token: str = "", cookie: str = "") -> str:
        """The id of the shared link that a token or cookie comes from; empty if from none."""
        found = self._verified("link", token) if token else self._verified("cookie", cookie)
        return "" if found is None else found.link

    def by_token(self, token: str) -> Identity | None:
        """The identity that a token belongs to; None if it is invalid or expired."""
        if self._is_secret(token):
            return Identity("viewer" if self.read_only else "operator")
        return self._admitted(self._verified("link", token))

    def cookie(self, identity: Identity, token: str = "") -> str:
        """The contents of a user's cookie.

        Args:
            identity: who they are.
            token: by which they entered; the cookie does not outlast it.
        """
        link = None if self._is_secret(token) else self._verified("link", token)
        if link is None:
            return self._signed("cookie", identity, self._end())
        return self._signed("cookie", identity, link.until, link.link)

    def by_cookie(self, cookie: str) -> Identity | None:
        """The identity in a cookie; None if it is invalid, expired, or of another server."""
        return self._admitted(self._verified("cookie", cookie))

    def _end(self) -> int:
        return int(self._now() + self.life)

    def _is_secret(self, token: str) -> bool:
        given = sha256(token.encode(errors="replace")).digest()
        return hmac.compare_digest(given, sha256(self._secret).digest())

    def _signed(self, purpose: str, identity: Identity, until: int, link: str = "") -> str:
        signed = _encode(_Pass(identity, until, link))
        data = base64.urlsafe_b64encode(signed).decode().rstrip("=")
        return f"{data}.{self._mac(purpose, data)}"

    def _verified(self, purpose: str, text: str) -> _Pass | None:
        data, _, mac = text.partition(".")
        if not text.isascii() or not hmac.compare_digest(mac, self._mac(purpose, data)):
            return None
        try:
            found = _decode(base64.urlsafe_b64decode(data + "=" * (-len(data) % 4)))
        except (binascii.Error, msgspec.DecodeError, InvalidInput):
            return None
        return found if self._now() < found.until else None

    def _admitted(self, found: _Pass | None) -> Identity | None:
        if found is None:
            return None
        if self.read_only and found.identity.role == "operator":
            return Identity("viewer")
        return found.identity

    def _mac(self, purpose: str, data: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{data}".encode(), sha256).hexdigest()
