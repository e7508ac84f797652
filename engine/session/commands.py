"""Commands, and the one handler that turns them into drafts for a trace.

A command asks to record something. It comes from an actor's context, a product's recorder, HTTP, or an
importer. The handler knows the rules: the base of a snapshot and when it is refused, the round of a
rating, the event that another one answers, the actions that a close cancels. It decides by the state
of the trace, and never waits or writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeAlias, final

import msgspec

from .. import codec
from ..errors import InvalidInput, SessionClosedError, StaleBase
from ..events import (
    ActionResolved,
    ActionTaken,
    ApprovalGiven,
    Event,
    FeedbackGiven,
    ProgressRated,
    Role,
    SessionClosed,
    SnapshotTaken,
    Unknown,
)
from ..files import changed_files, files_problem
from ..records import ENGINE, ENVIRONMENT, TRACE, Draft
from .state import TraceState

__all__ = (
    "UNNAMED",
    "CloseSession",
    "Command",
    "CommandResult",
    "GiveApproval",
    "GiveFeedback",
    "RateProgress",
    "RecordEvent",
    "ResolveAction",
    "Sender",
    "SubmitSnapshot",
    "TakeAction",
    "about",
    "command_of",
    "edit_files",
    "handle",
    "handle_all",
    "is_plain",
    "repeated",
)

_LIKERT: Final = 5

UNNAMED: Final = 0
"""Stands for the round in a ``ProgressRated`` that is yet to be found by the handler."""


@final
class RecordEvent(msgspec.Struct, frozen=True, gc=False):
    """Record an event without reference to another: a message, a question, a note, a model call."""

    event: Event | Unknown


@final
class TakeAction(msgspec.Struct, frozen=True, gc=False):
    """Take an action; with its outcome, if that is known already."""

    event: ActionTaken
    outcome: ActionResolved | None = None


@final
class ResolveAction(msgspec.Struct, frozen=True, gc=False):
    """Record the outcome of an action that is in flight."""

    event: ActionResolved


@final
class SubmitSnapshot(msgspec.Struct, frozen=True, gc=False):
    """Put up a version of the shared output.

    Attributes:
        event: the snapshot; its base is filled in.
        base: trace version of the snapshot that it was made from, None for none. If that is not
            the latest it is refused. Left out, it is made from the latest.
        removed: of several files: the paths of those that are gone; the event's map then has only
            those that changed, and the others are added to it. None if the event has all files.
    """

    event: SnapshotTaken
    base: int | msgspec.UnsetType | None = msgspec.UNSET
    removed: tuple[str, ...] | None = None


@final
class GiveApproval(msgspec.Struct, frozen=True, gc=False):
    """Give or deny an approval that was asked for."""

    event: ApprovalGiven


@final
class RateProgress(msgspec.Struct, frozen=True, gc=False):
    """Rate the progress of a round.

    Attributes:
        event: the rating. Where its round is ``UNNAMED``, it is about the round of its ``until``;
            if that is missing too, about the latest round that holds an act of an agent.
        of: trace version of an event in the round, instead.
    """

    event: ProgressRated
    of: int | None = None


@final
class GiveFeedback(msgspec.Struct, frozen=True, gc=False):
    """Give feedback on the session or an event of it; it may follow the close."""

    event: FeedbackGiven


@final
class CloseSession(msgspec.Struct, frozen=True, gc=False):
    """End the session, and cancel actions in flight. Does nothing if it has ended already."""

    event: SessionClosed


Command: TypeAlias = (
    RecordEvent
    | TakeAction
    | ResolveAction
    | SubmitSnapshot
    | GiveApproval
    | RateProgress
    | GiveFeedback
    | CloseSession
)
"""Any command."""


def edit_files(
    changed: Mapping[str, str | None],
    *,
    shown: Mapping[str, str] | None = None,
    media_type: str = "text/plain",
    base: int | msgspec.UnsetType | None = msgspec.UNSET,
) -> SubmitSnapshot:
    """The command that puts up a new version of some files; the others stay as they are.

    Args:
        changed: the whole texts of the files that changed, by path; None for one that is gone.
        shown: the unified diffs that the human was shown, by path.
        media_type: the media type of the texts.
        base: see ``SubmitSnapshot``.
    """
    snapshot = changed_files({}, changed, shown=shown, media_type=media_type)
    removed = tuple(path for path, text in changed.items() if text is None)
    return SubmitSnapshot(snapshot, base, removed)


def command_of(event: Event | Unknown) -> Command:
    """The command that records an event, and fills in the base of a snapshot or the round of a
    rating if the event omits it.
    """
    command = _COMMANDS.get(type(event))
    return RecordEvent(event) if command is None else command(event)


def is_plain(event: Event | Unknown, state: TraceState) -> bool:
    """Whether the command that records an event gives only its draft, in this state of the trace."""
    return state.closed is None and type(event) not in _COMMANDS


def _snapshot(event: SnapshotTaken) -> SubmitSnapshot:
    return SubmitSnapshot(event, msgspec.UNSET if event.base is None else event.base)


_COMMANDS: Mapping[type[object], Callable[..., Command]] = {
    ActionResolved: ResolveAction,
    SnapshotTaken: _snapshot,
    ApprovalGiven: GiveApproval,
    ProgressRated: RateProgress,
    FeedbackGiven: GiveFeedback,
    SessionClosed: CloseSession,
}
"""By event: the command that records it, if not ``RecordEvent``."""


def about(command: Command, version: int) -> Command:
    """The command with a reference to an event: the one that it resolves, answers or rates, or the
    base of a snapshot.
    """
    replace = msgspec.structs.replace
    match command:
        case ResolveAction(resolved):
            return ResolveAction(replace(resolved, action=version))
        case SubmitSnapshot():
            return replace(command, base=version)
        case GiveApproval(given):
            return GiveApproval(replace(given, asked=version))
        case RateProgress():
            return replace(command, of=version)
        case GiveFeedback(feedback):
            return GiveFeedback(replace(feedback, of=version))
    return command


def repeated(command: Command, held: object) -> Event | Unknown:
    """The event of a command that is sent again, with the references of the recorded event.

    Version numbers are filled in when a command is handled, so that a repetition can only be
    compared with the record after taking them from there. So can its trace: it comes with another
    request.
    """
    replace = msgspec.structs.replace
    if isinstance(held, Event) and isinstance(command.event, Event):
        event = replace(command.event, traceparent=held.traceparent)
        command = replace(command, event=event)
    match command:
        case ResolveAction(resolved) if isinstance(held, ActionResolved):
            return replace(resolved, action=held.action)
        case SubmitSnapshot(snapshot, removed=removed) if isinstance(held, SnapshotTaken):
            if removed is not None and held.files is not None:
                snapshot = _with_others(snapshot, held.files, removed, held.content)
            return replace(snapshot, base=held.base)
        case SubmitSnapshot(snapshot) if isinstance(held, ActionTaken):
            base = held.arguments.get("base")
            return _attempt(snapshot, base if isinstance(base, int) else None)
        case GiveApproval(given) if isinstance(held, ApprovalGiven):
            return replace(given, asked=held.asked)
        case RateProgress(rated) if isinstance(held, ProgressRated):
            number = held.round if rated.round == UNNAMED else rated.round
            return replace(rated, round=number, until=held.until)
        case GiveFeedback(feedback) if isinstance(held, FeedbackGiven):
            return replace(feedback, of=held.of)
    return command.event


@final
class Sender(msgspec.Struct, frozen=True, gc=False):
    """The sender of a command, and the envelope of its events.

    Attributes:
        actor: the sender's name.
        role: the actor's role.
        time: seconds on the session's clock.
        id: the caller's id. Further events of the command append ``/1``, ``/2`` to it.
        seen: trace version that the actor's view had reached.
    """

    actor: str
    role: Role
    time: float
    id: str | None = None
    seen: int | None = None


@final
class CommandResult(msgspec.Struct, frozen=True, gc=False):
    """The result of a command.

    Attributes:
        drafts: its events in order; none if there is nothing to record.
        error: why it was refused, if that is recorded as a failed action.
        main: index of the draft with the event that the command is named after.
    """

    drafts: Sequence[Draft]
    error: StaleBase | None = None
    main: int = 0


def handle(command: Command, state: TraceState, sender: Sender) -> CommandResult:
    """Turns a command into drafts, in the current state of the trace.

    Raises:
        SessionClosedError: the session is closed, and the command is neither feedback nor a close.
        InvalidInput: the command refers to a missing event, or a rating is not 1 to 5.
    """
    if state.closed is not None and not isinstance(command, GiveFeedback):
        if isinstance(command, CloseSession):
            return CommandResult(())
        raise SessionClosedError(state.session)
    return _HANDLERS[type(command)](command, state, sender)


def handle_all(commands: Sequence[Command], state: TraceState, sender: Sender) -> Sequence[Draft]:
    """Turns commands that are sent together into drafts, each in the state after those before it.

    Commands after a refused one are dropped: the actor decided them on the assumption that it takes
    effect.

    Raises:
        SessionClosedError, InvalidInput: as ``handle``.
    """
    last = len(commands) - 1
    if not last:
        return handle(commands[0], state, sender).drafts
    drafts: list[Draft] = []
    state = state.copy()
    for number, command in enumerate(commands):
        made = handle(command, state, sender)
        drafts += made.drafts
        if made.error is not None:
            break
        if number < last:
            for draft in made.drafts:
                state.feed_draft(draft)
    return drafts


def _record(
    command: RecordEvent | GiveFeedback, state: TraceState, sender: Sender
) -> CommandResult:
    draft = Draft(
        command.event,
        sender.actor,
        sender.role,
        sender.time,
        sender.id,
        None,
        sender.seen,
    )
    return CommandResult((draft,))


def _take(command: TakeAction, state: TraceState, sender: Sender) -> CommandResult:
    """The action, and its outcome with it."""
    taken = _draft(sender, command.event)
    if command.outcome is None:
        return CommandResult((taken,))
    outcome = msgspec.structs.replace(command.outcome, action=state.version + 1)
    return CommandResult((taken, _outcome(sender, outcome, 1, by=ENVIRONMENT)))


def _resolve(command: ResolveAction, state: TraceState, sender: Sender) -> CommandResult:
    action = command.event.action
    if action not in state.in_flight:
        raise InvalidInput(
            f"version {action} of session {state.session!r} is not an action that waits for its outcome"
        )
    by = sender.actor if sender.role == "environment" else ENVIRONMENT
    return CommandResult((_outcome(sender, command.event, 0, by=by),))


def _submit(command: SubmitSnapshot, state: TraceState, sender: Sender) -> CommandResult:
    """The snapshot, or a failed action if its base is outdated."""
    latest = state.snapshot
    base = latest if isinstance(command.base, msgspec.UnsetType) else command.base
    if base == latest:
        snapshot = command.event
        if command.removed is not None:
            changed = [p for p, of in (snapshot.files or {}).items() if state.files.get(p) != of]
            snapshot = _with_others(snapshot, state.files, command.removed, changed)
        elif snapshot.files is not None and (problem := files_problem(snapshot, state.files)):
            raise InvalidInput(problem)
        if snapshot.base != latest:
            snapshot = msgspec.structs.replace(snapshot, base=latest)
        return CommandResult((_draft(sender, snapshot),))
    error = StaleBase(base, latest)
    refused = ActionResolved(action=state.version + 1, outcome="failed", error=str(error))
    attempt = _draft(sender, _attempt(command.event, base))
    return CommandResult((attempt, _outcome(sender, refused, 1, by=ENGINE)), error)


def _with_others(
    snapshot: SnapshotTaken, known: Mapping[str, str], removed: Collection[str], carried: object
) -> SnapshotTaken:
    """A snapshot of the files that changed, with the digests of those that did not.

    Args:
        snapshot: the snapshot of the files that changed.
        known: the digests of all files, by path.
        removed: the files that are gone.
        carried: the files whose texts the snapshot carries; other texts are in earlier ones.
    """
    files = {path: of for path, of in known.items() if path not in removed}
    files |= snapshot.files or {}
    content, paths = snapshot.content, carried if isinstance(carried, Collection) else ()
    if isinstance(content, Mapping):
        content = {path: text for path, text in content.items() if path in paths}
    return msgspec.structs.replace(
        snapshot, content=content, files=files, digest=codec.digest(files)
    )


def _attempt(snapshot: SnapshotTaken, base: int | None) -> ActionTaken:
    """A snapshot that was refused, as the action that failed."""
    arguments = {
        "content": snapshot.content,
        "media_type": snapshot.media_type,
        "base": base,
        "digest": snapshot.digest,
    }
    return ActionTaken(name="submit", arguments=arguments)


def _approve(command: GiveApproval, state: TraceState, sender: Sender) -> CommandResult:
    asked = command.event.asked
    if asked not in state.asked:
        raise InvalidInput(
            f"no approval was requested at version {asked} of session {state.session!r}"
        )
    if command.event.approved and command.event.expired:
        raise InvalidInput("an approval that expired was not given: approved is False then")
    if command.event.expired or command.event.source in ("rule", "setting"):
        sender = msgspec.structs.replace(sender, actor=ENVIRONMENT, role="environment", seen=None)
    return CommandResult((_draft(sender, command.event, asked),))


def _rate(command: RateProgress, state: TraceState, sender: Sender) -> CommandResult:
    """The rating with the round that it is about."""
    rated, of = command.event, command.of
    if rated.rating is not None and not 1 <= rated.rating <= _LIKERT:
        raise InvalidInput(f"a rating is 1 to {_LIKERT}, not {rated.rating}")
    named = None if rated.round == UNNAMED else rated.round
    if of is None and named is None:
        of = rated.until
    elif of is None and (rated.until or rated.rounds != "handoff"):
        return CommandResult((_draft(sender, rated),))  # the rating itself names its subject
    number, until = state.rated_round(named, of=of)
    rated = msgspec.structs.replace(rated, round=number, until=until, rounds="handoff")
    return CommandResult((_draft(sender, rated),))


def _close(command: CloseSession, state: TraceState, sender: Sender) -> CommandResult:
    """The outcomes of the actions in flight, cancelled, and the close."""
    drafts = [
        _outcome(sender, ActionResolved(action=action, outcome="cancelled"), number, by=ENGINE)
        for number, action in enumerate(state.in_flight, start=1)
    ]
    return CommandResult((*drafts, _draft(sender, command.event)), main=len(drafts))


_HANDLERS: Mapping[type[Command], Callable[..., CommandResult]] = {
    RecordEvent: _record,
    TakeAction: _take,
    ResolveAction: _resolve,
    SubmitSnapshot: _submit,
    GiveApproval: _approve,
    RateProgress: _rate,
    GiveFeedback: _record,
    CloseSession: _close,
}
"""By command: the function that turns it into drafts, given the state and the sender."""


def _draft(sender: Sender, event: Event | Unknown, cause: int | None = None) -> Draft:
    return Draft(
        event,
        sender.actor,
        sender.role,
        sender.time,
        sender.id,
        None if cause is None else f"{TRACE}/{cause}",
        sender.seen,
    )


def _outcome(sender: Sender, event: ActionResolved, number: int, *, by: str) -> Draft:
    """An outcome. Its role is the environment, whichever actor reports it.

    Args:
        sender: the sender of the command.
        event: the outcome.
        number: its number among the command's further events; 0 if it is the main event.
        by: the engine or the environment.
    """
    ident = sender.id
    if ident is not None and number:
        ident = f"{ident}/{number}"
    cause = f"{TRACE}/{event.action}"
    return Draft(event, by, "environment", sender.time, ident, cause)
