"""Runs the scorers of one session: hands them the trace in order, and records what they measure.

Scorers take no session time and affect the trace only through an enforced stop. A scorer that raises
is quarantined, with a record of the error; the session continues.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias, final

import anyio

from ..errors import (
    CodecError,
    Divergence,
    DuplicateConflict,
    InvalidInput,
    PluginFailed,
    SessionInterrupted,
    VersionConflict,
)
from ..events import Event, ScorerFailed, ScorerRef, StopAdvised, UtilityScored
from ..log.contract import SessionLog
from ..logger import get_logger
from ..plugins import PluginCall, error_with_place, failure_of
from ..records import TRACE, Draft, Record
from .choice import last_utility
from .observing import ComputeThread, Observer, OpenRounds, drive
from .protocol import Attended, Cost, Measurement, Scorer, measurement_id, stream_of

__all__ = ("Found", "RunningScorer", "ScorerRunner", "StopRule")

STOPPER = ScorerRef(name="stop", version="1", config="")
"""The scorer under which an enforced stop is recorded, if the advice names none."""

_FAILED = "failed"

Outcome: TypeAlias = Sequence[Measurement] | Exception
"""A scorer's measurements at a record; or the error that it raised, and is quarantined for."""


class StopRule(Protocol):
    """Decides when the human would stop: a fold over all records of one session."""

    def feed(self, record: Record) -> StopAdvised | None:
        """Takes the next record, in order of position; advises a stop the moment it is due."""
        ...


class _Broken:
    """Stands in for a scorer that could not even begin."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def observe(self, record: Record) -> Sequence[Measurement]:
        raise self._error


@final
class RunningScorer:
    """One scorer at work on one session.

    Attributes:
        ref: its identity.
        stream: where its measurements go.
        observer: has it look at records; None once it is quarantined.
        failed: the record of its failure that the log holds already, if it does.
        said: identities of what it has measured since it began.
        version: the version of the last record that it has looked at, or began to look at.
        refused: whether the log refused one of its measurements: later ones are dropped.
    """

    __slots__ = ("failed", "observer", "ref", "refused", "said", "stream", "version")

    def __init__(
        self,
        scorer: Scorer,
        session: str,
        recorded: Mapping[str, Record],
        excused: Callable[[], AbstractContextManager[None]],
        rounds: OpenRounds,
    ) -> None:
        self.ref = scorer.ref
        self.stream = stream_of(self.ref)
        self.failed = recorded.get(measurement_id(self.ref, _FAILED))
        self.said: set[str] = set()
        self.version = 0
        self.refused = False
        self.observer: Observer | None
        try:
            with PluginCall(self.stream):
                begun = scorer.begin(session)
                if hasattr(begun, "attend") and isinstance(begun, Attended):
                    begun.attend([r for r in recorded.values() if r.stream == self.stream], excused)
                self.observer = Observer(begun, rounds)
        except Exception as error:  # noqa: BLE001  (recorded as ScorerFailed)
            self.observer = Observer(_Broken(error))

    def cost(self, record: Record) -> Cost:
        """The cost of scoring the next record."""
        if self.observer is None:
            return "quick"
        try:
            return self.observer.cost(record)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001  (it raises again when it scores the record)
            return "waits"

    def failed_at(self, record: Record) -> Record | None:
        """The failure at this record that the log holds: it fails again, though it might do better."""
        if self.failed is None or self.failed.cause != _cause(record):
            return None
        self.observer = None
        return self.failed

    def look(self, record: Record) -> Outcome:
        """The scorer's outcome for a record that it scores without waiting."""
        observer = self.observer
        if observer is None or self.failed_at(record) is not None:
            return ()
        try:
            found = drive(observer.observe(record))
            return found if found == () else _checked(found)
        except KeyboardInterrupt:
            raise
        except Exception as error:  # noqa: BLE001  (recorded as ScorerFailed)
            return self.quarantine(error)
        except BaseException as error:  # noqa: BLE001  (its own: nothing was waited for)
            return self.quarantine(PluginFailed(self.stream, error))

    def quarantine(self, error: Exception) -> Exception:
        """Stops handing records to the scorer; returns the error."""
        self.observer = None
        return error


class Found(NamedTuple):
    """A scorer's outcome for a record."""

    scorer: RunningScorer
    outcome: Outcome


class _Verdict(NamedTuple):
    """The answer of the rule of stops, and the record that it is about."""

    record: Record
    said: StopAdvised | Exception


class _Begun(NamedTuple):
    """The work that is left for the records of an append.

    Attributes:
        verdict: to be enforced first.
        found: outcomes to be recorded.
        rest: records that scorers have yet to look at; what they have looked at is passed over.
    """

    verdict: _Verdict | None
    found: Sequence[tuple[Record, Found]]
    rest: Sequence[Record]


@final
class ScorerRunner:
    """The scorers of one session at work.

    Args:
        log: where measurements go.
        session: session id.
        scorers: who measures.
        recorded: measurements that the log holds already; they are taken as they are.
        stop: decides on stops to enforce; None to enforce none.
        on_stop: called once with the first advice to enforce.
        excused: for scorers that wait for others, see ``Attended``.
        computing: where scorers compute; None for at once.
        flush: writes what the log has only staged: before a scorer waits for something, and once what
            it measured then is recorded; None if the log stages nothing.

    Attributes:
        needed: whether there is anything to do at all.
        position: the position of the last measurement that the log is known to hold.
        utility: the last utility measured.
        failed: which scorer was quarantined first, and why; None while all of them measure.

    Raises:
        InvalidInput: two scorers of one name and version.
    """

    def __init__(
        self,
        log: SessionLog,
        session: str,
        scorers: Sequence[Scorer],
        *,
        recorded: Sequence[Record] = (),
        stop: StopRule | None = None,
        on_stop: Callable[[StopAdvised], Awaitable[None]] | None = None,
        excused: Callable[[], AbstractContextManager[None]] = nullcontext,
        computing: ComputeThread | None = None,
        flush: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._log = log
        self._flush = flush
        self._session = session
        self._recorded: dict[str, Record] = {}
        self._versions: dict[str, int] = {}  # of the streams, as far as this runner knows
        self._know(recorded)
        rounds = OpenRounds()
        self._running = [
            RunningScorer(one, session, self._recorded, excused, rounds) for one in scorers
        ]
        names = [running.stream for running in self._running]
        if len(set(names)) < len(names):
            raise InvalidInput(
                f"session {session!r} has two scorers of one name and version: {', '.join(names)}"
            )
        self._stop = stop
        self._on_stop = on_stop
        self._excused = excused
        self._computing = computing
        self._queue: deque[tuple[Sequence[Record], _Begun | None]] = deque()
        # Not anyio's events, which cost more: there are some dozens for each act of an agent.
        self._work = asyncio.Event()
        self._settled = asyncio.Event()
        self._observing: anyio.CancelScope | None = None
        self.needed = bool(self._running) or stop is not None
        self._finished = False
        self.position = max((record.position for record in recorded), default=0)
        self._utilities: dict[str, float] = {}
        self.failed: str | None = None

    def utility(self, wanted: object) -> float | None:
        """The last measured utility; None if there is none, or several scorers compete.

        Args:
            wanted: the scorer that the session's opening names, if it is a text.
        """
        return last_utility(self._utilities, wanted)

    # --- within a session -------------------------------------------------------------------------

    def offer(self, records: Sequence[Record]) -> None:
        """Takes trace records, in order; never waits.

        Scorers that wait for nothing look at them here. Most records lead to no measurement, and the
        task that records them is not woken for those: a switch of tasks costs more than the look.
        """
        if records:
            if records[-1].kind == "SessionClosed":
                self._stop = None  # nothing is left to stop
            begun = None if self._queue else self._begin(records)
            if self._queue or begun is not None:
                self._queue.append((records, begun))
                self._work.set()

    async def settle(self) -> None:
        """Waits until all that was offered is measured and recorded."""
        while self._queue:
            self._settled.clear()
            await self._settled.wait()

    async def finish(self) -> None:
        """Waits until all is measured, and ends ``run``."""
        await self.settle()
        self._finished = True
        self._work.set()

    async def run(self) -> None:
        """Measures until it is finished."""
        while not self._finished:
            if self._queue:
                records, begun = self._queue[0]
                if begun is None:
                    await self.measure(records)
                else:
                    await self._finish(begun)
                self._queue.popleft()
            else:
                self._settled.set()
                self._work.clear()
                await self._work.wait()

    async def measure(self, records: Sequence[Record]) -> None:
        """Hands the records of one append to all scorers, and records what they measure.

        The stop rule takes records in order of position: all records of the append come first.

        Raises:
            SessionInterrupted: a scorer cannot continue now.
            Divergence: a scorer asks a model something other than what the log holds.
            LogError: the log cannot store the measurements.
        """
        begun = self._begin(records)
        if begun is not None:
            await self._finish(begun)

    def _begin(self, records: Sequence[Record]) -> _Begun | None:
        """Runs the stop rule and the scorers on records, up to the first scorer that may wait.

        Returns:
            What is left to do; None if nothing is.
        """
        verdict: _Verdict | None = None
        for record in records:
            if verdict is None and (said := self._judge(record)) is not None:
                verdict = _Verdict(record, said)
        found: list[tuple[Record, Found]] = []
        for record in records:
            for running in self._running:
                if running.observer is None or running.version >= record.version:
                    continue
                if running.failed is not None or not self._at_once(running.cost(record)):
                    return _Begun(verdict, found, records)
                running.version = record.version
                outcome = running.look(record)
                if outcome != ():
                    found.append((record, Found(running, outcome)))
        return _Begun(verdict, found, ()) if verdict is not None or found else None

    def _at_once(self, cost: Cost) -> bool:
        return cost == "quick" or (cost == "computes" and self._computing is None)

    async def _finish(self, begun: _Begun) -> None:
        """Records the results so far, and does the remaining work."""
        if begun.verdict is not None:
            await self._enforce(*begun.verdict)
        for record, (running, outcome) in begun.found:
            for measured in await self._keep(running, record, outcome):
                await self._rule(measured)
        for record in begun.rest:
            for running in self.due(record):
                failed = running.failed_at(record)
                if failed is not None:
                    self._note_failure(failed.event)
                    await self._rule(failed)
                    continue
                cost = running.cost(record)
                staged = self._flush if cost == "waits" else None
                if staged is not None:
                    await staged()
                outcome = await self._observe(running, record, cost)
                for measured in await self._keep(running, record, outcome):
                    await self._rule(measured)
                if staged is not None:
                    await staged()

    async def _observe(self, running: RunningScorer, record: Record, cost: Cost) -> Outcome:
        observer = running.observer
        assert observer is not None
        if self._at_once(cost):
            return running.look(record)
        try:
            with PluginCall(running.stream), anyio.CancelScope() as scope:
                self._observing = scope
                if cost == "computes" and self._computing is not None:
                    return await self._computing.run(partial(running.look, record), self._excused)
                return _checked(await observer.observe(record))
            raise TimeoutError("it took too long")
        except (Divergence, SessionInterrupted):
            raise
        except Exception as error:  # noqa: BLE001  (recorded as ScorerFailed)
            return running.quarantine(error)
        finally:
            self._observing = None

    def give_up(self) -> bool:
        """Quarantines the scorer that ``measure`` waits for, since it takes too long; False if none."""
        if self._observing is None:
            return False
        self._observing.cancel()
        return True

    # --- looking first, recording later -----------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether any scorer is at work, and not quarantined."""
        return any(running.observer is not None for running in self._running)

    def cost(self, record: Record) -> Cost:
        """The cost of scoring the next record, for all scorers together."""
        found: Cost = "quick"
        for running in self._running:
            cost = running.cost(record)
            if cost == "waits":
                return cost
            found = found if cost == "quick" else cost
        return found

    def due(self, record: Record) -> Iterator[RunningScorer]:
        """The scorers that have not seen a record yet, one by one; each has to score it now."""
        for running in self._running:
            if running.observer is None or running.version >= record.version:
                continue
            running.version = record.version
            yield running

    def look(self, record: Record) -> list[Found]:
        """The scorers' outcomes for a record on which none waits; ``keep`` records them."""
        found = [Found(running, running.look(record)) for running in self.due(record)]
        return [one for one in found if one.outcome != ()]

    async def keep(self, record: Record, found: Sequence[Found]) -> None:
        """Records the scorers' outcomes for a record. Raises as ``measure``."""
        for running, outcome in found:
            await self._keep(running, record, outcome)

    async def _keep(
        self, running: RunningScorer, record: Record, outcome: Outcome
    ) -> Sequence[Record]:
        if isinstance(outcome, Divergence | SessionInterrupted):
            raise outcome
        if isinstance(outcome, Exception):
            return await self._quarantine(running, record, failure_of(outcome))
        if not outcome or running.refused:
            return ()
        try:
            return await self._record(running, record, outcome)
        except (CodecError, DuplicateConflict, InvalidInput, PluginFailed) as error:
            # The last is the redaction hook's: a retry would be refused again.
            running.refused = True
            return await self._quarantine(running, record, running.quarantine(error))

    async def _quarantine(
        self, running: RunningScorer, record: Record, error: BaseException
    ) -> Sequence[Record]:
        text, kind = error_with_place(error), type(error).__name__
        event = ScorerFailed(scorer=running.ref, error=text, type=kind)
        self._note_failure(event)
        get_logger("scorers").error(
            "a scorer failed, and measures this session no more",
            scorer=running.stream,
            session=self._session,
            cause=_cause(record),
            error=f"{kind}: {text}",
        )
        return await self._record(running, record, [Measurement(event, _FAILED)])

    def _note_failure(self, event: object) -> None:
        if isinstance(event, ScorerFailed) and self.failed is None:
            self.failed = f"{event.scorer.name}: {event.type}: {event.error}"

    async def _record(
        self, running: RunningScorer, record: Record, measurements: Sequence[Measurement]
    ) -> list[Record]:
        """Records measurements, but for those that the log holds already."""
        known, fresh = self._sort(running, record, measurements)
        while fresh:
            try:
                known += await self._append(running.stream, fresh)
                break
            except (DuplicateConflict, VersionConflict) as error:
                before = fresh
                # Another process measures this session too; the measurement recorded first counts.
                self._know([r async for r in self._log.read(self._session, stream=running.stream)])
                known, fresh = self._sort(running, record, measurements)
                said = not running.said.isdisjoint(draft.id for draft in before)
                if isinstance(error, DuplicateConflict) and (said or len(fresh) == len(before)):
                    raise  # the scorer contradicts itself
        running.said.update(record.id for record in known)
        for measured in known:
            self.position = max(self.position, measured.position)
            scored = measured.event
            if isinstance(scored, UtilityScored) and scored.value is not None:
                self._utilities[measured.stream] = scored.value
        return known

    async def _append(self, stream: str, drafts: Sequence[Draft]) -> list[Record]:
        """Appends measurements, unless there are others in the stream that this runner does not know."""
        expected = self._versions.get(stream, 0)
        records = await self._log.append(
            self._session, drafts, stream=stream, expected_version=expected
        )
        self._versions[stream] = max(expected, records[-1].version)
        return records

    def _know(self, recorded: Sequence[Record]) -> None:
        for record in recorded:
            if record.caller_id:
                self._recorded[record.id] = record
            self._versions[record.stream] = record.version

    def _sort(
        self, running: RunningScorer, record: Record, measurements: Sequence[Measurement]
    ) -> tuple[list[Record], list[Draft]]:
        """The records of those measurements that the log holds, and drafts of the others."""
        known: list[Record] = []
        fresh: list[Draft] = []
        for event, of in measurements:
            ident = measurement_id(running.ref, of)
            before = self._recorded.get(ident)
            if before is not None:
                known.append(before)
            else:
                cause = _cause(record)
                fresh.append(Draft(event, running.ref.name, "scorer", record.time, ident, cause))
        return known, fresh

    def _judge(self, record: Record) -> StopAdvised | Exception | None:
        """The answer of the rule of stops to a record: an advice, or the error that it raised."""
        if self._stop is None:
            return None
        try:
            with PluginCall("the rule of stops"):
                advice = self._stop.feed(record)
        except Exception as error:  # noqa: BLE001  (recorded as ScorerFailed)
            self._stop = None
            return error
        if advice is None or self._on_stop is None:
            return None
        self._stop = None
        return advice

    async def _rule(self, record: Record) -> None:
        said = self._judge(record)
        if said is not None:
            await self._enforce(record, said)

    async def _enforce(self, record: Record, advice: StopAdvised | Exception) -> None:
        if isinstance(advice, Exception):
            await self._end_rule(record, failure_of(advice))
            return
        assert self._on_stop is not None
        ref = advice.scorer or STOPPER
        ident = measurement_id(ref, f"round/{advice.round}/tau/{advice.tau}")
        if ident not in self._recorded:
            cause = f"{record.stream}/{record.version}"
            draft = Draft(advice, ref.name, "scorer", record.time, ident, cause)
            [advised] = await self._append(stream_of(ref), [draft])
            self.position = max(self.position, advised.position)
        await self._on_stop(advice)

    async def _end_rule(self, record: Record, error: BaseException) -> None:
        """Records that the rule of stops failed: nothing is stopped by it any more."""
        ident = measurement_id(STOPPER, _FAILED)
        if ident in self._recorded:
            return
        text, kind = error_with_place(error), type(error).__name__
        event = ScorerFailed(scorer=STOPPER, error=text, type=kind)
        get_logger("scorers").error(
            "the rule of stops failed, and stops nothing any more",
            session=self._session,
            error=f"{kind}: {text}",
        )
        cause = f"{record.stream}/{record.version}"
        draft = Draft(event, STOPPER.name, "scorer", record.time, ident, cause)
        await self._append(stream_of(STOPPER), [draft])


def _checked(measurements: Sequence[tuple[object, object]]) -> Sequence[Measurement]:
    """Checks measurements, since a scorer may be third-party code."""
    checked = []
    for event, of in measurements:
        if not (isinstance(event, Event) and isinstance(of, str)):
            raise TypeError(
                f"a measurement is a pair of an event and its subject, not {event!r} of {of!r}"
            )
        checked.append(Measurement(event, of))
    return checked


def _cause(record: Record) -> str:
    return f"{TRACE}/{record.version}"
