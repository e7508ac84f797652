"""Sessions in which nothing happens any more: closed as ``ended``."""

from __future__ import annotations

from time import time as now
from typing import Final

from ..engine.errors import InvalidInput, SessionClosedError, VersionConflict
from ..engine.events import SessionClosed, SessionOpened
from ..engine.log.contract import EventLog
from ..engine.records import ENGINE
from ..engine.session.commands import CloseSession, Sender, handle
from ..engine.session.state import TraceState, load_state

__all__ = ("close_idle", "was_idle")

_DETAIL: Final = "idle"


async def close_idle(log: EventLog, seconds: float, *, dry: bool = False) -> list[str]:
    """Closes open sessions of products in which nothing has happened for some time, as ``ended``.

    Sessions on virtual time are left alone: they are simulations that can be resumed.

    Args:
        log: the log.
        seconds: since the last event of their trace.
        dry: only say which.

    Returns:
        Their ids.

    Raises:
        InvalidInput: a time that is not above 0.
        LogError: the log cannot be read or written.
    """
    if not seconds > 0:
        raise InvalidInput(f"sessions are idle after a time above 0 seconds, not {seconds:g}")
    before = now() - seconds
    closed: list[str] = []
    async for summary in log.sessions():
        if summary.state != "open" or not summary.version or summary.last > before:
            continue
        opened = (await anext(log.read(summary.session))).event
        if not isinstance(opened, SessionOpened) or opened.clock != "utc":
            continue
        if dry or await _close(log, summary.session, before):
            closed.append(summary.session)
    return closed


async def _close(log: EventLog, session: str, before: float) -> bool:
    """Closes a session, unless something has happened in it; whether it did."""
    state = await load_state(log, session)
    if state.closed is not None or state.time > before:
        return False
    event = SessionClosed(reason="ended", by=ENGINE, detail=_DETAIL)
    made = handle(CloseSession(event), state, Sender(ENGINE, "environment", now()))
    try:
        await log.append(session, made.drafts, expected_version=state.version)
    except (VersionConflict, SessionClosedError):  # it continues, or another process was faster
        return False
    return True


def was_idle(state: TraceState | None) -> bool:
    """Whether a session was closed since it was idle."""
    return state is not None and state.closed == "ended" and state.detail == _DETAIL
