"""The verbs of a recorded session: one call for each thing that a human or an agent does.

The same verbs serve asynchronous and synchronous code. Only the return type ``R`` differs: a
coroutine for a ``Receipt``, or the ``Receipt`` itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Generic, Literal, TypeAlias, TypeVar, final

import msgspec

from ..engine.codec import digest
from ..engine.errors import InvalidInput, error_text
from ..engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    NoteTaken,
    ProfileChanged,
    ProgressRated,
    Role,
    SnapshotTaken,
    Tokens,
    TurnYielded,
    Unknown,
)
from ..engine.events.trace import DecisionSource
from ..engine.session.commands import (
    UNNAMED,
    Command,
    GiveApproval,
    GiveFeedback,
    RateProgress,
    RecordEvent,
    ResolveAction,
    SubmitSnapshot,
    TakeAction,
    edit_files,
)
from .jsonable import plain, plain_mapping, shown, text
from .queue import QueuedCommand, SessionQueue
from .receipt import Awaited, Receipt, Ref, check_ref
from .tracing import current_traceparent

__all__ = (
    "Put",
    "R",
    "RecordedActor",
    "StreamedMessage",
)


R = TypeVar("R")
T = TypeVar("T")

Put: TypeAlias = Callable[[SessionQueue, QueuedCommand, bool | None], R]
"""Hands a command over; the last argument says whether to wait until it is durable, None for the
log's default."""

_NO_TOKENS = Tokens()


@final
class RecordedActor(Generic[R]):
    """A human or an agent of a session that is recorded.

    Each verb hands an event over and returns at once, unless ``durable`` asks to wait until it is
    in the log. In asynchronous code every verb is awaited. All verbs take:

    - ``id``: your id for this event, unique in the session. An event that is sent again with the
      same id and contents is recorded once, so a queue or a client may retry. Other calls can refer
      to the event by this id.
    - ``at``: when it happened, UTC epoch seconds, if that is not now.
    - ``durable``: wait until it is in the log, and raise an error if it cannot be written (see
      ``Receipt.written``).

    Verbs that refer to another event of the session (``of``, ``asked``, ``action``, ``base``) take
    its receipt, its record, its trace version, or the ``id`` that you gave it. If the session has no
    such event, the call is refused, see ``Receipt.written``.

    Attributes:
        name: who; unique in the session.
        role: human or agent.
    """

    def __init__(self, queue: SessionQueue, name: str, role: Role, put: Put[R]) -> None:
        self.name = name
        self.role: Role = role
        self._queue = queue
        self._put = put

    # --- talking ----------------------------------------------------------------------------------

    def says(
        self,
        message: str,
        *,
        to: Sequence[str] = (),
        cut: str | None = None,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Sends a message to all others, or to those named.

        Args:
            message: the text.
            to: names of the receivers; empty for all others.
            cut: why the text is only the beginning of the message, if it is; see ``saying``.
            id: see the class.
            at: see the class.
            durable: see the class.
        """
        event = MessageSent(
            text=text(message, "a message"),
            to=_names(to),
            cut=None if cut is None else text(cut, "a reason"),
        )
        return self._do("says", RecordEvent(event), None, id, at, durable)

    def saying(
        self,
        *,
        to: Sequence[str] = (),
        id: str | None = None,
        durable: bool | None = None,
    ) -> StreamedMessage[R]:
        """Sends a message that comes in pieces, as a model streams it. It is recorded as one message.

        An (asynchronous) context manager whose ``write`` takes the pieces. If the block raises or is
        cancelled, the message is recorded as far as it came, and ``cut`` says why it ends there::

            async with session.agent.saying() as message:
                async for piece in stream:
                    message.write(piece)
        """

        def say(said: str, cut: str | None) -> R:
            return self.says(said, to=to, cut=cut, id=id, durable=durable)

        return StreamedMessage(say)

    def asks(
        self,
        question: str,
        *,
        action: str | None = None,
        arguments: Mapping[str, object] | None = None,
        to: Sequence[str] = (),
        shows: object = None,
        risk: str | None = None,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Asks for approval to do something; pass the receipt to ``approves``.

        Args:
            question: the question, as text.
            action: name of the action in question.
            arguments: the arguments of that action.
            to: names of the participants who are asked; empty for all.
            shows: material for the decision, such as a diff. Only its digest is recorded.
            risk: how risky the agent says the action is, in its words.
            id: see the class.
            at: see the class.
            durable: see the class.
        """
        event = ApprovalAsked(
            question=text(question, "a question"),
            action=None if action is None else text(action, "an action"),
            arguments=plain_mapping(arguments or {}),
            to=_names(to),
            shown=None if shows is None else digest(plain(shows)),
            risk=None if risk is None else text(risk, "a risk"),
        )
        return self._do("asks", RecordEvent(event), None, id, at, durable)

    def approves(
        self,
        asked: Ref,
        *,
        approved: bool = True,
        comment: str = "",
        source: DecisionSource | None = None,
        expired: bool = False,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Gives the approval that was asked for, or denies it (``approved=False``).

        Args:
            asked: the receipt of ``asks``.
            approved: whether approval is given.
            comment: free text.
            source: who decided: ``person``, ``rule`` or ``setting``. A decision by a rule or a
                setting is recorded as the environment's, not as an act of this actor.
            expired: there was no answer in time; ``approved`` must then be False.
            id: see the class.
            at: see the class.
            durable: see the class.

        Raises:
            InvalidInput: a value of the wrong kind, or an expired approval that was given.
        """
        if type(approved) is not bool:
            raise InvalidInput(f"approved is True or False, not {shown(approved)}")
        if source not in (None, "person", "rule", "setting"):
            raise InvalidInput(f"source is person, rule or setting, not {shown(source)}")
        if expired and approved:
            raise InvalidInput("an approval that expired was not given: pass approved=False")
        event = ApprovalGiven(
            asked=0,
            approved=approved,
            comment=text(comment, "a comment"),
            source=source,
            expired=expired,
        )
        return self._do("approves", GiveApproval(event), asked, id, at, durable)

    # --- working ----------------------------------------------------------------------------------

    def acts(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        result: object = msgspec.UNSET,
        error: str | None = None,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Takes an action, e.g. calls a tool; with its outcome, if that is known already.

        Args:
            name: the name of the action.
            arguments: its arguments.
            result: its outcome. If left out, the action is in flight until ``resolves``.
            error: why it failed.
            id: see the class; the outcome that goes with it has it with ``/1`` behind.
            at: see the class.
            durable: see the class.
        """
        event = ActionTaken(name=text(name, "an action"), arguments=plain_mapping(arguments or {}))
        known = error is not None or result is not msgspec.UNSET
        outcome = _outcome(result, error) if known else None
        return self._do("acts", TakeAction(event, outcome), None, id, at, durable)

    def resolves(
        self,
        action: Ref,
        result: object = None,
        *,
        error: str | None = None,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Records the outcome of an action that is in flight: its result, or why it failed."""
        return self._do("resolves", ResolveAction(_outcome(result, error)), action, id, at, durable)

    def submits(
        self,
        content: object,
        *,
        media_type: str | None = None,
        base: Ref | None = None,
        overwrite: bool = False,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Submits a full version of the shared output: a draft, a plan, a document, code.

        Args:
            content: text, or structure.
            media_type: e.g. ``text/markdown``; by default plain text or JSON.
            base: the snapshot that it was made from; if that is no longer the latest, this one is
                refused. If left out, it counts as made from the latest.
            overwrite: accept it in any case.
            id: see the class.
            at: see the class.
            durable: see the class. If the base looks outdated, the call always waits, and raises
                ``StaleBase`` if the log refuses the snapshot.

        Raises:
            StaleBase: the output has changed since ``base``; the attempt is in the log as an action
                ``submit`` that failed.
        """
        own = plain(content)
        snapshot = SnapshotTaken(
            content=own,
            digest=digest(own),
            media_type=text(
                media_type or ("text/plain" if isinstance(own, str) else "application/json"),
                "a media type",
            ),
        )
        about = None if overwrite else base
        return self._do("submits", SubmitSnapshot(snapshot), about, id, at, durable)

    edits = submits

    def submits_files(
        self,
        changed: Mapping[str, str | None],
        *,
        shown: Mapping[str, str] | None = None,
        media_type: str = "text/plain",
        base: Ref | None = None,
        overwrite: bool = False,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Submits a version of a shared output of several files, such as code.

        Args:
            changed: full texts of the changed files, by path; None for a deleted one. The other
                files stay as they are.
            shown: the unified diffs that the human was shown, by path. If a diff was shown, the
                human reads its additions; otherwise the parts of the file that are new to them.
            media_type: the media type of the texts.
            base: see ``submits``.
            overwrite: see ``submits``.
            id: see the class.
            at: see the class.
            durable: see ``submits``.

        Raises:
            StaleBase: see ``submits``.
        """
        command = edit_files(
            {
                text(path, "a path"): None if held is None else text(held, "a file")
                for path, held in _mapping(changed, "the files").items()
            },
            shown={
                text(path, "a path"): text(diff, "a diff")
                for path, diff in _mapping(shown or {}, "the diffs").items()
            },
            media_type=text(media_type, "a media type"),
        )
        about = None if overwrite else base
        return self._do("submits_files", command, about, id, at, durable)

    def notes(
        self,
        note: str,
        *,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Writes into the actor's own memory, which no other participant sees."""
        return self._do(
            "notes", RecordEvent(NoteTaken(text=text(note, "a note"))), None, id, at, durable
        )

    def changes_profile(
        self,
        profile: object,
        reason: str = "",
        *,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Changes the actor's goals from now on: the full private part, seen only by scorers."""
        event = ProfileChanged(
            owner=self.name, profile=plain(profile), reason=text(reason, "a reason")
        )
        return self._do("changes_profile", RecordEvent(event), None, id, at, durable)

    def yields(
        self,
        reason: str = "",
        *,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Yields the turn to the others, and waits."""
        event = TurnYielded(reason=text(reason, "a reason"))
        return self._do("yields", RecordEvent(event), None, id, at, durable)

    def called_model(
        self,
        model: str,
        *,
        purpose: str = "act",
        request: object = None,
        reply: object = None,
        tokens: Tokens = _NO_TOKENS,
        latency: float = 0.0,
        cost: float | None = None,
        error: str | None = None,
        attempt: int = 1,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Records a call of a model that has answered or failed.

        Args:
            model: as it was asked for.
            purpose: what for, e.g. ``act``, ``plan``, ``judge``.
            request: the whole request; only its digest is recorded.
            reply: what came back.
            tokens: as the response counts them.
            latency: seconds.
            cost: US dollars; None if it is not known.
            error: what went wrong.
            attempt: 1 for the first try.
            id: see the class.
            at: see the class.
            durable: see the class.
        """
        if not isinstance(tokens, Tokens):
            raise InvalidInput(f"tokens are given as Tokens(...), not {shown(tokens)}")
        event = ModelCalled(
            model=text(model, "a model"),
            purpose=text(purpose, "a purpose"),
            request="" if request is None else digest(plain(request)),
            reply=plain(reply),
            tokens=tokens,
            latency=_number(latency, "a latency"),
            cost=None if cost is None else _number(cost, "a cost"),
            error=None if error is None else text(error, "an error"),
            attempt=_whole(attempt, "an attempt"),
        )
        return self._do("called_model", RecordEvent(event), None, id, at, durable)

    def adds(
        self,
        event: Event | Unknown,
        *,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Adds an event unchanged, for adapters: one that no other verb covers, and that does not
        refer to another event. Folds skip an ``Unknown`` event of another system.
        """
        if not isinstance(event, (Event, Unknown)):
            raise InvalidInput(f"an event is added, not {shown(event)}")
        return self._do("adds", RecordEvent(event), None, id, at, durable)

    # --- judging ----------------------------------------------------------------------------------

    def rates(
        self,
        rating: int,
        explanation: str = "",
        *,
        of: Ref | None = None,
        round: int | None = None,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Rates the progress of a round, 1 to 5: by default the latest in which an agent acted.

        It is refused if there is no such round, see ``Receipt.written``.

        A first rating counts if it comes before the human's next message. A second one by the same
        rater replaces it at any time.

        Args:
            rating: 1 (none at all) to 5.
            explanation: in the rater's words.
            of: an event in the round that is rated, if it is another one.
            round: number of the round that is rated, likewise.
            id: see the class.
            at: see the class.
            durable: see the class.

        Raises:
            InvalidInput: the rating is not 1 to 5.
        """
        if type(rating) is not int or rating not in (1, 2, 3, 4, 5):
            raise InvalidInput(f"a rating is 1 to 5, not {rating!r}")
        event = ProgressRated(
            round=UNNAMED if round is None else _whole(round, "a round"),
            rating=rating,
            explanation=text(explanation, "a reason"),
        )
        return self._do("rates", RateProgress(event), of, id, at, durable)

    def feedback(
        self,
        *,
        thumbs: Literal["up", "down"] | None = None,
        edits_kept: float | None = None,
        comment: str = "",
        of: Ref | None = None,
        id: str | None = None,
        at: float | None = None,
        durable: bool | None = None,
    ) -> R:
        """Gives feedback on the session, or on an event of it; may follow the session's close.

        Args:
            thumbs: ``up`` or ``down``.
            edits_kept: share of the agent's output that survived, in [0, 1].
            comment: free text.
            of: what it is about; None for the session as a whole.
            id: see the class.
            at: see the class.
            durable: see the class.

        Raises:
            InvalidInput: thumbs neither up nor down, or a share outside of [0, 1].
        """
        if thumbs not in (None, "up", "down"):
            raise InvalidInput(f"thumbs are 'up' or 'down', not {thumbs!r}")
        if edits_kept is not None and not 0.0 <= _number(edits_kept, "edits_kept") <= 1.0:
            raise InvalidInput(f"the share of edits kept lies in [0, 1], not {edits_kept!r}")
        event = FeedbackGiven(
            thumbs=thumbs, edits_kept=edits_kept, comment=text(comment, "a comment")
        )
        return self._do("feedback", GiveFeedback(event), of, id, at, durable)

    def _do(
        self,
        verb: str,
        command: Command,
        about: Ref | None,
        id: str | None,
        at: float | None,
        durable: bool | None,
    ) -> R:
        if id is not None and not text(id, "an id"):
            raise InvalidInput("an id is a text that is not empty")
        at = time.time() if at is None else _number(at, "a time")
        queue = self._queue
        if about is not None or isinstance(command, (GiveApproval, ResolveAction)):
            check_ref(about, queue.session)
        receipt = Receipt(queue.session, id)
        traceparent = current_traceparent()
        if traceparent is not None and not isinstance(command.event, Unknown):
            command = _traced(command, traceparent)
        entry = QueuedCommand(verb, command, self.name, self.role, at, receipt, id, about)
        return self._put(queue, entry, durable)


def _traced(command: Command, traceparent: str) -> Command:
    replace = msgspec.structs.replace
    changed = {"event": replace(command.event, traceparent=traceparent)}
    if isinstance(command, TakeAction) and command.outcome is not None:
        changed["outcome"] = replace(command.outcome, traceparent=traceparent)
    return replace(command, **changed)


def _outcome(result: object, error: str | None) -> ActionResolved:
    """An outcome; the action it belongs to is filled in later."""
    return ActionResolved(
        action=0,
        outcome="ok" if error is None else "failed",
        observation=None if result is msgspec.UNSET else plain(result),
        error=error if error is None else _why(error),
    )


def _why(error: object) -> str:
    """Why an action failed; an exception, say, as it is shown."""
    return text(error, "an error") if isinstance(error, str) else shown(error)


def _names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of participants; a text alone is one name."""
    if isinstance(names, str):
        return (text(names, "a name in to"),)
    if not isinstance(names, Sequence):
        raise InvalidInput(f"to is a sequence of names, not {shown(names)}")
    return tuple(text(name, "a name in to") for name in names)


def _mapping(value: Mapping[str, T], what: str) -> Mapping[str, T]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} are a mapping of texts by path, not {shown(value)}")
    return value


def _number(value: object, what: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]  # what is not a number raises
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(f"{what} must be a finite number, not {shown(value)}")
    return number


def _whole(value: object, what: str) -> int:
    if type(value) is not int:
        raise InvalidInput(f"{what} must be a whole number, not {shown(value)}")
    return value


@final
class StreamedMessage(Generic[R]):
    """A message that comes in pieces; it is recorded as one when the block is left.

    If the block raises, the text so far is recorded as the beginning of a message, with the reason.
    If there is no text yet, nothing is recorded.

    Args:
        say: records the text, and why it was cut off if it was.
    """

    def __init__(self, say: Callable[[str, str | None], R]) -> None:
        self._say = say
        self._pieces: list[str] = []

    def write(self, piece: str) -> None:
        """Takes the next piece.

        Raises:
            InvalidInput: it is not a text.
        """
        if not isinstance(piece, str):
            raise InvalidInput(f"a piece must be a text, not {type(piece).__name__}")
        self._pieces.append(piece)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    async def __aenter__(self: StreamedMessage[Awaited]) -> StreamedMessage[Awaited]:
        return self

    async def __aexit__(
        self: StreamedMessage[Awaited],
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.text:
            await self._say(self.text, _cut_by(kind, error))

    def __enter__(self: StreamedMessage[Receipt]) -> StreamedMessage[Receipt]:
        return self

    def __exit__(
        self: StreamedMessage[Receipt],
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.text:
            self._say(self.text, _cut_by(kind, error))


def _cut_by(kind: type[BaseException] | None, error: BaseException | None) -> str | None:
    """Why a stream ended early; None if it did not."""
    if kind is None:
        return None
    # The message of a cancellation is about the program's tasks, so it is left out.
    said = error_text(error) if isinstance(error, Exception) else ""
    return f"{kind.__name__}: {said}" if said else kind.__name__
