"""The address of a client: the other end of its connection, or the one that a trusted proxy names."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, final

from starlette.datastructures import Headers
from starlette.types import Scope

from ...engine.errors import InvalidInput

__all__ = ("Proxies",)

_FORWARDED: Final = "x-forwarded-for"
_NETWORK: Final = 64  # bits of an IPv6 address that one client has to itself


@final
class Proxies:
    """The reverse proxies whose word is taken for the address of a client.

    Args:
        addresses: the addresses of the proxies, or networks such as ``10.0.0.0/8``.

    Raises:
        InvalidInput: one of them is not an address.
    """

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        try:
            self._networks = [ip_network(one) for one in addresses]
        except ValueError:
            raise InvalidInput(
                "a trusted proxy must be an address or a network such as 10.0.0.0/8, got "
                f"{', '.join(addresses)}"
            ) from None

    def trusts(self, address: str) -> bool:
        """Whether an address is that of a trusted proxy."""
        try:
            found = ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)

    def client_of(self, scope: Scope) -> str:
        """The address of the client that made a request; of IPv6, its network.

        Each proxy adds the address that it was called from at the end. So the client is the last one
        that is not a trusted proxy, and whatever it wrote itself comes before that.
        """
        peer = scope.get("client") or ("",)
        address = str(peer[0])
        if self.trusts(address):
            named = Headers(scope=scope).getlist(_FORWARDED)
            for one in reversed([part.strip() for line in named for part in line.split(",")]):
                address = one
                if not self.trusts(one):
                    break
        return _grouped(address)


def _grouped(address: str) -> str:
    """An address as clients are counted: a client may have very many addresses of IPv6."""
    try:
        found = ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(ip_network((found, _NETWORK), strict=False))
    return str(found)
