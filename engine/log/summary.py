"""The fold behind the session list: one line per session, advanced with every append.

All stores keep it, so that the list of sessions never has to read events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import msgspec

from ..errors import NotALog
from ..events import SessionClosed, SessionOpened
from ..records import TRACE
from .append import Append
from .contract import SessionSummary

__all__ = (
    "FORGOTTEN",
    "STATE",
    "SessionState",
    "StreamState",
    "labels_in",
    "progress_of",
    "state_of",
    "state_row",
    "summary_of",
)

_decode = msgspec.json.Decoder(dict[str, str]).decode

FORGOTTEN = "forgotten"
"""State of a session whose contents were erased."""


def labels_in(data: str) -> dict[str, str]:
    """The labels of a session, as a store holds them.

    Raises:
        NotALog: they are not what was written.
    """
    try:
        return _decode(data)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        raise NotALog(
            "the log is damaged: the labels of a session are not what was written; restore it from "
            "a backup"
        ) from None


def summary_of(row: Iterable[Any]) -> SessionSummary:
    """The line in the list that a row of a store's table holds: key, session, task, instance, labels as
    JSON, state, events, version, opened, last, position.
    """
    (_, session, task, instance, labels, state, events, version, opened, last, position) = row
    return SessionSummary(
        session=session,
        task=task,
        instance=instance,
        group=labels_in(labels),
        state=state,
        events=events,
        version=version,
        opened=opened,
        last=last,
        position=position,
    )


STATE = (
    "key, session, task, instance, labels, origin, state, events, version, opened, last, position"
)
"""What stores keep of a session, as columns in the order of ``state_of`` and ``state_row``."""


def state_of(row: Sequence[Any]) -> SessionState:
    """The state of a session from a row of ``STATE``; further columns may follow."""
    state = SessionState(row[1], row[0])
    state.task, state.instance = row[2], row[3]
    state.group = labels_in(row[4])
    state.origin, state.state = row[5], row[6]
    state.events, state.version = row[7], row[8]
    state.opened, state.last, state.position = row[9:12]
    return state


def state_row(state: SessionState) -> tuple[object, ...]:
    """A session's row of ``STATE``."""
    return (
        state.key,
        state.session,
        state.task,
        state.instance,
        msgspec.json.encode(state.group).decode(),
        state.origin,
        state.state,
        state.events,
        state.version,
        state.opened,
        state.last,
        state.position,
    )


def progress_of(state: SessionState) -> tuple[float, ...]:
    """Key, and what of a session changes with each append: events, version, last, position."""
    return state.key, state.events, state.version, state.last, state.position


@final
class StreamState:
    """The end of a stream: its key in the store, its version, and the hash of its last record."""

    __slots__ = ("hash", "key", "version")

    def __init__(self, key: int, version: int) -> None:
        self.key = key
        self.version = version
        self.hash: bytes | None = None


@final
class SessionState:
    """A session's line in the list, folded record by record, and the versions of its streams."""

    __slots__ = (
        "events",
        "group",
        "instance",
        "key",
        "last",
        "opened",
        "origin",
        "position",
        "salt",
        "session",
        "state",
        "streams",
        "task",
        "version",
    )

    def __init__(self, session: str, key: int = 0) -> None:
        self.session = session
        self.key = key
        self.task = ""
        self.instance = ""
        self.group: dict[str, str] = {}
        self.state = "open"
        self.events = 0
        self.version = 0
        self.opened = 0.0
        self.last = 0.0
        self.position = 0
        self.origin: str | None = None  # of a fork
        self.salt: bytes | None = None  # of a chained log
        self.streams: dict[str, StreamState] = {}

    def refuses(self, append: Append) -> bool:
        """Whether the session is closed to this append."""
        state = self.state
        if state == "open":
            return False
        if state == FORGOTTEN:
            return any(envelope[8] is not None for envelope in append.envelopes)
        return append.stream == TRACE and not append.feedback

    def advance(self, append: Append, position: int) -> bool:
        """Takes an append whose last record has ``position``.

        Returns whether more than its progress changed: its description, or its state.
        """
        envelopes = append.envelopes
        count = len(envelopes)
        self.events += count
        self.position = position
        changed = bool(append.folded)
        if append.stream == TRACE:
            if not self.version:
                self.opened = envelopes[0][2]
                changed = True
            self.version += count
            self.last = envelopes[-1][2]
        for event in append.folded:
            if isinstance(event, SessionClosed):
                self.state = event.reason
            elif isinstance(event, SessionOpened):
                self._open(event)
            else:
                self.erase()
        return changed

    def _open(self, event: SessionOpened) -> None:
        self.task = event.task
        self.instance = event.instance
        if event.forked_from is not None:
            self.origin = event.forked_from.session
        group = event.config.get("group")
        if isinstance(group, Mapping):
            self.group = {str(key): str(value) for key, value in group.items()}

    def erase(self) -> None:
        """Drops what the session was about; what remains is how much there was of it."""
        self.task = self.instance = ""
        self.group = {}
        self.state = FORGOTTEN

    def summary(self) -> SessionSummary:
        """The line in the list."""
        return SessionSummary(
            session=self.session,
            task=self.task,
            instance=self.instance,
            group=dict(self.group),
            state=self.state,
            events=self.events,
            version=self.version,
            opened=self.opened,
            last=self.last,
            position=self.position,
        )
