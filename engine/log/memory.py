"""A log in memory: the same guarantees as a stored one, for as long as the process lives."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Self, final

from ..errors import (
    DuologError,
    InvalidInput,
    LogClosed,
    SessionNotFound,
)
from ..records import TRACE, Draft, Record, Redact
from .append import Append, erased, named, prepare
from .append_writer import AppendLine, restorations
from .contract import (
    Advance,
    Cache,
    Derived,
    ForgetResult,
    LogStatistics,
    SessionSummary,
    VacuumResult,
    Verification,
)
from .decide import Known, decide
from .derived import DerivedRows
from .integrity.verify import Verifier
from .publisher import Publisher
from .staging import Stage
from .subscriptions import BufferedSubscription, BufferedTap

__all__ = ("MemoryLog",)

_BATCH = 512


@final
class MemoryLog:
    """An append-only log in memory; see ``duolog.engine.log.contract.EventLog`` for what it guarantees.

    Args:
        redact: takes out of each draft what must not be kept.
    """

    def __init__(self, *, redact: Redact | None = None) -> None:
        self.redact = redact
        self._records: list[Record] = []
        self._known = Known(self.url, stored=False)
        self._sessions = self._known.sessions
        self._of_session: dict[str, list[int]] = {}
        self._of_stream: dict[tuple[str, str], list[int]] = {}
        self._derived = DerivedRows(self._sessions)
        self._publisher = Publisher(self._fetch)
        self._state = "new"
        self._groups = 0
        self._line = AppendLine()
        self.unwritten = Stage(self.write_staged)

    @property
    def url(self) -> str:
        """``memory://``, the URL of every log in memory."""
        return "memory://"

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        stream: str = TRACE,
        expected_version: int | None = None,
        checkpoint: Advance | None = None,
    ) -> list[Record]:
        """Appends all drafts or none; see ``EventLog.append``."""
        self._check_open()
        append = prepare(session, drafts, stream, expected_version, checkpoint, self.redact)
        if self._line.holds(append):
            async with self._line.turn(append):
                self._check_open()
                return self._take(append)
        await asyncio.sleep(0)  # others get their turn, as with a store on disk
        self._check_open()
        return self._take(append)

    @property
    def followed(self) -> bool:
        """Whether anybody subscribes or taps; see ``Staging.followed``."""
        return self._publisher.has_readers

    def stage(
        self, session: str, drafts: Sequence[Draft], *, stream: str, expected_version: int
    ) -> Append:
        """An append to be written later; see ``Staging.stage``."""
        self._check_open()
        return prepare(session, drafts, stream, expected_version, None, self.redact)

    def write_staged(self, appends: Sequence[Append]) -> None:
        """Writes appends that were staged; see ``Staging.write_staged``."""
        self._check_open()
        self._commit(appends)
        for append in appends:
            append.settle()

    def _commit(self, group: Sequence[Append]) -> None:
        records = decide(self._known, group).records
        if not records:
            return
        self._records += records
        for record in records:
            self._of_stream.setdefault((record.session, record.stream), []).append(record.position)
            self._of_session.setdefault(record.session, []).append(record.position)
        self._groups += 1
        self._publisher.publish(records)

    def _take(self, append: Append) -> list[Record]:
        self._commit((append,))
        outcome, append.outcome = append.outcome, None
        if isinstance(outcome, list):
            return outcome
        assert outcome is not None
        raise outcome

    async def restore(self, records: Sequence[Record]) -> list[Record | DuologError]:
        """Takes records as another log held them; see ``Store.restore``."""
        await asyncio.sleep(0)
        self._check_open()
        checked = await restorations(records, self.redact)
        self._check_open()
        outcomes: list[Record | DuologError] = []
        for each in checked:
            if isinstance(each, DuologError):
                outcomes.append(each)
                continue
            try:
                outcomes += self._take(each)
            except DuologError as error:
                outcomes.append(error)
        return outcomes

    async def forget(
        self, session: str | Sequence[str], *, caches: Sequence[Cache] = (), compact: bool = True
    ) -> ForgetResult:
        """Erases sessions and their forks; see ``Store.forget``."""
        self._check_open()
        family = list(named(session))
        for name in family:
            if name not in self._sessions:
                raise SessionNotFound(name, self.url)
        forks: dict[str, list[str]] = {}
        for state in self._sessions.values():
            if state.origin is not None:
                forks.setdefault(state.origin, []).append(state.session)
        known = set(family)
        for name in family:  # grows by the forks of each
            fresh = [fork for fork in forks.get(name, ()) if fork not in known]
            family += fresh
            known.update(fresh)
        for name in family:
            self._sessions[name].erase()
            self._derived.forget(name)
            for at in self._of_session[name]:
                record = self._records[at - 1] = erased(self._records[at - 1])
                if record.caller_id is not None:
                    self._known.ids[name, record.caller_id] = record
        self._publisher.erase(known)
        for cache in caches:
            await cache.forget(tuple(family))
        return ForgetResult(
            sessions=tuple(family),
            compacted=True,
            caches=tuple(cache.name for cache in caches),
        )

    async def vacuum(self) -> VacuumResult:
        """Does nothing: a log in memory cannot shrink."""
        self._check_open()
        return VacuumResult(before=0, after=0, finished=True)

    async def verify(self) -> Verification:
        """Looks at every record; see ``Store.verify``."""
        self._check_open()
        verifier = Verifier()
        for record in tuple(self._records):
            verifier.feed(record)
        for state in self._sessions.values():
            verifier.check_session(state.summary())
        return verifier.result()

    def read(
        self, session: str, *, stream: str = TRACE, after_version: int = 0
    ) -> AsyncIterator[Record]:
        """The records of one stream, as of now; see ``EventLog.read``."""
        self._check_open()
        if after_version < 0:
            raise InvalidInput(f"after_version must not be negative, not {after_version}")
        positions = self._of_stream.get((session, stream), [])
        return self._iterate(positions, after_version, len(positions))

    def read_all(
        self, *, session: str | None = None, after_position: int = 0
    ) -> AsyncIterator[Record]:
        """The records of all streams, as of now; see ``EventLog.read_all``."""
        self._check_open()
        if after_position < 0:
            raise InvalidInput(f"after_position must not be negative, not {after_position}")
        if session is None:
            count = len(self._records)
            return self._iterate(range(1, count + 1), after_position, count)
        positions = self._of_session.get(session, [])
        return self._iterate(positions, bisect_right(positions, after_position), len(positions))

    async def scan(self, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands all records to a function; see ``EventLog.scan``."""
        self._check_open()
        upto, after = len(self._records), 0
        while after < upto:
            batch, _ = await self._fetch(None, after, upto)
            self._check_open()
            consume(batch)
            after = batch[-1].position

    async def _iterate(
        self, positions: Sequence[int], start: int, stop: int
    ) -> AsyncIterator[Record]:
        for index in range(start, stop):
            if (index - start) % _BATCH == 0:
                await asyncio.sleep(0)
                self._check_open()
            yield self._records[positions[index] - 1]

    async def _fetch(self, session: str | None, after: int, upto: int) -> tuple[list[Record], bool]:
        await asyncio.sleep(0)
        if session is None:
            batch = self._records[after : min(upto, after + _BATCH)]
            return batch, not batch or batch[-1].position >= upto
        positions = self._of_session.get(session, [])
        start = bisect_right(positions, after)
        stop = bisect_right(positions, upto)
        chosen = positions[start : min(stop, start + _BATCH)]
        return [self._records[at - 1] for at in chosen], start + len(chosen) >= stop

    def subscribe(
        self, *, session: str | None = None, after_position: int = 0
    ) -> BufferedSubscription:
        """A lossless subscription; see ``EventLog.subscribe``."""
        self._check_open()
        return self._publisher.subscribe(session, after_position)

    def tap(self, *, session: str | None = None, buffer: int = 1024) -> BufferedTap:
        """A lossy live tap; see ``EventLog.tap``."""
        self._check_open()
        return self._publisher.tap(session, buffer)

    async def checkpoint(self, consumer: str, consumer_version: str) -> int:
        """Position that a consumer has reached; see ``EventLog.checkpoint``."""
        self._check_open()
        return self._known.consumers.get((consumer, consumer_version), 0)

    async def sessions(self) -> AsyncIterator[SessionSummary]:
        """All sessions in order of their first record; see ``EventLog.sessions``."""
        self._check_open()
        for state in tuple(self._sessions.values()):
            yield state.summary()

    async def summary(self, session: str) -> SessionSummary:
        """One session's summary; see ``EventLog.summary``."""
        self._check_open()
        state = self._sessions.get(session)
        if state is None:
            raise SessionNotFound(session, self.url)
        return state.summary()

    async def derived(
        self, kind: str, version: int, *, sessions: Sequence[str] | None = None
    ) -> AsyncIterator[Derived]:
        """The rows of one kind and version; see ``EventLog.derived``."""
        self._check_open()
        for row in self._derived.read(kind, version, sessions):
            yield row

    async def keep_derived(self, rows: Sequence[Derived]) -> int:
        """Keeps rows; see ``EventLog.keep_derived``."""
        self._check_open()
        return self._derived.keep(rows)

    async def drop_derived(self) -> None:
        """Drops all kept rows; see ``EventLog.drop_derived``."""
        self._check_open()
        self._derived.drop()

    def statistics(self) -> LogStatistics:
        """State of the log."""
        return self._publisher.statistics(waiting=0, groups=self._groups, events=len(self._records))

    def _check_open(self) -> None:
        if self._state != "open":
            raise LogClosed(
                "the log in memory is closed"
                if self._state == "closed"
                else "open the log with 'async with' before using it"
            )

    async def aclose(self) -> None:
        """Closes the log, and forgets what it held."""
        self._state = "closed"
        self._publisher.close()

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise LogClosed("a log is entered once; open another with open_log")
        self._state = "open"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
