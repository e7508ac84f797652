"""Every error that Duolog raises, in one tree, so that a caller can choose how much to catch.

::

    DuologError
    ├── LogError                 the log cannot do what was asked
    │   ├── VersionConflict      the stream is not at the expected version
    │   ├── DuplicateConflict    a caller's event id is taken by another event
    │   ├── CheckpointConflict   a consumer's checkpoint is not where it was expected
    │   ├── SessionClosedError   a trace event after SessionClosed
    │   ├── LogNotFound          nothing at that URL
    │   ├── NotALog              a file that is not a Duolog log, or a damaged one
    │   ├── NewerLog             a log written by a newer Duolog, open for reading only
    │   ├── LogUnavailable       the log cannot be written (full disk, read-only file, ...)
    │   │   ├── LogAway          its server cannot be reached, or another process holds it
    │   │   └── OutcomeUnknown   the disk failed at the last step: the append may be written or not
    │   ├── LogGone              its file was removed, moved, replaced or cut off while it was open
    │   ├── LogClosed            used after it was closed, or in a fork of the process that opened it
    │   └── NotRecorded          an event that was accepted and never reached the log
    ├── CodecError               bytes that are not a valid event or record
    ├── SessionNotFound          no such session in the log
    ├── ContextError             an actor used its context wrongly
    │   └── StaleBase            a snapshot made from an outdated base
    ├── Divergence               a re-execution does not reproduce the recorded session
    ├── SessionInterrupted       a session cannot continue now; it can be resumed from the log
    ├── ModelError               a call of a model failed
    │   ├── ModelRateLimited     the provider asks for fewer calls
    │   ├── ModelTimeout         no answer in time
    │   ├── ModelUnavailable     the provider cannot be reached, or failed
    │   ├── ModelBadReply        an answer that cannot be read
    │   ├── ModelRefused         the provider rejects this request, and a retry will not help
    │   ├── ModelDenied          every request fails: key, credit, permission or model is missing
    │   ├── ModelDown            the model failed too often in a row, so it is no longer called
    │   └── BudgetExhausted      the experiment has used up its tokens or its money
    ├── InvalidInput             a value, name, option or file that a user gave is not valid
    │   └── TooLarge             an input has more bytes, values or levels than are read
    ├── PluginFailed             a plug-in raised something that is not an Exception
    └── MissingExtra             an optional dependency is not installed

Each message says what was wrong, gives the value, and suggests a next step if there is one.
"""

from __future__ import annotations

from typing import final

__all__ = (
    "BudgetExhausted",
    "CheckpointConflict",
    "CodecError",
    "ContextError",
    "Divergence",
    "DuologError",
    "DuplicateConflict",
    "InvalidInput",
    "LogAway",
    "LogClosed",
    "LogError",
    "LogGone",
    "LogNotFound",
    "LogUnavailable",
    "MissingExtra",
    "ModelBadReply",
    "ModelDenied",
    "ModelDown",
    "ModelError",
    "ModelRateLimited",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnavailable",
    "NewerLog",
    "NotALog",
    "NotRecorded",
    "OutcomeUnknown",
    "PluginFailed",
    "SessionClosedError",
    "SessionInterrupted",
    "SessionNotFound",
    "StaleBase",
    "TooLarge",
    "VersionConflict",
    "error_text",
    "first_error",
    "malformed",
)


class DuologError(Exception):
    """The root of all errors that Duolog raises on purpose."""


class LogError(DuologError):
    """The log cannot do what was asked."""


@final
class VersionConflict(LogError):
    """Raised by an append if the stream is not at the expected version; nothing was written.

    Attributes:
        session: the session appended to.
        stream: the stream appended to.
        expected: the version that the caller expected the stream to have.
        actual: the version that it has.
    """

    def __init__(self, session: str, stream: str, expected: int, actual: int) -> None:
        super().__init__(
            f"stream {stream!r} of session {session!r} is at version {actual}, not at the expected "
            f"{expected}; read what came since, and append again"
        )
        self.session = session
        self.stream = stream
        self.expected = expected
        self.actual = actual


@final
class DuplicateConflict(LogError):
    """Raised by an append if only some of its ids are taken already, or other events have them.

    Attributes:
        session: the session appended to.
        event_id: the first id in conflict.
    """

    def __init__(self, session: str, event_id: str, why: str) -> None:
        super().__init__(f"event id {event_id!r} is already used in session {session!r}: {why}")
        self.session = session
        self.event_id = event_id


@final
class CheckpointConflict(LogError):
    """Raised if a consumer's checkpoint is not at the expected position; nothing was written."""

    def __init__(self, consumer: str, version: str, expected: int, actual: int) -> None:
        super().__init__(
            f"checkpoint of consumer {consumer!r} version {version!r} is at position {actual}, not "
            f"at the expected {expected}; another instance of it has advanced"
        )
        self.consumer = consumer
        self.version = version
        self.expected = expected
        self.actual = actual


@final
class SessionClosedError(LogError):
    """Raised by an append of a trace event to a session that is closed."""

    def __init__(self, session: str) -> None:
        super().__init__(f"session {session!r} is closed; open a session with another id")
        self.session = session


@final
class LogNotFound(LogError):
    """Raised if a log is opened for reading and does not exist."""


@final
class NotALog(LogError):
    """Raised for a file that is not a Duolog log, or is damaged."""


@final
class NewerLog(LogError):
    """Raised by a write to a log that a newer Duolog has written."""


class LogUnavailable(LogError):
    """Raised if the log cannot be read or written now; the records in it are intact.

    Nothing was written, unless it is an ``OutcomeUnknown``.
    """


@final
class LogAway(LogUnavailable):
    """Raised if a log cannot be reached for the moment: its server is stopped or starting, the
    network is down, another process holds its file, or the disk is full. Trying again later helps.
    """


@final
class OutcomeUnknown(LogUnavailable):
    """Raised if a store failed during a commit. The records may be in the log now, or later, or
    never.

    To find out, read the stream once the log accepts appends again. To be sure, repeat the append
    with the same ids, or with the same expected version. If the records are in the log, the same
    ids return them, and the expected version raises a conflict.
    """


@final
class LogGone(LogError):
    """Raised if a log's file was removed, moved, replaced or truncated while it was open.

    The log accepts no more appends. An append in progress at that moment was not acknowledged, but
    may be in the file that was removed.
    """


@final
class LogClosed(LogError):
    """Raised if a log, subscription or tap is used after it was closed, or if a log is used in a
    fork of the process that opened it.
    """


@final
class NotRecorded(LogError):
    """Raised for an event that was accepted and never reached the log: the buffer was full, the
    event that it refers to is missing too, or the log was closed too early.

    Attributes:
        session: the event's session.
    """

    def __init__(self, session: str, why: str) -> None:
        super().__init__(f"an event of session {session!r} was not recorded: {why}")
        self.session = session


@final
class CodecError(DuologError):
    """Raised for bytes that are not a valid event or record."""


@final
class SessionNotFound(DuologError):
    """Raised if the log does not hold the named session."""

    def __init__(self, session: str, where: str) -> None:
        super().__init__(f"no session {session!r} in {where}")
        self.session = session


class ContextError(DuologError):
    """Raised if an actor uses its context wrongly."""


@final
class StaleBase(ContextError):
    """Raised for a snapshot whose base is no longer the latest snapshot.

    Attributes:
        base: trace version of the snapshot that it was made from, None for none.
        latest: trace version of the latest snapshot.
    """

    def __init__(self, base: int | None, latest: int | None) -> None:
        super().__init__(
            f"the output has changed: this snapshot was made from version {base}, the latest is "
            f"version {latest}; look at it, and submit again from there"
        )
        self.base = base
        self.latest = latest


@final
class Divergence(DuologError):
    """Raised if a re-execution differs from the recorded session.

    Attributes:
        session: the session re-executed.
        version: the first trace version that differs.
    """

    def __init__(self, session: str, version: int, what: str) -> None:
        super().__init__(f"session {session!r} diverges from its log at version {version}: {what}")
        self.session = session
        self.version = version


@final
class SessionInterrupted(DuologError):
    """Raised if a session cannot continue for an external reason, such as an unreachable model or a
    spent budget. The log keeps the session as it was; run it again to continue from there.

    Attributes:
        session: the session interrupted.
        why: the reason alone.
    """

    def __init__(self, session: str, why: str) -> None:
        super().__init__(f"session {session!r} was interrupted, and can be resumed: {why}")
        self.session = session
        self.why = why


class ModelError(DuologError):
    """Raised by a client if a model call failed."""


@final
class ModelRateLimited(ModelError):
    """Raised if the provider asks for fewer calls.

    Attributes:
        retry_after: seconds that the provider asks to wait; None if it does not say.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@final
class ModelTimeout(ModelError):
    """Raised if the complete answer did not arrive in time."""


@final
class ModelUnavailable(ModelError):
    """Raised if the provider cannot be reached, or failed.

    Attributes:
        retry_after: seconds that the provider asks to wait; None if it does not say.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@final
class ModelBadReply(ModelError):
    """Raised for an answer that cannot be read: cut off, or not in the provider's own format."""


@final
class ModelRefused(ModelError):
    """Raised if the provider rejects this request, and a retry will not help: it is too long for
    the model, not valid, or against the provider's rules.
    """


@final
class ModelDenied(ModelError):
    """Raised if every request fails because a key, credit, permission or the model is missing."""


@final
class ModelDown(ModelError):
    """Raised without a call if a model has failed so often in a row that it is no longer called."""


@final
class BudgetExhausted(ModelError):
    """Raised without a call if the experiment has used up its tokens or its money."""


class InvalidInput(DuologError):
    """Raised for a value, a name, an option or a file of the user's that is not valid."""


@final
class TooLarge(InvalidInput):
    """Raised for an input that has more bytes, values or levels than are read."""


@final
class PluginFailed(DuologError):
    """Raised if a plug-in raised something that is not an ``Exception``: ``SystemExit``, for
    example, or a ``CancelledError`` although its task was not cancelled.

    Attributes:
        raised: what it raised.
    """

    def __init__(self, who: str, raised: BaseException) -> None:
        what = f"{type(raised).__name__}: {raised}".removesuffix(": ")
        hint = ""
        if type(raised).__name__ == "CancelledError":  # asyncio is not loaded just for its errors
            hint = "; nobody cancelled it: look for what it awaits that was cancelled elsewhere"
        super().__init__(f"{who} raised {what}{hint}")
        self.raised = raised


@final
class MissingExtra(DuologError):
    """Raised if an optional dependency is needed and not installed."""

    def __init__(self, extra: str, what: str) -> None:
        from .installation import install_command

        super().__init__(f"{what} needs an extra: {install_command(extra)}")
        self.extra = extra


def error_text(error: BaseException) -> str:
    """An error's text in a form that a log can store: lone surrogates, for example, are escaped."""
    return str(error).encode("utf-8", "backslashreplace").decode()


def malformed(error: Exception) -> str:
    """Why data could not be decoded: a decoder's error, without the words that Python has for its limits."""
    if isinstance(error, RecursionError):
        return "it nests too deeply"
    text = error_text(error)
    return "a number has too many digits" if text.startswith("Exceeds the limit") else text


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a group: the one that a caller can act on."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
