"""Batches of events that clients post as JSON, checked and turned into drafts.

The types define the shape; ``rules`` defines which values are valid. A batch that is refused is
answered with the event and the field at fault.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import msgspec

from ...engine.budget import too_deep
from ...engine.codec import digest
from ...engine.errors import CodecError, malformed
from ...engine.events import EVENTS, JSON, Event, ProgressRated, SessionOpened, SnapshotTaken
from ...engine.files import files_problem
from ...engine.records import TRACE, Draft
from ...engine.session.commands import UNNAMED
from ...engine.text import suggestion
from ...engine.validation import BODY
from .validation import MEASUREMENTS, TRACED, complaint, name_complaint

__all__ = (
    "LEFT_OPEN",
    "Batch",
    "Drafts",
    "InvalidBatch",
    "Posted",
    "PostedRole",
    "TooManyEvents",
    "read_batch",
)

LEFT_OPEN: Final = {
    "SnapshotTaken": "digest",
    "ProgressRated": "round",
    "SessionClosed": "reason",
}
"""Required fields of events that a client may leave to the server, by kind."""

_ENDED: Final = "ended"
"""Why a session was closed, if the client does not say."""

PostedRole: TypeAlias = Literal["human", "agent", "environment", "scorer"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
# Until the year 9999, the last that a date can be told of.
_Time = Annotated[float, msgspec.Meta(ge=0, le=253_402_300_799)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class Posted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An event as it is posted.

    Attributes:
        kind: name of the event's type, e.g. ``MessageSent``.
        actor: name of the actor; for a measurement, of the scorer.
        role: the actor's role.
        body: the event itself, see the schema of its kind.
        id: unique in the session; makes the post idempotent.
        time: UTC epoch seconds (or virtual ones, as ``SessionOpened.clock`` says); the server's
            time if it is left out.
        cause: ``stream/version`` of the record that this one answers.
        seen: trace version that the actor had seen when it decided.
    """

    kind: str
    actor: _Name
    role: PostedRole
    body: msgspec.Raw
    id: _Name | None = None
    time: _Time | None = None
    cause: _Name | None = None
    seen: _Count | None = None


class Batch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Events to append to a stream of one session, all of them or none.

    Attributes:
        events: in order; either all of them have ids, or none.
        stream: ``trace``, or a scorer's stream, ``name@version``.
        expected_version: version that the stream must have.
    """

    events: Annotated[list[Posted], msgspec.Meta(min_length=1)]
    stream: _Name = TRACE
    expected_version: _Count | None = None


class InvalidBatch(NamedTuple):
    """Why a batch is refused.

    Attributes:
        what: is wrong, in words.
        event: index of the event at fault, from 0; None if it is the batch as a whole.
        field: path of the field at fault, e.g. ``body.text``; empty if there is none.
    """

    what: str
    event: int | None = None
    field: str = ""


class TooManyEvents(NamedTuple):
    """Why a batch is refused before it is looked at: the number of its events."""

    events: int


class Drafts(NamedTuple):
    """A batch, ready to be appended."""

    drafts: Sequence[Draft]
    stream: str
    expected_version: int | None


_decode = msgspec.json.Decoder(Batch).decode
_decode_any = msgspec.json.Decoder(dict[str, JSON]).decode
_decode_fields = msgspec.json.Decoder(
    dict[str, msgspec.Raw]
).decode  # their values only when needed
_bodies = {kind: msgspec.json.Decoder(cls).decode for kind, cls in EVENTS.items()}
_fields = {kind: frozenset((*cls.__struct_encode_fields__, "kind")) for kind, cls in EVENTS.items()}
_SHOWN: Final = 100
_AT = re.compile(r"(.*) - at `\$(?:\.events\[(\d+)\])?\.?(.*)`", re.DOTALL)


def read_batch(data: bytes, now: float, most: int) -> Drafts | InvalidBatch | TooManyEvents:
    """The drafts in the body of a request, or why there are none.

    Time and memory grow at most linearly with the size of the body.

    Args:
        data: JSON in UTF-8.
        now: UTC epoch seconds, for events that do not say when they were.
        most: events in a batch.
    """
    try:
        data.decode()
        batch = _decode(data)
    except UnicodeDecodeError as error:
        return InvalidBatch(f"the body is not UTF-8: byte {error.start} ({error.reason})")
    except (msgspec.MsgspecError, RecursionError) as error:
        return _invalid_batch(error, None)
    if len(batch.events) > most:
        return TooManyEvents(len(batch.events))
    fault = _check(batch)
    drafts: list[Draft] = []
    for index, posted in enumerate(batch.events):
        if fault is not None:
            return fault
        event = _event(index, posted, traced=batch.stream == TRACE)
        if isinstance(event, InvalidBatch):
            return event
        fault = _place(index, posted, batch)
        time = now if posted.time is None else posted.time
        drafts.append(
            Draft(event, posted.actor, posted.role, time, posted.id, posted.cause, posted.seen)
        )
    if fault is not None:
        return fault
    expected = batch.expected_version
    if expected is None and isinstance(drafts[0].event, SessionOpened):
        expected = 0
    return Drafts(drafts, batch.stream, expected)


def _check(batch: Batch) -> InvalidBatch | None:
    """The problem of the batch as a whole, if any."""
    if why := name_complaint(batch.stream):
        return InvalidBatch(f"the stream's name {why}", field="stream")
    ids = [posted.id for posted in batch.events]
    named = [ident for ident in ids if ident is not None]
    if named and len(named) < len(ids):
        return InvalidBatch(
            "some events have ids and some have none: give all of them ids, or none",
            ids.index(None),
            "id",
        )
    before: set[str] = set()
    for index, ident in enumerate(named):
        if ident in before:
            return InvalidBatch(f"the id {ident!r} is there twice", index, "id")
        before.add(ident)
    return None


def _place(index: int, posted: Posted, batch: Batch) -> InvalidBatch | None:
    """The problem of an event at its place in the batch, if any."""
    for field in ("actor", "id", "cause"):
        name = getattr(posted, field)
        if name is not None and (why := name_complaint(name)):
            return InvalidBatch(f"it {why}", index, field)
    traced = batch.stream == TRACE
    if posted.kind not in (TRACED if traced else MEASUREMENTS):
        where = "the trace" if traced else "a scorer's stream"
        return InvalidBatch(f"a {posted.kind} does not belong into {where}", index, "kind")
    if traced == (posted.role == "scorer"):
        wrong = "a scorer writes into a stream of its own" if traced else "only scorers write here"
        return InvalidBatch(f"{wrong}: {batch.stream!r} takes no {posted.role}", index, "role")
    if posted.kind == "SessionOpened" and (index or batch.expected_version):
        return InvalidBatch("a SessionOpened is a session's first event", index, "kind")
    return None


def _event(index: int, posted: Posted, *, traced: bool) -> Event | InvalidBatch:
    """The event in a body."""
    kind, body = posted.kind, bytes(posted.body)
    decode = _bodies.get(kind)
    if decode is None:
        return InvalidBatch(
            f"there is no kind {_cut(kind)!r}; there are {', '.join(EVENTS)}", index, "kind"
        )
    try:
        fields = _decode_fields(body)
        if unknown := fields.keys() - _fields[kind]:
            name = _cut(min(unknown))
            hint = suggestion(name, _fields[kind])
            return InvalidBatch(f"a {kind} has no field {name!r}{hint}", index, f"body.{name}")
        if too_deep(body, BODY.depth):
            return InvalidBatch(f"it nests deeper than {BODY.depth} levels", index, "body")
        if kind == "SnapshotTaken":
            return _snapshot(index, _decode_any(body))
        if kind == "ProgressRated" and traced and "round" not in fields:
            return _rating(index, _decode_any(body))
        if kind == "SessionClosed" and "reason" not in fields:
            body = msgspec.json.encode(_decode_any(body) | {"reason": _ENDED})
        event = decode(body)
    except (msgspec.MsgspecError, CodecError, RecursionError) as error:
        return _invalid_batch(error, index)
    wrong = complaint(event)
    return event if wrong is None else InvalidBatch(wrong.why, index, f"body.{wrong.field}")


def _snapshot(index: int, plain: dict[str, JSON]) -> SnapshotTaken | InvalidBatch:
    """A snapshot, whose digest the client may leave to us, and those of the files that it carries."""
    files, content = plain.get("files"), plain.get("content")
    if isinstance(files, dict) and isinstance(content, dict):
        for path, text in content.items():
            files[path] = files.get(path) or digest(text)
    right = digest(content if files is None else files)
    if plain.setdefault("digest", right) != right:
        of = "content" if files is None else "files"
        return InvalidBatch(
            f"it is not the digest of the {of}; leave it out, and it will be computed",
            index,
            "body.digest",
        )
    event = msgspec.convert(plain, SnapshotTaken)
    if problem := files_problem(event):
        return InvalidBatch(problem, index, "body.files")
    wrong = complaint(event)
    return event if wrong is None else InvalidBatch(wrong.why, index, f"body.{wrong.field}")


def _rating(index: int, plain: dict[str, JSON]) -> ProgressRated | InvalidBatch:
    """A rating that leaves it to the server which round it is about."""
    event = msgspec.convert(plain | {"round": 1}, ProgressRated)
    wrong = complaint(event)
    if wrong is not None:
        return InvalidBatch(wrong.why, index, f"body.{wrong.field}")
    return msgspec.structs.replace(event, round=UNNAMED)


def _cut(name: str) -> str:
    """A name, cut for a message: long names are hard to read, and slow to find similar ones for."""
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."


def _invalid_batch(error: Exception, index: int | None) -> InvalidBatch:
    """A decoder's error, with its place in the batch."""
    if isinstance(error, RecursionError):
        return InvalidBatch(malformed(error), index, "" if index is None else "body")
    found = _AT.fullmatch(str(error))
    what, at, field = found.groups() if found else (str(error), None, "")
    if not what[:2].isupper():  # "JSON is malformed" keeps its name
        what = what[:1].lower() + what[1:]
    if index is None:
        return InvalidBatch(what, None if at is None else int(at), field)
    return InvalidBatch(what, index, f"body.{field}" if field else "body")
