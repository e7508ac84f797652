"""The fold behind the session list: one line per session, advanced with every append.

All stores keep it, so that the list of sessions never has to read events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, final

import msgspec

from ..events import SessionClosed, SessionOpened, UtilityScored
from ..records import TRACE
from ..rounds import RoundCount, is_requested
from .append import AGENT_ACT, AGENT_MESSAGE, ERASED, HUMAN_ACT, Append, Fold
from .contract import SessionSummary

__all__ = ("FORGOTTEN", "SessionState", "StreamState", "summary_of")

_labels = msgspec.json.Decoder(dict[str, str]).decode

FORGOTTEN = "forgotten"
"""State of a session whose contents were erased."""


def summary_of(row: Iterable[Any]) -> SessionSummary:
    """The line in the list that a row of a store's table holds: key, session, task, instance, labels as
    JSON, state, events, version, rounds, utility, evaluated, opened, last, position.
    """
    (_, session, task, instance, labels, state, events, version, rounds, *rest) = row
    utility, evaluated, opened, last, position = rest
    return SessionSummary(
        session=session,
        task=task,
        instance=instance,
        group=_labels(labels),
        state=state,
        events=events,
        version=version,
        rounds=rounds,
        utility=utility,
        evaluated=bool(evaluated),
        opened=opened,
        last=last,
        position=position,
    )


@final
class StreamState:
    """Where a stream ends: its key in the store, its version, and the hash of its last record."""

    __slots__ = ("hash", "key", "version")

    def __init__(self, key: int, version: int) -> None:
        self.key = key
        self.version = version
        self.hash: bytes | None = None


@final
class SessionState:
    """A session's line in the list, folded record by record, and the versions of its streams."""

    __slots__ = (
        "counted",
        "evaluated",
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
        "utility",
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
        self.counted = RoundCount(0)
        self.utility: float | None = None
        self.evaluated = False  # as far as this object saw; a store on a disk asks its records
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

        Gives whether what the session is about changed, which it does when it is opened.
        """
        envelopes = append.envelopes
        count = len(envelopes)
        self.events += count
        self.position = position
        opening = False
        if append.stream == TRACE:
            if not self.version:
                self.opened = envelopes[0][2]
                self.counted.number = 1
                self.evaluated = self.evaluated or _names_utility(append)
                opening = True
            self.version += count
            self.last = envelopes[-1][2]
        for event in append.folded:
            if event is AGENT_ACT:
                self.counted.agent_acted()
            elif event is AGENT_MESSAGE:
                self.counted.agent_acted(message=True)
            elif event is HUMAN_ACT:
                self.counted.human_acted()
            elif event is ERASED:
                self.erase()
                opening = True
            else:
                opening = self._fold(event, append.stream) or opening
        return opening

    def _fold(self, event: Fold, stream: str) -> bool:
        if isinstance(event, UtilityScored):
            known = event.value is not None and 0.0 <= event.value <= 1.0
            self.evaluated = self.evaluated or known or stream != TRACE
            if known:
                self.utility = event.value
        elif isinstance(event, SessionClosed):
            self.state = event.reason
        elif isinstance(event, SessionOpened):
            self.task = event.task
            self.instance = event.instance
            self.counted.opened(requested=is_requested(event))
            if event.forked_from is not None:
                self.origin = event.forked_from.session
            group = event.config.get("group")
            if isinstance(group, Mapping):
                self.group = {str(key): str(value) for key, value in group.items()}
            return True
        return False

    def erase(self) -> None:
        """Drops what the session was about; what remains is how much there was of it."""
        self.task = self.instance = ""
        self.group = {}
        self.utility = None
        self.evaluated = False
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
            rounds=self.counted.number,
            utility=self.utility,
            evaluated=self.evaluated,
            opened=self.opened,
            last=self.last,
            position=self.position,
        )


def _names_utility(append: Append) -> bool:
    """Whether a trace begins with an opening whose configuration names a utility scorer."""
    first = append.folded[0] if append.folded else None
    if not isinstance(first, SessionOpened) or append.envelopes[0][0] != "SessionOpened":
        return False
    return isinstance(first.config.get("utility"), str)
