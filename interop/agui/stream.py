"""A session as a stream of AG-UI's events: recorded or live."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

import msgspec

from ...engine.errors import LogClosed, SessionNotFound
from ...engine.log.contract import EventLog
from ..follow import Follow, follow_records
from .encoder import AguiEncoder
from .names import AguiEvent

__all__ = ("encode_sse", "follow_agui", "stream_agui")

_encode = msgspec.json.Encoder().encode


def encode_sse(event: Mapping[str, object], position: int | None = None) -> bytes:
    """An event as a server-sent event; with a position, that is its ``id:``."""
    data = b"data: %b\n\n" % _encode(event)
    return data if position is None else b"id: %d\n%b" % (position, data)


async def stream_agui(
    log: EventLog,
    session: str,
    *,
    after: int = 0,
    live: bool = True,
    follow: Follow = follow_records,
) -> AsyncGenerator[AguiEvent, None]:
    """A session's events, as JSON has them; encode them with ``encode_sse`` for a front end.

    Args:
        log: an open log.
        session: session id.
        after: only what came after this position of the log, preceded by the state at that position.
        live: continue with new records until the log is closed or the caller leaves; else end with
            the last record now in the log.
        follow: how the log is followed; with ``scoring.live.follow_updates``, the stream also
            contains the scores, in CUSTOM events (``duolog.utility``, ``duolog.stop``, ...).

    Raises:
        SessionNotFound: it is not live, and the log has no such session.
        CodecError: a body that is needed is damaged.
        LogClosed: it is not live, and the log is closed.
    """
    until = None if live else (await log.summary(session)).position
    async with aclosing(
        follow_agui(log, session, after=after, until=until, follow=follow)
    ) as steps:
        try:
            async for _, events in steps:
                for event in events:
                    yield event
        except LogClosed:
            if not live:
                raise


async def follow_agui(
    log: EventLog,
    session: str,
    *,
    after: int = 0,
    until: int | None = None,
    follow: Follow = follow_records,
) -> AsyncGenerator[tuple[int, list[AguiEvent]], None]:
    """The same by records: the position of each, and its events; up to a position, or without end."""
    encoder = AguiEncoder(session)
    joining = after > 0
    last = await _last(log, session) if joining else 0
    async with follow(log, session, 0) as steps:
        async for record, updates in steps:
            if joining and record.position > after:
                joining = False
                yield after, encoder.encode_state()
            events = [*encoder.encode(record), *encoder.encode_updates(updates, record)]
            if record.position > after and events:
                yield record.position, events
            if joining and record.position >= last:  # there is nothing after it yet
                joining = False
                yield after, encoder.encode_state()
            if until is not None and record.position >= until:
                break


async def _last(log: EventLog, session: str) -> int:
    """Position of a session's last record; 0 if there is none."""
    try:
        return (await log.summary(session)).position
    except SessionNotFound:
        return 0
