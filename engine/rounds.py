"""Rounds: an incremental fold of the trace into the stretches between handoffs (paper, section 3).

There are two conventions. ``handoff`` is the paper's definition: a human act opens a new round if
and only if an agent act has occurred since the current round began. If a session was opened without
a request, an agent's messages before the first human act are a greeting. They belong to round 1,
and the first request does not end that round. ``human-turn`` is how the published analysis counts:
every collaborative act of the human (a message, asking or giving approval, failed ones too) opens a
round, except the initial request, which belongs to round 1.

The rounds partition the trace: the first begins at version 1, and every record lies in exactly one.
"""

from __future__ import annotations

from typing import Final, Literal, final

import msgspec

from .events import ACTS, ActionTaken, SessionOpened, SnapshotTaken
from .records import TRACE, Record

__all__ = (
    "PRODUCTIVE",
    "Round",
    "RoundProjector",
    "Rounds",
    "Stage",
    "is_act",
    "is_blank",
    "is_requested",
    "is_unproductive",
)

Rounds = Literal["handoff", "human-turn"]
"""How rounds are counted: see above."""

Stage = Literal["initial", "refinement"]
"""``initial`` up to and including the first round with an update, ``refinement`` after it."""

PRODUCTIVE: Final = 3
"""The least rating of a productive round, on the Likert scale of 1 to 5."""

_COLLABORATIVE = frozenset({"MessageSent", "ApprovalAsked", "ApprovalGiven"})


class Round(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A round, open or closed: a_[i_k..j_k] with the facts that scorers need.

    Attributes:
        number: from 1.
        first: trace version of its first record.
        last: trace version of its last record so far.
        last_act: trace version of its last act; None if it has none yet.
        human_acts: acts of humans in it.
        agent_acts: acts of agents in it.
        messages: acts of humans in it that are messages.
        requested: whether the initial request belongs to it without being a message.
        snapshot: trace version of its last snapshot, by any actor; None if it has none.
        update: trace version of its last update: an agent's snapshot, not blank, whose digest
            differs from the snapshot before.
        stage: ``initial`` up to and including the first round with an update, else ``refinement``.
        closed: whether the round is over.
    """

    number: int
    first: int
    last: int
    last_act: int | None = None
    human_acts: int = 0
    agent_acts: int = 0
    messages: int = 0
    requested: bool = False
    snapshot: int | None = None
    update: int | None = None
    stage: Stage = "initial"
    closed: bool = False

    @property
    def updated(self) -> bool:
        """Whether the agent updated the shared output in this round."""
        return self.update is not None

    @property
    def words_only(self) -> bool:
        """Whether its only acts are messages of humans, for example a goodbye."""
        return not self.agent_acts and self.messages == self.human_acts


def is_act(record: Record) -> bool:
    """Whether a record is an act of a human or an agent in the joint action trace."""
    return record.kind in ACTS and record.role in ("human", "agent") and record.stream == TRACE


def is_requested(opened: SessionOpened) -> bool:
    """Whether a session is opened with a request; it belongs to round 1 without being a message."""
    return bool((opened.request or "").strip())


def is_blank(snapshot: SnapshotTaken) -> bool:
    """Whether a snapshot holds nothing: empty or white text, an empty structure, or no file."""
    if snapshot.files is not None:
        return not snapshot.files
    content = snapshot.content
    return not content.strip() if isinstance(content, str) else not content and content != 0


def is_unproductive(rating: int | None) -> bool:
    """Whether a rating says that a round was unproductive; a missing rating does not."""
    return rating is not None and rating < PRODUCTIVE


@final
class RoundProjector:
    """Folds trace records into rounds, one record at a time, in constant memory.

    Args:
        convention: how rounds are counted.

    Attributes:
        convention: how rounds are counted.
        number: the number of the current round.
    """

    def __init__(self, convention: Rounds = "handoff") -> None:
        self.convention = convention
        self.number = 1
        self._first = 1
        self._last = 0
        self._last_act: int | None = None
        self._human = self._agent = self._messages = 0
        self._handing = 0  # acts of agents in the current round that hand over
        # Messages of agents that may be a greeting, until the first human act; None if they cannot be one.
        self._greeting: int | None = None
        self._requested = False
        self._snapshot: int | None = None
        self._update: int | None = None
        self._digest: str | None = None
        self._refining = False
        self._acted = False
        self._closed = False

    def opens(self, kind: str, role: str, *, collaborative: bool = False) -> bool:
        """Whether an act of this kind by this role would open a new round now.

        Args:
            kind: the kind of the event.
            role: whose act it is.
            collaborative: for an action, whether it says so (see ``ActionTaken``).
        """
        if role != "human" or kind not in ACTS:
            return False
        if self.convention == "handoff":
            return self._handing > 0
        if kind not in _COLLABORATIVE and not collaborative:
            return False
        return self._acted or self._requested or kind != "MessageSent"

    def feed(self, record: Record) -> Round | None:
        """Takes the next record; returns the round that it closed, if any.

        Records of measurement streams change nothing. You may leave out trace records that are
        neither acts nor the opening or closing of the session; then ``Round.last`` of the open round
        is the last record that was fed.
        """
        if record.stream != TRACE:
            return None
        kind = record.kind
        version = record.version
        over: Round | None = None
        if kind in ACTS:
            role = record.role
            if role == "agent":
                self._agent_acted(message=kind == "MessageSent")
            elif role == "human":
                if self.opens(kind, role, collaborative=self._is_collaborative(record)):
                    over = self._close(version)
                self._greeting = None
                self._human += 1
                self._messages += kind == "MessageSent"
            else:
                self._last = version
                return None
            self._acted = True
            self._last_act = version
            if kind == "SnapshotTaken":
                self._take(record)
        elif kind == "SessionOpened":
            event = record.event
            if isinstance(event, SessionOpened):
                self._requested = is_requested(event)
                if not self._requested and not self._handing and self.number == 1:
                    self._greeting = 0
        elif kind == "SessionClosed":
            self._last = version
            self._closed = True
            return self.current
        self._last = version
        return over

    def feed_agent_action(self, version: int) -> None:
        """Takes the next record if it is an agent's action, which neither opens nor closes a round.

        It does the same as ``feed``, but faster: most records of a long trace are such actions.
        """
        self._agent_acted(message=False)
        self._acted = True
        self._last_act = self._last = version

    def _agent_acted(self, *, message: bool) -> None:
        self._agent += 1
        if self._greeting is None:
            self._handing += 1
        elif message:
            self._greeting += 1
        else:  # the agent began without a request, so its earlier messages are not a greeting
            self._handing = self._greeting + 1
            self._greeting = None

    def copy(self) -> RoundProjector:
        """An independent projector that has taken the same records."""
        twin = RoundProjector.__new__(RoundProjector)
        twin.__dict__.update(self.__dict__)
        return twin

    @property
    def current(self) -> Round:
        """The open round, or the last one if the session is closed."""
        return self._round(self._last, self._closed)

    @property
    def snapshot(self) -> int | None:
        """Trace version of the current round's last snapshot; None if it has none."""
        return self._snapshot

    @property
    def stage(self) -> Stage:
        """Stage of the current round."""
        return "refinement" if self._refining else "initial"

    @property
    def acted(self) -> bool:
        """Whether any actor has acted yet."""
        return self._acted

    def _round(self, last: int, closed: bool) -> Round:
        return Round(
            number=self.number,
            first=self._first,
            last=last,
            last_act=self._last_act,
            human_acts=self._human,
            agent_acts=self._agent,
            messages=self._messages,
            requested=self._requested and self.number == 1,
            snapshot=self._snapshot,
            update=self._update,
            stage=self.stage,
            closed=closed,
        )

    def _is_collaborative(self, record: Record) -> bool:
        """Whether an action addresses the other participants, if the convention counts that."""
        if record.kind != "ActionTaken" or self.convention == "handoff":
            return False
        event = record.event
        return isinstance(event, ActionTaken) and event.collaborative

    def _take(self, record: Record) -> None:
        event = record.event
        if not isinstance(event, SnapshotTaken):  # forgotten
            return
        self._snapshot = record.version
        if record.role == "agent" and event.digest != self._digest and not is_blank(event):
            self._update = record.version
        self._digest = event.digest

    def _close(self, version: int) -> Round:
        """Closes the current round, since the act at this version opens the next."""
        over = self._round(version - 1, closed=True)
        self._refining = self._refining or self._update is not None
        self.number += 1
        self._handing = 0
        self._first = version
        self._last_act = self._snapshot = self._update = None
        self._human = self._agent = self._messages = 0
        return over
