"""The content of a chat's screen, without the screen: conversation, output, measures, questions."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, final

from rich.text import Text

from ...engine.events import ActionResolved, ActionTaken, ProgressRated, SessionOpened
from ...engine.records import TRACE, Record
from ...engine.session.environment import ActionSpec
from ...engine.session.view import View, Visibility
from ...scoring.display.diff import ChangedLine, changes, counts
from ...scoring.display.records import call_text
from ...scoring.display.texts import clean, one_line, shorten, with_reason
from ...scoring.replay import Step
from ..text.records import RecordFormatter
from .measures import Measures, advice_text
from .trouble import trouble_text

__all__ = ("SHOWN", "Activity", "ChatState", "Entry")


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


SHOWN = frozenset(
    {
        "MessageSent",
        "ActionTaken",
        "ActionResolved",
        "SnapshotTaken",
        "ApprovalAsked",
        "ApprovalGiven",
        "ProgressRated",
        "SessionClosed",
    }
)
"""Kinds of records that are shown to a person who chats."""


class Entry(NamedTuple):
    """A part of the conversation.

    Attributes:
        version: the trace version that it follows.
        number: its place among entries of the same version.
        name: the speaker; empty if there is none.
        text: the text shown.
        apart: it has an empty line before and after it.
    """

    version: int
    number: int
    name: str
    text: Text
    apart: bool = False


@final
class ChatState:
    """The displayed state of one chat.

    Attributes:
        entries: the conversation, in order.
        output: the shared output's lines, each marked as new, gone or as it was.
        title: which version of the output that is, whose, and how much it changed.
        question: the approval that is asked of the person; empty for none.
        actions: the actions that the person may take.
        measures: the measures of the session.
        activity: what the others are doing.
        changed: called after each change.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.output: Sequence[ChangedLine] = ()
        self.title = "output"
        self.question = ""
        self.actions: Mapping[str, ActionSpec] = {}
        self.measures = Measures()
        self.activity = Activity()
        self.changed: Callable[[], None] = lambda: None
        self._formatter = RecordFormatter()
        self._lines: list[str] = []
        self._snapshot: int | None = None
        self._version = 0
        self._view: View | None = None
        self._visibility: Visibility | None = None

    def follow(self, step: Step) -> None:
        """Takes the next record of the log, and the updates that it brought about.

        The log has the session to its end; a person's own view stops where their actor does.
        """
        record = step.record
        self.activity.take(record)
        trouble = trouble_text(record)
        if trouble is not None:
            self._add(record.version, "", Text(trouble, style="yellow"))
        if isinstance(record.event, SessionOpened):
            self._begin(record.event)
        seen = None if self._visibility is None else self._visibility.see(record)
        if seen is not None and self._view is not None:
            self._view.feed(seen)
            self._show(seen, self._view)
        for update in step.updates:
            self.measures.take(update)
            advice = advice_text(update)
            if advice is not None:
                self._add(update.version, "", Text(advice, style="yellow"), apart=True)
        self.changed()

    def offer(self, actions: Mapping[str, ActionSpec]) -> None:
        """Takes the actions that the person may take."""
        self.actions = actions
        self.changed()

    def notify(self, text: str, *, first: bool = False) -> None:
        """Adds a text that only the person sees, at the end or before all else."""
        self._add(0 if first else self._version, "", Text(clean(text), style="dim italic"))
        self.changed()

    def _begin(self, opened: SessionOpened) -> None:
        """Sits down in the human's place."""
        me = next((one.name for one in opened.participants if one.role == "human"), None)
        if me is not None:
            self._view, self._visibility = View(me, "human"), Visibility(me)

    def _show(self, record: Record, view: View) -> None:
        """Shows a record that the person may see."""
        self._version = record.version
        shown = self._formatter.format(record)
        if isinstance(record.event, ProgressRated) and record.actor == view.me:
            self._add(record.version, "", _rating(record.event))
        elif shown is not None and record.kind in SHOWN:
            name = "you" if record.actor == view.me else one_line(record.actor)
            apart = record.kind in ("MessageSent", "ApprovalAsked")
            self._add(record.version, "" if shown.quiet else name, shown.text, apart=apart)
        self._show_output(view)
        self._show_question(view)

    def _add(self, version: int, name: str, text: Text, *, apart: bool = False) -> None:
        insort(self.entries, Entry(version, len(self.entries), name, text, apart), key=_place)

    def _show_output(self, view: View) -> None:
        snapshot = view.snapshot
        if snapshot is None or snapshot.version == self._snapshot:
            return
        before, self._lines = self._lines, view.snapshot_text.splitlines()
        first, self._snapshot = self._snapshot is None, snapshot.version
        same = [ChangedLine(" ", line) for line in self._lines]
        self.output = changes(before, self._lines, context=None) or same
        added, gone = counts(self.output)
        author = "you" if snapshot.actor == view.me else one_line(snapshot.actor)
        what = "first version" if first else f"+{added} −{gone} lines"
        if first:  # all of it is new: marks would say nothing
            self.output = same
        self.title = f"output · version {snapshot.version} by {author} ({what})"

    def _show_question(self, view: View) -> None:
        asked = view.open_approvals
        self.question = ""
        if asked:
            more = f" ({len(asked) - 1} more after this)" if len(asked) > 1 else ""
            question = clean(asked[0].asked.question)
            self.question = f"? {one_line(asked[0].actor)} asks: {question}{more}"


def _rating(event: ProgressRated) -> Text:
    """The person's own rating, with the round that it is about."""
    text = with_reason(f"You rated round {event.round}: {event.rating}/5", event.explanation)
    return Text(text, style="dim")


def _place(entry: Entry) -> tuple[int, int]:
    return entry.version, entry.number
