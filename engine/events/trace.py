"""Trace events: the acts of the actors, and the engine's responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal, TypeAlias

from .parts import JSON, CloseReason, Event, Origin, Participant, Tokens

__all__ = (
    "UNKNOWN_MODEL",
    "ActionResolved",
    "ActionTaken",
    "ActorFailed",
    "ApprovalAsked",
    "ApprovalGiven",
    "DecisionSource",
    "DraftDropped",
    "FeedbackGiven",
    "MessageSent",
    "ModelCalled",
    "NoteTaken",
    "Nudged",
    "ProfileChanged",
    "SessionClosed",
    "SessionOpened",
    "SnapshotTaken",
    "TurnYielded",
)


class SessionOpened(Event, frozen=True):
    """A collaboration on one task instance began.

    Attributes:
        task: name of the task, e.g. ``travel``.
        instance: which instance of it.
        participants: humans and agents.
        seed: the seed of all randomness in the session; None for a session with people or products.
        clock: ``utc`` (times are UTC epoch seconds) or ``virtual`` (simulated seconds from 0).
        request: the task text, if all participants have it and it is not a message.
        config: settings that shape the session (limits, timing, group labels, ...).
        private: per owner (a participant's or a scorer's name) what only it may see, e.g. the
            hidden profile; in no view but its owner's.
        forked_from: origin of a fork.
        problem: which problem it was, by content: see ``problem.problem_key``; in imported sessions the id
            that the data set gives it. None if it is not known, or is to be derived from the rest.
        package: version of Duolog that opened it.
        engine: number of the engine that played it; it changes if re-executing an older session
            would do something else. 1 in sessions that were recorded before there were numbers.
    """

    task: str
    instance: str
    participants: tuple[Participant, ...]
    clock: Literal["utc", "virtual"]
    seed: int | None = None
    request: str | None = None
    config: Mapping[str, JSON] = {}
    private: Mapping[str, JSON] = {}
    forked_from: Origin | None = None
    problem: str | None = None
    package: str = ""
    engine: int = 1


class MessageSent(Event, frozen=True):
    """An actor said something to the others (``to`` empty), or to those named.

    Attributes:
        text: the text of the message.
        to: names of the receivers; empty for all others.
        cut: why the text is only the beginning of the message; None if the message is whole.
    """

    text: str
    to: tuple[str, ...] = ()
    cut: str | None = None


class ActionTaken(Event, frozen=True):
    """An actor acted on the task environment; the outcome follows as ``ActionResolved``.

    A snapshot that was refused is recorded as an action named ``submit`` that failed.

    Attributes:
        name: the name of the action.
        arguments: by name.
        raw: the arguments, or the whole call, as written, where ``arguments`` does not give them
            back: they could not be read, or were spelled in another way.
        collaborative: it was meant for the others, not for the environment, and is no message or
            approval in itself: a message that could not be sent, an answer to nothing that was
            asked. By a human, it opens a round where each human turn does.
    """

    name: str
    arguments: Mapping[str, JSON] = {}
    raw: str | None = None
    collaborative: bool = False


class ActionResolved(Event, frozen=True):
    """An action had its outcome.

    Attributes:
        action: trace version of the ``ActionTaken``.
        outcome: ``ok``, ``failed`` (with ``error``) or ``cancelled`` (the session closed first).
        observation: the part of the outcome that the actor sees.
        error: why it failed, in words that the one who acted can use.
    """

    action: int
    outcome: Literal["ok", "failed", "cancelled"]
    observation: JSON = None
    error: str | None = None


class SnapshotTaken(Event, frozen=True):
    """The shared output after an edit: a text, a structure, or several files.

    Attributes:
        content: text, or structure, in full. Of several files: the texts of those that changed
            since the snapshot before, by path.
        digest: the digest of the content (see ``codec.digest``), of several files of ``files``;
            equal digests mean equal outputs.
        media_type: e.g. ``text/markdown`` or ``application/json``.
        base: trace version of the snapshot that it was made from; None for the first.
        files: of several files: the digest of each, by path, unchanged ones included. None for a
            text or a structure.
        shown: the unified diffs that the human was shown of this edit, by path.
    """

    content: JSON
    digest: str
    media_type: str = "text/plain"
    base: int | None = None
    files: Mapping[str, str] | None = None
    shown: Mapping[str, str] = {}


DecisionSource: TypeAlias = Literal["person", "rule", "setting"]
"""The ways in which an approval is decided."""


class ApprovalAsked(Event, frozen=True):
    """An actor asked for leave to do something.

    Attributes:
        question: in words.
        action: name of the action in question; None if there is none.
        arguments: the arguments of that action.
        to: names of those who are asked; empty for all.
        shown: digest of what was shown for the decision (see ``codec.digest``); None if unknown.
        risk: how risky the asker said the action is, in its words, e.g. ``high``; None if it said nothing.
    """

    question: str
    action: str | None = None
    arguments: Mapping[str, JSON] = {}
    to: tuple[str, ...] = ()
    shown: str | None = None
    risk: str | None = None


class ApprovalGiven(Event, frozen=True):
    """An approval was given or denied, or it expired.

    If a rule or a setting decided, or the request expired, the actor is the environment: such a
    decision is not an act of a human.

    Attributes:
        asked: trace version of the ``ApprovalAsked``.
        approved: whether approval was given.
        comment: free text.
        source: who decided: a ``person``, a ``rule`` that looks at the request, or a ``setting`` that
            does not, such as "approve everything". None if unknown.
        expired: no answer came in time, so approval was not given.
    """

    asked: int
    approved: bool
    comment: str = ""
    source: DecisionSource | None = None
    expired: bool = False


class NoteTaken(Event, frozen=True):
    """An actor's own memory, visible to it alone."""

    text: str


class DraftDropped(Event, frozen=True):
    """An actor abandoned a draft because of news. This is not an act, and it is private to the actor
    and to scorers. The time counts as spent by the actor; the words do not count.

    Attributes:
        text: the drafted message; empty if the draft was not a message.
        actions: names of the drafted actions: a task action, ``submit``, ``ask``, ``approve`` or
            ``finish``.
        seconds: working time already spent on the draft.
        of: working time that the whole draft would have taken, seconds.
    """

    text: str = ""
    actions: tuple[str, ...] = ()
    seconds: float = 0.0
    of: float = 0.0


class ProfileChanged(Event, frozen=True):
    """A human's goals, knowledge or wishes changed. This is not an act, and it is private to the
    human and to scorers.

    At the end of its round the output is scored again, against the new goals.

    Attributes:
        owner: the human: a participant's name.
        profile: the owner's new private part, in full; it replaces the one in the opening.
        reason: the cause of the change.
    """

    owner: str
    profile: JSON
    reason: str = ""


class TurnYielded(Event, frozen=True):
    """An actor chose to wait and leave the turn to the others."""

    reason: str = ""


class Nudged(Event, frozen=True):
    """The engine woke an actor (``to``) because all actors were waiting; not a chat message."""

    to: str
    reason: str = ""


class FeedbackGiven(Event, frozen=True):
    """Feedback that a product collects from people; may follow a closed session.

    Attributes:
        thumbs: ``up`` or ``down``.
        edits_kept: share of the agent's output that survived, in [0, 1].
        comment: free text.
        of: trace version of the subject of the feedback; None for the session as a whole.
    """

    thumbs: Literal["up", "down"] | None = None
    edits_kept: float | None = None
    comment: str = ""
    of: int | None = None


UNKNOWN_MODEL: Final = "unknown"
"""The model of a call if its source does not say it."""


class ModelCalled(Event, frozen=True):
    """A model was asked and answered; durable before anything that follows from the reply.

    Attributes:
        model: as it was asked for.
        purpose: what for, e.g. ``act``, ``plan``, ``judge``.
        request: digest of the whole request.
        reply: the text and tool calls, so that a replay works without a model.
        tokens: as the response counts them.
        latency: seconds; modelled under a virtual clock.
        cost: US dollars; None if the price is unknown.
        error: if the call failed, the kind of error, and what it said
            (``reply`` is None then).
        attempt: 1 for the first try.
    """

    model: str
    purpose: str
    request: str
    reply: JSON = None
    tokens: Tokens = Tokens()
    latency: float = 0.0
    cost: float | None = None
    error: str | None = None
    attempt: int = 1


class ActorFailed(Event, frozen=True):
    """An actor raised; the session closes as ``failed``."""

    error: str
    type: str


class SessionClosed(Event, frozen=True):
    """The session ended; ``by`` names the actor, or the engine's rule, and ``detail`` says how.

    Schema 2 knows the reasons ``abandoned`` and ``ended``. In schema 1 a simulated user that gave up
    closed its session as ``finished`` with a certain detail; it is read as ``abandoned``.
    """

    schema: ClassVar[int] = 2

    reason: CloseReason
    by: str
    detail: str = ""
