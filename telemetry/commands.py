"""Deeds: what was done, before the log knows at which version; they become events as it is written.

An event may refer to others by trace version, and another process may append to the same session.
So a deed is turned into events only when it is its turn to be written, from the trace as it is then,
and again if the log turns out to be ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, final

import msgspec

from ..engine.errors import DuologError, InvalidInput, SessionClosedError, StaleBase
from ..engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalGiven,
    CloseReason,
    Event,
    FeedbackGiven,
    ProgressRated,
    Role,
    SessionClosed,
    SnapshotTaken,
    Unknown,
)
from ..engine.records import ENGINE, ENVIRONMENT, TRACE
from .receipt import Ref, version_of
from .state import Trace

__all__ = (
    "Acting",
    "Approving",
    "Closing",
    "Deed",
    "Fact",
    "Feedback",
    "Opening",
    "Rating",
    "Resolving",
    "Saying",
    "Submitting",
    "Written",
)


class Fact(NamedTuple):
    """An event, and what its envelope says beside who did it and when.

    Attributes:
        event: the event.
        cause: ``stream/version`` of what it answers.
        by: another actor and role than the one who did the deed.
    """

    event: Event | Unknown
    cause: str | None = None
    by: tuple[str, Role] | None = None


class Written(NamedTuple):
    """What a deed comes to: its events in order, and the error that its doer is told, if any."""

    facts: Sequence[Fact]
    error: DuologError | None = None


class Deed(Protocol):
    """Something that was done."""

    def write(self, trace: Trace, session: str) -> Written:
        """The events, given the trace before them; none where there is nothing to write.

        Raises:
            SessionClosedError: the session is closed.
            InvalidInput: it refers to something that is not there.
            NotRecorded: it refers to something that was not recorded.
        """
        ...

    def repeat(self, held: object) -> Event | Unknown:
        """The first event once more, as it refers to others in the record that has its id."""
        ...


def _check_open(trace: Trace, session: str) -> None:
    if trace.closed:
        raise SessionClosedError(session)


def _cause(version: int) -> str:
    return f"{TRACE}/{version}"


@final
class Saying(NamedTuple):
    """An event that refers to nothing: a message, a question, a note, a model call."""

    event: Event | Unknown

    def write(self, trace: Trace, session: str) -> Written:
        """The event."""
        _check_open(trace, session)
        return Written((Fact(self.event),))

    def repeat(self, held: object) -> Event | Unknown:
        """The event."""
        return self.event


@final
class Acting(NamedTuple):
    """An action, and its outcome where that is known already."""

    event: ActionTaken
    outcome: ActionResolved | None

    def write(self, trace: Trace, session: str) -> Written:
        """The action, and the outcome with it."""
        _check_open(trace, session)
        if self.outcome is None:
            return Written((Fact(self.event),))
        version = trace.version + 1
        resolved = msgspec.structs.replace(self.outcome, action=version)
        outcome = Fact(resolved, _cause(version), (ENVIRONMENT, "environment"))
        return Written((Fact(self.event), outcome))

    def repeat(self, held: object) -> Event:
        """The action."""
        return self.event


@final
class Resolving(NamedTuple):
    """The outcome of an action that was taken before."""

    action: Ref
    outcome: ActionResolved

    def write(self, trace: Trace, session: str) -> Written:
        """The outcome."""
        _check_open(trace, session)
        version = version_of(self.action, session)
        if version not in trace.in_flight:
            raise InvalidInput(
                f"version {version} of session {session!r} is no action that waits for its outcome"
            )
        resolved = msgspec.structs.replace(self.outcome, action=version)
        return Written((Fact(resolved, _cause(version), (ENVIRONMENT, "environment")),))

    def repeat(self, held: object) -> Event:
        """The outcome, of the same action."""
        action = held.action if isinstance(held, ActionResolved) else 0
        return msgspec.structs.replace(self.outcome, action=action)


@final
class Submitting(NamedTuple):
    """A version of the shared output; ``base`` is what it was made from, None for the latest."""

    event: SnapshotTaken
    base: Ref | None
    overwrite: bool

    def write(self, trace: Trace, session: str) -> Written:
        """The snapshot, or, where its base is outdated, an action that failed."""
        _check_open(trace, session)
        latest = trace.snapshot
        base = latest
        if self.base is not None and not self.overwrite:
            base = version_of(self.base, session)
        if base == latest:
            return Written((Fact(msgspec.structs.replace(self.event, base=latest)),))
        version = trace.version + 1
        error = StaleBase(base, latest)
        refused = ActionResolved(action=version, outcome="failed", error=str(error))
        resolved = Fact(refused, _cause(version), (ENGINE, "environment"))
        return Written((Fact(self._attempt(base)), resolved), error)

    def repeat(self, held: object) -> Event:
        """The snapshot, or the attempt, with the same base."""
        if isinstance(held, ActionTaken):
            base = held.arguments.get("base")
            return self._attempt(base if isinstance(base, int) else None)
        base = held.base if isinstance(held, SnapshotTaken) else None
        return msgspec.structs.replace(self.event, base=base)

    def _attempt(self, base: int | None) -> ActionTaken:
        return ActionTaken(
            name="submit",
            arguments={
                "content": self.event.content,
                "media_type": self.event.media_type,
                "base": base,
                "digest": self.event.digest,
            },
        )


@final
class Approving(NamedTuple):
    """An approval given or denied."""

    asked: Ref
    event: ApprovalGiven

    def write(self, trace: Trace, session: str) -> Written:
        """The approval."""
        _check_open(trace, session)
        version = version_of(self.asked, session)
        if version not in trace.asked:
            raise InvalidInput(
                f"nobody asked for an approval at version {version} of session {session!r}"
            )
        given = msgspec.structs.replace(self.event, asked=version)
        return Written((Fact(given, _cause(version)),))

    def repeat(self, held: object) -> Event:
        """The approval, of the same question."""
        asked = held.asked if isinstance(held, ApprovalGiven) else 0
        return msgspec.structs.replace(self.event, asked=asked)


@final
class Rating(NamedTuple):
    """A rating of progress; ``of`` is an act in the round that is rated."""

    event: ProgressRated
    of: Ref | None

    def write(self, trace: Trace, session: str) -> Written:
        """The rating."""
        _check_open(trace, session)
        about = None if self.of is None else version_of(self.of, session)
        number, until = trace.rated_round(about)
        return Written((Fact(msgspec.structs.replace(self.event, round=number, until=until)),))

    def repeat(self, held: object) -> Event:
        """The rating, of the same round."""
        if not isinstance(held, ProgressRated):
            return self.event
        return msgspec.structs.replace(self.event, round=held.round, until=held.until)


@final
class Feedback(NamedTuple):
    """Feedback, on the session or on an event of it; it may follow a closed session."""

    event: FeedbackGiven
    of: Ref | None

    def write(self, trace: Trace, session: str) -> Written:
        """The feedback."""
        about = None if self.of is None else version_of(self.of, session)
        return Written((Fact(msgspec.structs.replace(self.event, of=about)),))

    def repeat(self, held: object) -> Event:
        """The feedback, on the same thing."""
        about = held.of if isinstance(held, FeedbackGiven) else None
        return msgspec.structs.replace(self.event, of=about)


@final
class Opening(NamedTuple):
    """The session begins, if the log does not hold it yet: whatever is written first opens it."""

    def write(self, trace: Trace, session: str) -> Written:
        """Nothing of its own."""
        return Written(())

    def repeat(self, held: object) -> Event:
        """What there is."""
        if isinstance(held, Event):
            return held
        raise InvalidInput("an opening has no id of its own")


@final
class Closing(NamedTuple):
    """The session ends; nothing where it has ended already."""

    reason: CloseReason
    by: str
    detail: str

    def write(self, trace: Trace, session: str) -> Written:
        """The outcomes of actions in flight, cancelled, and the close."""
        if trace.closed:
            return Written(())
        cancelled = [
            Fact(
                ActionResolved(action=action, outcome="cancelled"),
                _cause(action),
                (ENGINE, "environment"),
            )
            for action in trace.in_flight
        ]
        closed = SessionClosed(reason=self.reason, by=self.by, detail=self.detail)
        return Written((*cancelled, Fact(closed)))

    def repeat(self, held: object) -> Event:
        """The close."""
        return SessionClosed(reason=self.reason, by=self.by, detail=self.detail)
