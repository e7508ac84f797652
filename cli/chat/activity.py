"""The current activity of the other participants, as far as a session's trace shows it."""

from __future__ import annotations

from typing import final

from ...engine.events import ActionResolved, ActionTaken
from ...engine.records import TRACE, Record
from ...scoring.display.records import call_text
from ...scoring.display.texts import one_line, shorten

__all__ = ("Activity",)

_WIDTH = 100  # characters of an action in the line
_AGENT_ACTS = frozenset({"MessageSent", "SnapshotTaken", "ApprovalAsked", "TurnYielded"})
_FOR_AGENTS = frozenset({"MessageSent", "SnapshotTaken", "ApprovalGiven"})


@final
class Activity:
    """Follows the actions in flight, and which agents have not answered yet."""

    def __init__(self) -> None:
        self._flying: dict[int, tuple[str, str]] = {}
        self._agents: dict[str, bool] = {}  # by name: whether it has something to answer
        self._closed = False

    def take(self, record: Record) -> None:
        """Takes the next record, of any stream."""
        if record.stream != TRACE:
            return
        event, kind = record.event, record.kind
        if kind == "SessionOpened":
            people = getattr(event, "participants", ())
            self._agents = {one.name: True for one in people if one.role == "agent"}
        elif kind == "SessionClosed":
            self._closed = True
        elif isinstance(event, ActionTaken) and record.role == "agent":
            text = shorten(call_text(event.name, event.arguments), _WIDTH)
            self._flying[record.version] = (record.actor, text)
        elif isinstance(event, ActionResolved):
            self._flying.pop(event.action, None)
        elif record.role == "human" and kind in _FOR_AGENTS:
            self._agents = dict.fromkeys(self._agents, True)
        elif record.role == "agent" and kind in _AGENT_ACTS:
            self._agents[record.actor] = False

    @property
    def line(self) -> str:
        """The current activity in one line; empty if the others wait for the person."""
        if self._closed:
            return ""
        if self._flying:
            actor, text = next(reversed(self._flying.values()))
            more = len(self._flying) - 1
            others = f" and {more} more" if more else ""
            return f"{one_line(actor)} is at work: {text}{others} …"
        busy = [one_line(name) for name, due in self._agents.items() if due]
        return f"{', '.join(busy)} {'is' if len(busy) == 1 else 'are'} at work …" if busy else ""
