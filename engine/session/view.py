"""The view of one actor: a fold of only the records that are visible to it."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Mapping
from itertools import takewhile
from typing import final

import msgspec

from .. import codec
from ..events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Forgotten,
    MessageSent,
    NoteTaken,
    Nudged,
    Participant,
    ProfileChanged,
    Role,
    SessionOpened,
    SnapshotTaken,
    Unknown,
)
from ..files import Contents, output_text
from ..records import TRACE, Record
from ..rounds import is_act
from ..text import count_words, lines_of, new_lines
from .decisions import Decision
from .environment import ActionSpec

__all__ = ("ActionSeen", "ApprovalSeen", "MessageSeen", "SnapshotSeen", "View", "Visibility")

_OWN = frozenset({"NoteTaken", "DraftDropped", "ModelCalled", "ProgressRated"})
_NEWS = frozenset(
    {
        "MessageSent",
        "SnapshotTaken",
        "ApprovalAsked",
        "ApprovalGiven",
        "TurnYielded",
        "FeedbackGiven",
        "ActionResolved",
        "Nudged",
        "ProfileChanged",
    }
)


class MessageSeen(msgspec.Struct, frozen=True):
    """A message: its trace version, its sender and their role, the text, and the time."""

    version: int
    actor: str
    role: Role
    text: str
    time: float


class SnapshotSeen(msgspec.Struct, frozen=True):
    """A snapshot of the shared output.

    Attributes:
        version: trace version of the snapshot.
        actor: the author.
        role: the author's role.
        content: the whole content; for several files, all of their texts by path.
        media_type: the media type of the content.
        digest: see ``SnapshotTaken``.
        files: whether the output is several files.
    """

    version: int
    actor: str
    role: Role
    content: JSON
    media_type: str
    digest: str
    files: bool = False


class ActionSeen(msgspec.Struct, frozen=True):
    """One of the actor's own actions, and its outcome (``resolved`` is None until then)."""

    version: int
    name: str
    arguments: Mapping[str, JSON]
    resolved: ActionResolved | None = None


class ApprovalSeen(msgspec.Struct, frozen=True):
    """An approval that was asked for, and the answer once there is one."""

    version: int
    actor: str
    asked: ApprovalAsked
    given: ApprovalGiven | None = None


@final
class Visibility:
    """Decides which trace records one actor may see, and which of them are news to it.

    Messages go to all actors or to those named; notes, dropped drafts, model calls, ratings and the outcome of an
    action are for their actor alone, a changed profile for its owner; of the opening everybody sees
    all but others' private parts.

    Attributes:
        mine: trace versions of the actor's own actions.
    """

    def __init__(self, me: str) -> None:
        self._me = me
        self._hidden: set[int] = set()
        self.mine: set[int] = set()

    def see(self, record: Record) -> Record | None:
        """The record as this actor sees it, or None. Takes the records in order."""
        kind = record.kind
        if record.stream != TRACE:
            return None
        if record.actor == self._me:
            if kind == "ActionTaken":
                self.mine.add(record.version)
            return record
        if kind in _OWN:
            return None
        if kind in ("MessageSent", "ApprovalAsked"):
            event = record.event
            if isinstance(event, MessageSent | ApprovalAsked) and (
                not event.to or self._me in event.to
            ):
                return record
            self._hidden.add(record.version)
            return None
        if kind == "ApprovalGiven" and self._hidden:
            event = record.event
            hidden = isinstance(event, ApprovalGiven) and event.asked in self._hidden
            return None if hidden else record
        if kind == "ActionResolved":
            event = record.event
            mine = isinstance(event, ActionResolved) and event.action in self.mine
            return record if mine else None
        if kind == "Nudged":
            event = record.event
            return record if isinstance(event, Nudged) and event.to == self._me else None
        if kind == "ProfileChanged":
            event = record.event
            mine = isinstance(event, ProfileChanged) and event.owner == self._me
            return record if mine else None
        if kind == "SessionOpened":
            return self._opening(record)
        return None if isinstance(record.event, Unknown | Forgotten) else record

    def is_news(self, record: Record) -> bool:
        """Whether a visible record should make this actor look up."""
        return record.kind in _NEWS and record.actor != self._me

    def _opening(self, record: Record) -> Record | None:
        event = record.event
        if not isinstance(event, SessionOpened):
            return None  # its private parts cannot be told apart
        own = {name: part for name, part in event.private.items() if name == self._me}
        opened = msgspec.structs.replace(event, private=own, problem=None)
        body = codec.encode_body(opened)
        return msgspec.structs.replace(record, body=body, _event=opened)


@final
class View:
    """The knowledge of one actor at one moment: the context c_t for its next act.

    It changes only when its actor looks, between decisions.

    Attributes:
        me: the actor's name.
        role: its role.
        seed: the seed of the session's randomness from now on; a fork may change it at its cut.
        trait_seed: of traits that stay the same for the whole session; a fork does not change it.
        actions_available: the task actions that it may take, by name.
        now: session time, seconds.
        version: trace version that the view has reached.
        opened: the opening, without others' private parts.
        messages: all messages seen, in order.
        snapshot: the current shared output, None if there is none yet.
        snapshots: the records of all outputs seen, in order.
        own_snapshot: digest of the actor's last own snapshot.
        actions: the actor's own actions by trace version, in order.
        approvals: approvals asked, by trace version.
        notes: the actor's own notes.
        records: everything seen, in order.
        sent: trace versions of the actor's own events, by the caller's id that they carry.
        acts: number of the actor's own acts seen.
        last_act: trace version of the last of them; 0 if there is none.
        news: records since the previous decision.
        pending: the decision whose working time is passing, while it is reconsidered.
        pending_spent: working time spent on it so far, seconds.
        pending_seconds: working time that all of it takes, seconds.
        idle: whether the last wait ended without news.
    """

    def __init__(
        self,
        me: str,
        role: Role,
        *,
        seed: int | None = None,
        actions_available: Mapping[str, ActionSpec] | None = None,
    ) -> None:
        self.me = me
        self.role = role
        self.seed = seed
        self.trait_seed = seed
        self.actions_available: Mapping[str, ActionSpec] = actions_available or {}
        self.now = 0.0
        self.version = 0
        self.opened: SessionOpened | None = None
        self.messages: list[MessageSeen] = []
        self.snapshot: SnapshotSeen | None = None
        self.snapshots: list[Record] = []
        self._output: SnapshotTaken | None = None
        self._contents = Contents()
        self.own_snapshot: str | None = None
        self.actions: dict[int, ActionSeen] = {}
        self.approvals: dict[int, ApprovalSeen] = {}
        self.notes: list[str] = []
        self.records: list[Record] = []
        self.sent: dict[str, int] = {}
        self.acts = 0
        self.last_act = 0
        self.news: tuple[Record, ...] = ()
        self.pending: Decision | None = None
        self.pending_spent = 0.0
        self.pending_seconds = 0.0
        self.idle = False
        self._request: str | None = None
        self._private: JSON = None
        self._decisions = 0
        self._random: random.Random | None = None
        self._unread: list[str] = []
        self._read_text = ""
        self._text: str | None = ""

    @property
    def participants(self) -> tuple[Participant, ...]:
        """Who takes part."""
        return self.opened.participants if self.opened else ()

    @property
    def private(self) -> JSON:
        """This actor's current private part: from the opening, or its last change; None if there is
        none.
        """
        return self._private

    @property
    def request(self) -> str:
        """The initial request: the task text, or else the first human message seen."""
        if self._request is None:
            if self.opened and self.opened.request:
                self._request = self.opened.request
            else:
                self._request = next((m.text for m in self.messages if m.role == "human"), None)
        return self._request or ""

    @property
    def in_flight(self) -> tuple[ActionSeen, ...]:
        """The actor's own actions that are still without an outcome."""
        return tuple(action for action in self.actions.values() if action.resolved is None)

    @property
    def open_approvals(self) -> tuple[ApprovalSeen, ...]:
        """Approvals that others asked for and that are still undecided."""
        return tuple(a for a in self.approvals.values() if a.given is None and a.actor != self.me)

    @property
    def snapshot_text(self) -> str:
        """The shared output as text; empty if there is none."""
        if self._text is None:
            self._text = output_text(self._output) if self._output else ""
        return self._text

    @property
    def unread_words(self) -> int:
        """Words that are new since the actor last read: others' messages and changes."""
        fresh = sum(count_words(text) for text in self._unread)
        if self._read_text == self.snapshot_text:
            return fresh
        changed = new_lines(lines_of(self._read_text), lines_of(self.snapshot_text))
        return fresh + count_words(changed)

    @property
    def decisions(self) -> int:
        """The number of the decision that it is set up for; see ``next_decision``."""
        return self._decisions

    @property
    def random(self) -> random.Random:
        """Randomness for this decision, drawn from (seed, actor, number of the decision)."""
        if self._random is None:
            self._random = random.Random(f"{self.seed}/{self.me}/{self._decisions}")
        return self._random

    def feed(self, record: Record) -> None:
        """Adds the next visible record."""
        self.version = record.version
        self.records.append(record)
        if record.actor == self.me:
            self._did(record)
        match record.event:
            case MessageSent() as event:
                self._message(record, event)
            case SnapshotTaken() as event:
                self._snapshot(record, event)
            case ActionTaken() as event:
                self._action(record, event)
            case ActionResolved() as event:
                self._resolved(event)
            case ApprovalAsked() as event:
                self._asked(record, event)
            case ApprovalGiven() as event:
                self._given(record, event)
            case NoteTaken() as event:
                self.notes.append(event.text)
            case ProfileChanged(owner=self.me) as event:
                self._private = event.profile
            case SessionOpened() as event:
                self._opened(event)
            case _:
                pass  # seen, and kept in records; nothing to fold

    def swap(self, record: Record) -> None:
        """Puts another form of a message in the place of the one that was taken in."""
        event = record.event
        if not isinstance(event, MessageSent):
            return
        place = bisect_left(self.records, record.version, key=lambda one: one.version)
        self.records[place] = record
        number = bisect_left(self.messages, record.version, key=lambda one: one.version)
        self.messages[number] = msgspec.structs.replace(self.messages[number], text=event.text)
        self._request = None

    def keep_up(self, view: View) -> None:
        """Comes to the decision that another view is at, whose records it has taken in, as its actor."""
        self.me, self.role = view.me, view.role
        self.seed, self.trait_seed = view.seed, view.trait_seed
        self.actions_available = view.actions_available
        self.now, self.version = view.now, view.version
        self.pending, self.idle = view.pending, view.idle
        self.pending_spent, self.pending_seconds = view.pending_spent, view.pending_seconds
        oldest = view.news[0].version if view.news else view.version + 1
        recent = takewhile(lambda one: one.version >= oldest, reversed(self.records))
        known = {record.version: record for record in recent}
        self.news = tuple(known.get(record.version, record) for record in view.news)
        self._decisions, self._random = view._decisions, None
        self._unread, self._read_text = list(view._unread), view._read_text

    def mark_read(self) -> None:
        """Notes that the actor has read all that is in the view."""
        self._unread.clear()
        self._read_text = self.snapshot_text

    def next_decision(
        self,
        news: tuple[Record, ...],
        pending: Decision | None,
        idle: bool,
        *,
        spent: float = 0.0,
        seconds: float = 0.0,
    ) -> None:
        """Sets the view up for another decision; see ``pending_spent`` and ``pending_seconds``."""
        self.pending_spent, self.pending_seconds = spent, seconds
        self._decisions += 1
        self._random = None
        self.news = news
        self.pending = pending
        self.idle = idle

    def _did(self, record: Record) -> None:
        """Counts a record of the actor's own."""
        if record.caller_id is not None:
            self.sent[record.caller_id] = record.version
        if is_act(record):
            self.acts += 1
            self.last_act = record.version

    def _opened(self, event: SessionOpened) -> None:
        self.opened = event
        self._private = event.private.get(self.me)
        if event.request:
            self._unread.append(event.request)

    def _message(self, record: Record, event: MessageSent) -> None:
        self.messages.append(
            MessageSeen(record.version, record.actor, record.role, event.text, record.time)
        )
        if record.actor != self.me:
            self._unread.append(event.text)

    def _snapshot(self, record: Record, event: SnapshotTaken) -> None:
        self._output = whole = self._contents.whole(event)
        self.snapshots.append(record)
        self.snapshot = SnapshotSeen(
            record.version,
            record.actor,
            record.role,
            whole.content,
            event.media_type,
            event.digest,
            files=event.files is not None,
        )
        self._text = None
        if record.actor == self.me:
            self.own_snapshot = event.digest
            self._read_text = self.snapshot_text

    def _action(self, record: Record, event: ActionTaken) -> None:
        if record.actor == self.me:
            self.actions[record.version] = ActionSeen(record.version, event.name, event.arguments)

    def _resolved(self, event: ActionResolved) -> None:
        action = self.actions.get(event.action)
        if action is not None:
            self.actions[event.action] = msgspec.structs.replace(action, resolved=event)

    def _asked(self, record: Record, event: ApprovalAsked) -> None:
        self.approvals[record.version] = ApprovalSeen(record.version, record.actor, event)
        if record.actor != self.me:
            self._unread.append(event.question)

    def _given(self, record: Record, event: ApprovalGiven) -> None:
        asked = self.approvals.get(event.asked)
        if asked is not None:
            self.approvals[event.asked] = msgspec.structs.replace(asked, given=event)
        if record.actor != self.me:
            self._unread.append(event.comment)
