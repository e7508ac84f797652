"""Who somebody is to the workbench: roles, the tokens that links carry, and what a cookie holds.

Nothing of it is kept on the server. Tokens and cookies are signed with a secret, so they hold as
long as the secret does, also when the server is restarted.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from hashlib import sha256
from typing import Literal, final

import msgspec

from ....engine.errors import InvalidInput

__all__ = ("Access", "BenchRole", "Identity")

BenchRole = Literal["viewer", "operator", "participant"]
"""What somebody may do. A viewer reads all sessions, without what is private in them. An operator
reads everything, and takes part in sessions. A participant sees one session, as one of its actors.
"""


class Identity(msgspec.Struct, frozen=True):
    """Who somebody is.

    Attributes:
        role: what they may do.
        actor: of a participant, the name that they have in the session.
        session: of a participant, the only session that there is for them.
    """

    role: BenchRole
    actor: str = ""
    session: str = ""

    def __post_init__(self) -> None:
        if (self.role == "participant") != bool(self.actor and self.session):
            raise InvalidInput("a participant is an actor of a session, and nobody else is")

    @property
    def reads_log(self) -> bool:
        """Whether all sessions are open to them."""
        return self.role != "participant"


_decode = msgspec.json.Decoder(Identity).decode
_encode = msgspec.json.Encoder().encode


@final
class Access:
    """Makes and checks tokens and cookies.

    Args:
        secret: what they are signed with; it is the operator's token too.
        read_only: whether nobody may do more than read; the operator's token is a viewer's then.
    """

    def __init__(self, secret: str, *, read_only: bool = False) -> None:
        self._secret = secret.encode()
        self.read_only = read_only
        self.cookie_name = f"duolog-{sha256(b'name' + self._secret).hexdigest()[:12]}"

    def token(self, identity: Identity) -> str:
        """The token of somebody, for a link."""
        if identity == Identity("operator"):
            return self._secret.decode()
        return self._signed("link", identity)

    def by_token(self, token: str) -> Identity | None:
        """Who has a token; None where it is nobody's."""
        given = sha256(token.encode(errors="replace")).digest()
        if hmac.compare_digest(given, sha256(self._secret).digest()):
            return Identity("viewer" if self.read_only else "operator")
        return self._verified("link", token)

    def cookie(self, identity: Identity) -> str:
        """What the cookie of somebody holds."""
        return self._signed("cookie", identity)

    def by_cookie(self, cookie: str) -> Identity | None:
        """Whose cookie it is; None where it is nobody's, or of another server."""
        return self._verified("cookie", cookie)

    def _signed(self, purpose: str, identity: Identity) -> str:
        data = base64.urlsafe_b64encode(_encode(identity)).decode().rstrip("=")
        return f"{data}.{self._mac(purpose, data)}"

    def _verified(self, purpose: str, text: str) -> Identity | None:
        data, _, mac = text.partition(".")
        if not text.isascii() or not hmac.compare_digest(mac, self._mac(purpose, data)):
            return None
        try:
            identity = _decode(base64.urlsafe_b64decode(data + "=" * (-len(data) % 4)))
        except (binascii.Error, msgspec.DecodeError, InvalidInput):
            return None
        if self.read_only and identity.role == "operator":
            return Identity("viewer")
        return identity

    def _mac(self, purpose: str, data: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{data}".encode(), sha256).hexdigest()
