"""The contract of the append-only log: the guarantees that every store keeps.

``duolog.open(url)`` returns an object with this interface. One suite of checks
(``testing.contracts.log.check_event_log``) runs against every store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

from ..errors import DuologError
from ..records import TRACE, Draft, Record

__all__ = (
    "Advance",
    "Cache",
    "Derived",
    "EventLog",
    "ForgetResult",
    "LogStatistics",
    "Problem",
    "SessionSummary",
    "Store",
    "Subscription",
    "SubscriptionStatistics",
    "Tap",
    "TapStatistics",
    "VacuumResult",
    "Verification",
)


class Advance(msgspec.Struct, frozen=True, kw_only=True):
    """Moves a consumer's checkpoint in the same transaction as an append, by compare-and-set.

    Attributes:
        consumer: the consumer's name.
        version: the consumer's version; each version has a separate checkpoint.
        expected: current position of the checkpoint; 0 if there is none yet.
        position: its new position.
    """

    consumer: str
    version: str
    expected: int
    position: int


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of the session list, kept up to date with every append.

    Attributes:
        session: session id.
        task: from ``SessionOpened``; empty if the session was never opened.
        instance: from ``SessionOpened``.
        group: labels from ``SessionOpened.config["group"]``, e.g. agent, user, model.
        state: ``open``, a close reason, or ``forgotten``.
        events: number of records, of all streams.
        version: version of the trace.
        opened: time of the first trace record (the session's own clock).
        last: time of the last trace record.
        position: global position of the session's last record.
    """

    session: str
    task: str = ""
    instance: str = ""
    group: dict[str, str] = {}
    state: str = "open"
    events: int = 0
    version: int = 0
    opened: float = 0.0
    last: float = 0.0
    position: int = 0


class Derived(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The result of a fold over one session, cached next to the log.

    It can be dropped at any time: the fold computes it again from the session's records.

    Attributes:
        session: session id.
        kind: whose fold it is, e.g. ``columns/`` and a digest of the fold's options.
        version: version of the fold.
        position: position of the session's last record that the fold has seen. The row is current if
            this equals ``SessionSummary.position``.
        payload: what the fold made, in a format that only the fold needs to know.
        numbers: at most eight values to order and select rows by; the kind says what they mean.
    """

    session: str
    kind: str
    version: int
    position: int
    payload: bytes
    numbers: tuple[float | None, ...] = ()


class SubscriptionStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """State of a lossless subscription: the position it has delivered, how many positions the
    log is ahead of it, how many records wait in its buffer, and how often it fell back to reading.
    """

    position: int
    lag: int
    buffered: int
    fallbacks: int


class TapStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """State of a tap: records delivered, waiting, and dropped because its buffer was full."""

    delivered: int
    buffered: int
    dropped: int


class LogStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """State of a log in this process: last position known, appends waiting to be committed,
    groups and events committed, subscriptions and taps, and what the taps have dropped.
    """

    position: int
    waiting: int
    groups: int
    events: int
    subscriptions: tuple[SubscriptionStatistics, ...] = ()
    taps: tuple[TapStatistics, ...] = ()
    dropped: int = 0


class ForgetResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an erasure.

    Attributes:
        sessions: the sessions, and the forks that share their beginnings.
        compacted: whether the store's files are free of the erased data; if not, copies may remain
            there, and ``vacuum`` finishes the work later.
        caches: names of the caches that erased the sessions, too.
        held_up: why it is not compacted, e.g. another process holds the files, or the disk is full;
            empty if it is.
    """

    sessions: tuple[str, ...]
    compacted: bool
    caches: tuple[str, ...] = ()
    held_up: str = ""


class VacuumResult(msgspec.Struct, frozen=True, kw_only=True):
    """Size of a store's files before and after, in bytes, and whether the work was finished.

    Another process that reads the files may keep it from finishing.
    """

    before: int
    after: int
    finished: bool


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A defect of a log, with its position and session (0 and empty for the whole log)."""

    position: int = 0
    session: str = ""
    what: str


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """The result of ``verify``.

    Attributes:
        events: records checked.
        sessions: sessions among them.
        forgotten: sessions whose contents were erased.
        uncompacted: those of them whose contents may linger in the file until ``vacuum``.
        chained: whether a hash chain was checked too.
        unchecked: records without a checksum: of a log in memory, or written by an older version.
        marked: whether a head mark noted how far the log had come. A closed log has none, since it
            cannot lose the records that a mark would show.
        lost: number of events, by session, that a recorder could not record, as the log says. Such
            sessions are incomplete, but the log is whole.
        problems: the first hundred problems.
        heads: in a chained log, the last hash of each stream, by ``session/stream``, in
            hexadecimal; kept elsewhere, they show later that nothing before them was changed.
    """

    events: int
    sessions: int
    forgotten: int
    uncompacted: int
    chained: bool
    unchecked: int = 0
    marked: bool = False
    lost: dict[str, int] = {}
    problems: tuple[Problem, ...] = ()
    heads: dict[str, str] = {}


class Cache(Protocol):
    """A cache that holds contents of sessions outside the log, and can forget them."""

    @property
    def name(self) -> str:
        """Name of the cache, for the report."""
        ...

    async def forget(self, sessions: Sequence[str]) -> None:
        """Erases what it holds of these sessions."""
        ...


class Subscription(Protocol):
    """Lossless: every record after its start, once, in order of position; catches up, then goes
    live. A slow reader neither holds up writers nor loses records: it falls back to reading.

    Use it as an async context manager, and iterate over it.
    """

    def __aiter__(self) -> AsyncIterator[Record]: ...
    async def __anext__(self) -> Record: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def statistics(self) -> SubscriptionStatistics:
        """Its current state."""
        ...


class Tap(Protocol):
    """Lossy: live records only, in order; if its buffer is full, it drops records and counts them.

    For displays that need the newest record more than every record.

    Use it as an async context manager, and iterate over it.
    """

    def __aiter__(self) -> AsyncIterator[Record]: ...
    async def __anext__(self) -> Record: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def statistics(self) -> TapStatistics:
        """Its current state."""
        ...


class SessionLog(Protocol):
    """The part of a log that measuring one session needs."""

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        stream: str = TRACE,
        expected_version: int | None = None,
    ) -> list[Record]:
        """See ``EventLog.append``."""
        ...

    def read(
        self, session: str, *, stream: str = TRACE, after_version: int = 0
    ) -> AsyncIterator[Record]:
        """See ``EventLog.read``."""
        ...


class EventLog(Protocol):
    """An append-only log of many sessions, each of one trace stream and any measurement streams.

    An open log is an async context manager; leaving it closes it.
    """

    @property
    def url(self) -> str:
        """URL of this log."""
        ...

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        stream: str = TRACE,
        expected_version: int | None = None,
        checkpoint: Advance | None = None,
    ) -> list[Record]:
        """Appends all drafts or none, durably, and returns their records.

        Whole under cancellation: a cancelled caller finds all of its events in the log, or none.
        Idempotent by caller's id: if all drafts carry ids that the session already has, with equal
        contents (kind, body, actor, role, cause), the original records come back and nothing is
        written. This is looked for before the expected version is compared. A checkpoint that comes
        with repeated drafts moves as the first would have.

        Args:
            session: session id, not empty.
            drafts: what to append, in order; none only with a checkpoint.
            stream: the stream to append to.
            expected_version: version that the stream must have; None for no check.
            checkpoint: moved in the same transaction.

        Raises:
            VersionConflict: the stream is at another version.
            DuplicateConflict: some ids are taken and some not, or by events with other contents.
            CheckpointConflict: the checkpoint is not where ``checkpoint`` expects it.
            SessionClosedError: a trace event, other than ``FeedbackGiven``, after the close.
            CodecError: an event that JSON cannot say, or that would be read back as another.
            InvalidInput: a name or an envelope that cannot be stored, or nothing to append.
            PluginFailed: the redaction hook raised.
            OutcomeUnknown: the store failed while it was committing; it may have been written.
            LogUnavailable: any other failure of the store; nothing was written.
            LogGone: the store's file was taken away or replaced meanwhile.
            NewerLog: the log was written by a newer Duolog.
            LogClosed: the log is closed.
        """
        ...

    def read(
        self, session: str, *, stream: str = TRACE, after_version: int = 0
    ) -> AsyncIterator[Record]:
        """The records of one stream in order of version, as of now. Raises LogClosed."""
        ...

    def read_all(
        self, *, session: str | None = None, after_position: int = 0
    ) -> AsyncIterator[Record]:
        """The records of all streams (of one session) in order of position, as of now.

        Raises LogClosed.
        """
        ...

    async def scan(self, consume: Callable[[Sequence[Record]], object]) -> None:
        """Passes the records of ``read_all()`` to a function, some at a time.

        Faster than ``read_all`` for a fold over a whole log. The function may run in another thread
        than the caller's, but never twice at once. It must not use the log. An exception from it
        ends the scan and is raised here. If the caller is cancelled, a running call may continue
        for a moment.

        Args:
            consume: takes one record or more, in order of position; they may be kept.

        Raises:
            LogClosed: the log is closed.
        """
        ...

    def subscribe(self, *, session: str | None = None, after_position: int = 0) -> Subscription:
        """A lossless subscription from after a position on. Raises LogClosed."""
        ...

    def tap(self, *, session: str | None = None, buffer: int = 1024) -> Tap:
        """A lossy live tap. Raises LogClosed."""
        ...

    async def checkpoint(self, consumer: str, consumer_version: str) -> int:
        """Position that a consumer has reached; 0 if it never advanced. Raises LogClosed."""
        ...

    def sessions(self) -> AsyncIterator[SessionSummary]:
        """All sessions in order of their first record. Raises LogClosed."""
        ...

    async def summary(self, session: str) -> SessionSummary:
        """One session's summary.

        Raises:
            SessionNotFound: the log has no such session.
            LogClosed: the log is closed.
        """
        ...

    def derived(
        self, kind: str, version: int, *, sessions: Sequence[str] | None = None
    ) -> AsyncIterator[Derived]:
        """The rows of one kind and version, in order of the sessions' first records.

        Rows of forgotten sessions and damaged rows are left out.

        Args:
            kind: which fold made the rows.
            version: its version; rows of its other versions are left out.
            sessions: only rows of these; None for all.

        Raises:
            LogClosed: the log is closed.
        """
        ...

    async def keep_derived(self, rows: Sequence[Derived]) -> int:
        """Keeps rows; each replaces what was kept of its session and kind before.

        A row is dropped if the log does not have its session, has forgotten it, or has not yet reached
        its position, or if a row of the same version with a higher position is there. This is decided
        in the transaction that writes the row. If the log cannot be written (read-only file, full
        disk, a database role without the rights), nothing is kept, and the program's own log says so
        once: a cache is never a reason to fail.

        Args:
            rows: at most one for each session and kind.

        Returns:
            How many rows were kept.

        Raises:
            InvalidInput: a row without a kind, with more than eight numbers, or with a number that is
                not finite.
            LogClosed: the log is closed.
        """
        ...

    async def drop_derived(self) -> None:
        """Drops all derived rows of this log.

        Raises:
            LogUnavailable: the store cannot write.
            NewerLog: the log was written by a newer Duolog.
            LogClosed: the log is closed.
        """
        ...

    def statistics(self) -> LogStatistics:
        """State of the log in this process."""
        ...

    async def aclose(self) -> None:
        """Commits what waits, and closes. Idempotent."""
        ...

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Store(EventLog, Protocol):
    """A log with its maintenance: what ``open_log`` gives."""

    async def restore(self, records: Sequence[Record]) -> list[Record | DuologError]:
        """Takes records as another log held them: ids, versions, times and bodies stay.

        Each is appended behind the one before it in its stream, in the order given; all at once,
        each on its own. A record whose version does not follow, or that is refused for another
        reason, is answered by its error; positions are given again.

        Raises:
            LogUnavailable: the store cannot write.
            NewerLog: the log was written by a newer Duolog.
            LogClosed: the log is closed.
        """
        ...

    async def forget(
        self, session: str | Sequence[str], *, caches: Sequence[Cache] = (), compact: bool = True
    ) -> ForgetResult:
        """Erases the contents of sessions and of their forks, for good.

        Bodies in all their streams become null, and readers get ``Forgotten`` events in their
        place. Envelopes, versions and positions stay. The contents of the summary and the derived
        rows are erased, too. A second step removes the erased data from the store's files. The
        result says whether it could; if not, ``vacuum`` tries again.

        Args:
            session: session id, or several, which are erased in one transaction.
            caches: caches that hold contents of sessions, and must erase them.
            compact: take the second step now. To erase many sessions in batches, compact with the
                last batch only.

        Raises:
            InvalidInput: no session is named.
            SessionNotFound: the log has no such session; nothing was erased.
            OutcomeUnknown: the store failed while it was erasing; do it again.
            LogUnavailable: the store cannot write; nothing was erased.
            NewerLog: the log was written by a newer Duolog.
            LogClosed: the log is closed.
        """
        ...

    async def vacuum(self) -> VacuumResult:
        """Frees unused space, and finishes erasures that other processes held up.

        Raises:
            LogUnavailable: the store cannot write.
            NewerLog: the log was written by a newer Duolog.
            LogClosed: the log is closed.
        """
        ...

    async def verify(self) -> Verification:
        """Checks every record: order, versions, bodies, digests, summaries, and the hash chain if
        there is one. Raises LogClosed.
        """
        ...
