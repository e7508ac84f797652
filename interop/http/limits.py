"""Limits for one client of the HTTP interface, so that none can starve the others."""

from __future__ import annotations

import msgspec

from ...engine.budget import Budget
from ...engine.errors import InvalidInput
from .clients import Proxies

__all__ = ("HttpLimits",)

_MIB = 1024 * 1024


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the HTTP interface; each has its own status.

    Attributes:
        body: bytes in the body of a request; more are refused with 413.
        traces: bytes in a request to export traces, also decompressed; more are refused with 413.
        values: values in a body of JSON: elements of lists and members of objects; more are refused
            with 413. A request to export traces has four times as many.
        ratio: bytes that each byte of a compressed body may become.
        events: events in a batch; more are refused with 413.
        buffered: bytes of all bodies that are being received at once; beyond it, 503.
        streams: event streams at once; more are refused with 503.
        page: sessions or records on a page, at most and when nothing is asked for.
        page_bytes: bytes of records on a page, after which it ends early.
        heartbeat: seconds between comments that keep an event stream's connection alive.
        patience: seconds for a request to arrive, and for a client that does not read what it is
            sent. Late bodies are refused with 408; the connection ends otherwise.
        connections: at once; more are refused with 503 and closed.
        per_client: how many of those may come from one address; more are refused likewise. Trusted
            proxies may have any number.
        proxies: addresses or networks of reverse proxies that say where requests come from, in
            ``X-Forwarded-For``.

    Raises:
        InvalidInput: one of them is not above 0, or not an address.
    """

    body: int = _MIB
    traces: int = 16 * _MIB
    values: int = 1 << 18
    ratio: int = 100
    events: int = 1000
    buffered: int = 64 * _MIB
    streams: int = 512
    page: int = 1000
    page_bytes: int = 4 * _MIB
    heartbeat: float = 15.0
    patience: float = 20.0
    connections: int = 4096
    per_client: int = 256
    proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        Proxies(self.proxies)
        for name in self.__struct_fields__:
            if name != "proxies" and not getattr(self, name) > 0:
                raise InvalidInput(f"the limit {name!r} must be above 0, not {getattr(self, name)}")

    @property
    def of_body(self) -> Budget:
        """The limits of the body of a request."""
        return Budget(size=self.body, objects=self.values, seconds=self.patience)

    @property
    def of_traces(self) -> Budget:
        """The limits of a request to export traces."""
        return Budget(
            size=self.traces, ratio=self.ratio, objects=4 * self.values, seconds=self.patience
        )
