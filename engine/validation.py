"""Checks events and their envelopes before a log accepts them, for every store and interface.

Everything appended can be read back: a known kind decodes to the event that it was written from, a
snapshot's digests match its content, and nothing nests too deeply for a reader. For an unknown kind
or schema, the body must be JSON of that kind, within the same depth and size.
"""

from __future__ import annotations

from typing import Final, NoReturn, SupportsFloat, get_args

import msgspec

from .budget import Budget, too_deep
from .codec import decode_body, encode_body
from .errors import CodecError, InvalidInput, malformed
from .events import EVENTS, Event, Forgotten, Role, SnapshotTaken, Unknown
from .files import files_problem

__all__ = (
    "BEYOND",
    "BODY",
    "check_body",
    "check_envelope",
    "check_kind",
    "check_names",
    "read_back",
    "written",
)

BODY: Final = Budget(size=64 * 2**20, objects=4 * 2**20, depth=100)
"""The limits of the body of an event; the event itself is one of the levels."""

_INFINITE = float("inf")
BEYOND: Final = 2**63
"""A number that no store can keep: the first of them."""

_ROLES: Final = frozenset(get_args(Role))

_FLAT: Final = frozenset(
    "MessageSent ApprovalGiven NoteTaken DraftDropped TurnYielded Nudged FeedbackGiven ActorFailed SessionClosed "
    "ProgressRated AlertSent EffortObserved ScorerFailed SimulatorFlagged StopAdvised "
    "RecordsLost TagAdded TagRemoved CommentAdded RatingGiven "
    "ConsentGiven ConditionBegun ParticipantWithdrew".split()
)
"""Kinds in which nothing nests."""


class _Tag(msgspec.Struct):
    kind: str | None = None


_tag = msgspec.json.Decoder(_Tag).decode
_decode_any = msgspec.json.Decoder().decode


def written(event: Event | Unknown, kind: str, schema: int) -> tuple[bytes, Event | Unknown]:
    """The JSON of an event, and the event that is read back from it, which is equal.

    Args:
        event: the event.
        kind: its kind.
        schema: number of its schema.

    Raises:
        CodecError: it cannot be written, or would be read back as another one or not at all.
    """
    body = encode_body(event)
    return body, read_back(event, kind, schema, body)


def read_back(event: Event | Unknown, kind: str, schema: int, body: bytes) -> Event | Unknown:
    """The event that is read back from its JSON, which is equal.

    Args:
        event: the event.
        kind: its kind.
        schema: number of its schema.
        body: its JSON.

    Raises:
        CodecError: it would be read back as another one or not at all.
    """
    if (
        len(body) <= BODY.objects
        and kind != "SnapshotTaken"
        and type(event) is not Unknown
        and (kind in _FLAT or body.count(b"{") + body.count(b"[") <= BODY.depth)
    ):  # most events: a shorter way to the same result
        back = decode_body(kind, schema, body)
        if back == event:
            return back
    back = check_body(kind, schema, body)
    if back != event and not isinstance(back, Unknown) and not isinstance(event, Unknown):
        _check_kept(event, back, body)
    return back


def check_body(kind: str, schema: int, body: bytes) -> Event | Unknown:
    """The event in a body that a log may hold.

    Raises:
        CodecError: a log may not hold it.
    """
    try:
        BODY.check_json(body)
    except InvalidInput as error:
        raise CodecError(f"a log cannot hold this body of a {kind}: {error}") from None
    event = decode_body(kind, schema, body)
    if isinstance(event, Forgotten):
        raise CodecError(f"a {kind} without a body is erased, and cannot be checked")
    if isinstance(event, Unknown):
        _check_unknown(event)
    elif isinstance(event, SnapshotTaken) and (problem := files_problem(event)) is not None:
        raise CodecError(problem)
    if too_deep(body, BODY.depth):
        raise CodecError(f"a body of {kind} nests deeper than {BODY.depth} levels")
    return event


def check_names(session: str, stream: str) -> None:
    """Checks the names of a session and of a stream.

    Raises:
        InvalidInput: one of them is empty, or no text that can be stored.
    """
    if not (session and stream):
        raise InvalidInput(f"a session and a stream need names, not {session!r} and {stream!r}")
    if type(session) is not str or not session.isascii():
        _check_text("the name of a session", session)
    if type(stream) is not str or not stream.isascii():
        _check_text("the name of a stream", stream)


def check_kind(kind: str, schema: int) -> None:
    """Checks the kind and schema of an event from another system.

    Raises:
        InvalidInput: the kind is empty or not a text, or the schema number cannot be stored.
    """
    if not kind:
        raise InvalidInput("an event needs a kind that is not empty")
    _check_text("the kind of an event", kind)
    if type(schema) is not int or not 0 <= schema < BEYOND:
        raise InvalidInput(
            f"the schema of a {kind} must be a whole number from 0, not {_shown(schema)}"
        )


def check_envelope(
    kind: str,
    time: object,
    actor: object,
    role: object,
    cause: object,
    seen: object,
    caller_id: object,
) -> float:
    """Checks the envelope that the writer of an event supplies; returns the time as a float.

    Raises:
        InvalidInput: a value is not of its type, or cannot be stored.
    """
    seconds = time if type(time) is float else _seconds(time)
    if not -_INFINITE < seconds < _INFINITE:
        raise InvalidInput(f"the time of a {kind} must be a finite number, not {_shown(time)}")
    if type(actor) is not str or not actor.isascii():
        _check_text(f"the actor of a {kind}", actor)
    if type(role) is not str or role not in _ROLES:
        raise InvalidInput(f"the role in a {kind} is one of {_names()}, not {_shown(role)}")
    if cause is not None and (type(cause) is not str or not cause.isascii()):
        _check_text(f"the cause of a {kind}", cause)
    if caller_id is not None and (type(caller_id) is not str or not caller_id.isascii()):
        _check_text(f"the id of a {kind}", caller_id)
    if seen is not None and (type(seen) is not int or not 0 <= seen < BEYOND):
        raise InvalidInput(
            f"the version seen in a {kind} must be a whole number, not {_shown(seen)}"
        )
    return seconds


def _seconds(time: object) -> float:
    """A time as a float; infinite if it is not a number."""
    try:
        return float(time) if isinstance(time, SupportsFloat) else _INFINITE
    except (ValueError, OverflowError):
        return _INFINITE


def _names() -> str:
    return ", ".join(sorted(_ROLES))


def _check_text(what: str, text: object) -> None:
    if isinstance(text, str):
        if text.isascii():
            return
        try:
            text.encode()
        except UnicodeEncodeError:
            _complain(what, text, "holds half a surrogate pair")
        return
    _complain(what, text, "is no text")


def _complain(what: str, value: object, why: str) -> NoReturn:
    raise InvalidInput(f"{what} {why}: {_shown(value)}")


def _shown(value: object) -> str:
    """A value in a message, whatever it is."""
    try:
        shown = repr(value)
    except Exception as error:  # noqa: BLE001  (third-party code, and only shown)
        return f"a {type(value).__name__} that cannot be shown ({type(error).__name__})"
    return shown if len(shown) <= 100 else f"{shown[:100]}..."


def _check_unknown(event: Unknown) -> None:
    """Checks the body of an unknown event: it is JSON, and does not claim another, known kind."""
    try:
        _decode_any(event.body)
        says = _tag(event.body).kind if event.body.lstrip()[:1] == b"{" else None
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise CodecError(
            f"the body of an unknown {event.kind} is not JSON: {malformed(error)}"
        ) from error
    if says in EVENTS and says != event.kind:
        raise CodecError(f"the body has another kind than {event.kind}")


def _check_kept(event: Event, back: Event, body: bytes) -> None:
    """Checks an event that differs when read back; lists in place of tuples and such are fine."""
    kind = type(event).__name__
    if _holds_no_number(msgspec.to_builtins(event, str_keys=True)):
        raise CodecError(f"this {kind} holds a number that JSON cannot say (NaN or infinity)")
    if encode_body(back) != body:
        raise CodecError(f"this {kind} would be read back as another: two names are the same in it")


def _holds_no_number(value: object) -> bool:
    """Whether a float in it is NaN or infinite; the depth of it is known to be small."""
    if isinstance(value, float):
        return not -_INFINITE < value < _INFINITE
    if isinstance(value, dict):
        return any(map(_holds_no_number, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_holds_no_number, value))
