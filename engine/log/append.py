"""An append before the store takes it: checked, redacted and encoded by its caller."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence
from typing import Final, TypeAlias, final

import msgspec

from ..codec import encode_body, kind_of
from ..errors import DuplicateConflict, InvalidInput, PluginFailed, SessionClosedError
from ..events import (
    EVENTS,
    Event,
    Forgotten,
    Role,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    Unknown,
)
from ..files import with_digests
from ..plugins import PluginCall
from ..records import TRACE, Draft, Record, Redact
from ..validation import check_body, check_envelope, check_kind, check_names, read_back
from .contract import Advance

__all__ = (
    "LATER",
    "Append",
    "Envelope",
    "Fold",
    "check_late",
    "checked",
    "erased",
    "named",
    "prepare",
    "redacted",
    "restored",
    "same",
    "stored",
)

Envelope: TypeAlias = tuple[
    str,
    int,
    float,
    str,
    Role,
    str | None,
    int | None,
    str | None,
    bytes | None,
    Event | Unknown | Forgotten,
]
"""A record without its place in the log, in the order of ``Record``'s fields: kind, schema, time,
actor, role, cause, seen, caller's id, body, and the event as it is read back from the body."""

Fold: TypeAlias = SessionOpened | SessionClosed | Forgotten
"""An event that changes its session's entry in the list of sessions, beyond counts and times."""

_AT_ONCE: Final = 1 << 15  # bytes of bodies that are read back at once; the rest waits

_KINDS = {cls: (kind, cls.schema) for kind, cls in EVENTS.items()}
_FOLDED = frozenset({"SessionOpened", "SessionClosed"})


@final
class Append(msgspec.Struct, eq=False, gc=False):  # taking its outcome breaks all cycles
    """One append, checked and encoded, on its way to the log, and then its outcome.

    Attributes:
        session: the session appended to.
        stream: the stream appended to.
        envelopes: one for each draft.
        folded: those of their events that the list of sessions is about; most have none.
        ids: the callers' ids among them.
        feedback: whether all are ``FeedbackGiven``, which may follow a closed session.
        expected: version that the stream must have.
        checkpoint: to be moved along.
        future: where the caller waits for the outcome.
        outcome: the records, or the error; to be relied on once it is settled.
        settled: whether the outcome is final.
        withdrawn: whether its caller was cancelled, so that it need not be written any more.
        late: indexes of the envelopes whose bodies have still to be read back, by ``check_late``.
        after: the append without which this one is not to be written.
    """

    session: str
    stream: str
    envelopes: list[Envelope]
    folded: tuple[Fold, ...]
    ids: tuple[str, ...]
    feedback: bool
    expected: int | None
    checkpoint: Advance | None
    future: asyncio.Future[None] | None = None
    outcome: list[Record] | Exception | None = None
    settled: bool = False
    withdrawn: bool = False
    late: tuple[int, ...] = ()
    after: Append | None = None

    def settle(self) -> None:
        """Says that the outcome is final, and wakes who waits for it."""
        self.settled = True
        if self.future is not None and not self.future.done():
            self.future.set_result(None)

    async def wait(self) -> None:
        """Waits until it is settled; a caller that is cancelled leaves others that wait undisturbed."""
        if self.settled:
            await asyncio.sleep(0)  # others get their turn all the same
        while not self.settled:
            if self.future is None or self.future.done():
                self.future = asyncio.get_running_loop().create_future()
                await self.future
            else:
                await asyncio.wait([self.future])


def prepare(
    session: str,
    drafts: Sequence[Draft],
    stream: str,
    expected: int | None,
    checkpoint: Advance | None,
    redact: Redact | None,
) -> Append:
    """Checks and encodes an append in its caller, so that the writer has little left to do.

    Reading a large body back takes far longer than writing it. Beyond some bodies of ordinary size
    that is left to ``check_late``, which may run in a thread: what is stored is fixed here.

    Raises:
        InvalidInput: an empty session or stream name, nothing to append, an envelope that cannot be
            stored, such as a time that is not a number.
        DuplicateConflict: two drafts with one id.
        SessionClosedError: a trace event behind ``SessionClosed`` in the same append.
        CodecError: an event that JSON cannot say, or that would not be read back as what it is.
        PluginFailed: the redaction hook raised; nothing is written that it has not seen.
    """
    check_names(session, stream)
    if not (drafts or checkpoint):
        raise InvalidInput("an append needs at least one event, or a checkpoint to advance")
    envelopes: list[Envelope] = []
    folded: list[Fold] = []
    ids: dict[str, None] = {}
    late: list[int] = []
    size = 0
    feedback = trace = stream == TRACE
    for draft in drafts:
        if redact is not None:
            draft = redacted(draft, redact)
        event, actor, role, caller_id = draft.event, draft.actor, draft.role, draft.id
        cause, seen = draft.cause, draft.seen
        kind, schema = _KINDS.get(type(event)) or _foreign(event)  # type: ignore[arg-type]
        time = check_envelope(kind, draft.time, actor, role, cause, seen, caller_id)
        body = encode_body(event)
        size += len(body)
        if size <= _AT_ONCE:
            event = read_back(event, kind, schema, body)
        else:
            late.append(len(envelopes))
        if kind != "FeedbackGiven":
            feedback = False
            if folded and trace and isinstance(folded[-1], SessionClosed):
                raise SessionClosedError(session)
        if trace and kind in _FOLDED:
            folded += _folded(event)
        if caller_id is not None:
            _check_id(caller_id, ids, session)
            ids[caller_id] = None
        envelopes.append((kind, schema, time, actor, role, cause, seen, caller_id, body, event))
    append = Append(
        session, stream, envelopes, tuple(folded), tuple(ids), feedback, expected, checkpoint
    )
    if late:
        append.late = tuple(late)
    return append


def check_late(append: Append) -> None:
    """Reads back what ``prepare`` has left.

    Raises:
        CodecError: an event that would not be read back as what it is.
    """
    envelopes = append.envelopes
    for index in append.late:
        kind, schema, time, actor, role, cause, seen, caller_id, body, event = envelopes[index]
        if body is not None and not isinstance(event, Forgotten):
            event = read_back(event, kind, schema, body)
            envelopes[index] = kind, schema, time, actor, role, cause, seen, caller_id, body, event
    late, append.late = append.late, ()
    if append.stream == TRACE and any(envelopes[index][0] in _FOLDED for index in late):
        append.folded = tuple(fold for envelope in envelopes for fold in _folded(envelope[9]))


def erased(record: Record) -> Record:
    """The record without its body."""
    return msgspec.structs.replace(record, body=None, _event=None)


def _folded(event: Event | Unknown | Forgotten) -> tuple[Fold, ...]:
    """The event of a trace, if the list of sessions is about it."""
    return (event,) if isinstance(event, (SessionOpened, SessionClosed)) else ()


def restored(record: Record) -> Append:
    """An append that takes a record as another log held it, behind the version before its own.

    Raises:
        InvalidInput, DuplicateConflict, CodecError: as ``prepare``.
    """
    event = checked(record)
    caller_id, cause, seen = record.caller_id, record.cause, record.seen
    check_names(record.session, record.stream)
    kind, actor, role, body = record.kind, record.actor, record.role, record.body
    time = check_envelope(kind, record.time, actor, role, cause, seen, caller_id)
    # Byte for byte: older schemas, unknown fields and erased bodies included.
    envelope = (kind, record.schema, time, actor, role, cause, seen, caller_id, body, event)
    if caller_id is not None:
        _check_id(caller_id, (), record.session)
    trace = record.stream == TRACE
    return Append(
        record.session,
        record.stream,
        [envelope],
        (event,) if isinstance(event, Forgotten) else _folded(event) if trace else (),
        () if caller_id is None else (caller_id,),
        trace and kind == "FeedbackGiven",
        record.version - 1,
        None,
    )


def stored(record: Record, event: Event | Unknown | Forgotten | None) -> Append:
    """An append as which the fold of a session takes a record that the log holds.

    Args:
        record: the record.
        event: the event in its body; None if it can no longer be read.
    """
    envelope = (
        record.kind,
        record.schema,
        record.time,
        record.actor,
        record.role,
        record.cause,
        record.seen,
        record.caller_id,
        record.body,
        Forgotten(record.kind) if event is None else event,
    )
    folded: tuple[Fold, ...] = ()
    if record.body is None:
        folded = (Forgotten(record.kind),)
    elif event is not None and record.stream == TRACE:
        folded = _folded(event)
    return Append(record.session, record.stream, [envelope], folded, (), False, None, None)


def checked(record: Record) -> Event | Unknown | Forgotten:
    """The event in a record, erased ones included.

    Raises:
        CodecError, InvalidInput: a log may not hold it.
    """
    check_kind(record.kind, record.schema)
    if record.body is None:
        return Forgotten(record.kind)
    return check_body(record.kind, record.schema, record.body)


def _foreign(event: Event | Unknown) -> tuple[str, int]:
    """Kind and schema of an event that Duolog does not define.

    Raises:
        InvalidInput: it is not an event, or has no kind.
    """
    if not isinstance(event, (Event, Unknown)):
        raise InvalidInput(f"only events can be appended, not a {type(event).__name__}")
    kind, schema = kind_of(event)
    check_kind(kind, schema)
    if isinstance(event, Unknown) and not isinstance(event.body, bytes):
        raise InvalidInput(
            f"the body of an unknown {kind} is bytes, not {type(event.body).__name__}"
        )
    return kind, schema


def _check_id(caller_id: str, ids: Container[str], session: str) -> None:
    if not caller_id or caller_id in ids:
        raise DuplicateConflict(session, caller_id, "empty, or twice in one append")


def redacted(draft: Draft, redact: Redact) -> Draft:
    """The draft after the hook; a snapshot's digest follows its content.

    Raises:
        PluginFailed: the hook raised, or gave no draft.
    """
    try:
        with PluginCall("the redaction hook"):
            after = redact(draft)
    except PluginFailed:
        raise
    except Exception as error:
        raise PluginFailed("the redaction hook", error) from error
    if not isinstance(after, Draft):
        raise PluginFailed(
            "the redaction hook", TypeError(f"it has to give a draft, not {after!r}")
        )
    event, before = after.event, draft.event
    if isinstance(event, SnapshotTaken) and (
        not isinstance(before, SnapshotTaken) or event.content != before.content
    ):
        event = with_digests(event)
        after = msgspec.structs.replace(after, event=event)
    return after


def same(old: Record, new: Envelope) -> bool:
    """Whether a record says what a new one would, and of the same; an erased body is taken to be equal.

    A repeated event may come at another time, and its actor may have seen more meanwhile.
    """
    kind, _, _, actor, role, cause, _, _, body, _ = new
    if (old.kind, old.actor, old.role, old.cause) != (kind, actor, role, cause):
        return False
    if old.body is None or old.body == body:
        return True
    return body is not None and bool(msgspec.json.decode(old.body) == msgspec.json.decode(body))


# --- erasing --------------------------------------------------------------------------------------

LATER: Final = "the caller compacts later"
"""Why a store was not compacted when sessions were erased without that."""


def named(session: str | Sequence[str]) -> Sequence[str]:
    """The sessions to erase, each once.

    Raises:
        InvalidInput: there are none.
    """
    names = (session,) if isinstance(session, str) else tuple(dict.fromkeys(session))
    if not names:
        raise InvalidInput("forget needs at least one session id")
    return names
