"""Checks a session's log against itself: compares recorded and kept values with recomputed ones.

Nothing should differ. Everything that can be recomputed is folded from the trace again.
Measurements are repeated with the scorers that are passed in; none of these asks a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

import msgspec

from ..engine import codec
from ..engine.errors import error_text
from ..engine.events import (
    Event,
    ProgressRated,
    ScorerFailed,
    ScorerRef,
    SessionClosed,
    SnapshotTaken,
    StopAdvised,
    UtilityScored,
)
from ..engine.log.contract import EventLog, SessionSummary
from ..engine.records import TRACE, Record
from ..engine.rounds import RoundProjector, Rounds
from ..engine.scorers.observing import Observer
from ..engine.scorers.protocol import Scorer, measurement_id, stream_of
from .live import score_records
from .trajectory.fold import TrajectoryFold
from .trajectory.options import Options
from .trajectory.tolerance import check_taus
from .trajectory.updates import StopAdvice

__all__ = ("Check", "LogDifference", "check_session")


@final
class LogDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Something that differs between the log and what follows from it.

    Attributes:
        session: session id.
        what: what differs, as text.
        recorded: as the log has it; None if it has nothing.
        fresh: as computed now; None if there is nothing.
    """

    session: str
    what: str
    recorded: str | None
    fresh: str | None


@final
class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What checking a session found.

    Attributes:
        session: session id.
        records: how many records there are.
        measurements: how many of them a scorer recorded.
        remeasured: how many of those were measured again.
        skipped: streams that no scorer was there for.
        forgotten: its contents were erased, so that there is nothing to compare.
        differences: what differs.
    """

    session: str
    records: int
    measurements: int
    remeasured: int
    skipped: tuple[str, ...]
    forgotten: bool
    differences: tuple[LogDifference, ...]


async def check_session(log: EventLog, session: str, scorers: Iterable[Scorer] = ()) -> Check:
    """Checks one session.

    It compares:

    - the line in the session list with the records;
    - the trajectory folded in the order of the log with the one folded from the trace first and the
      measurements after it;
    - the round that a measurement names with the round of its version;
    - enforced stops with the tolerance;
    - recorded measurements with new ones by the same scorers, byte for byte.

    Args:
        log: the log.
        session: session id.
        scorers: those whose measurements can be repeated, each under its name and version.

    Raises:
        SessionNotFound: the log has no such session.
        CodecError: a body is damaged.
        LogClosed: the log is closed.
    """
    summary = await log.summary(session)
    upto = summary.position  # it may grow meanwhile
    records = [r async for r in log.read_all(session=session) if r.position <= upto]
    trace = [record for record in records if record.stream == TRACE]
    measured = [record for record in records if record.stream != TRACE]
    streams = {record.stream for record in measured}
    known = _measurers(measured, scorers)
    checker = _Checker(session)
    forgotten = any(record.body is None for record in records)
    if not forgotten:
        checker.compare_summary(summary, records)
        checker.compare_order(records, [*trace, *measured])
        checker.compare_places(trace, records)
        checker.compare_stops(records)
        for stream, scorer in known.items():
            mine = [record for record in measured if record.stream == stream]
            await checker.compare_measurements(scorer, trace, mine)
    return Check(
        session=session,
        records=len(records),
        measurements=len(measured),
        remeasured=0 if forgotten else sum(record.stream in known for record in measured),
        skipped=tuple(sorted(streams - known.keys())),
        forgotten=forgotten,
        differences=tuple(checker.found),
    )


@final
class _Checker:
    """Collects the differences in one session."""

    def __init__(self, session: str) -> None:
        self._session = session
        self.found: list[LogDifference] = []

    def _compare(self, what: str, recorded: object, fresh: object) -> None:
        if recorded != fresh:
            self._differ(what, str(recorded), str(fresh))

    def _differ(self, what: str, recorded: str | None, fresh: str | None) -> None:
        self.found.append(
            LogDifference(session=self._session, what=what, recorded=recorded, fresh=fresh)
        )

    def compare_summary(self, summary: SessionSummary, records: Sequence[Record]) -> None:
        """Compares the line in the session list with the records themselves."""
        trace = [record for record in records if record.stream == TRACE]
        closed = [record.event for record in trace if isinstance(record.event, SessionClosed)]
        state = closed[-1].reason if closed else "open"
        self._compare("number of records in the session list", summary.events, len(records))
        self._compare("trace version in the session list", summary.version, len(trace))
        self._compare("state in the session list", summary.state, state)
        if trace:
            self._compare("time of the opening", summary.opened, trace[0].time)
            self._compare("time of the last record", summary.last, trace[-1].time)

    def compare_order(self, records: Iterable[Record], sorted_out: Iterable[Record]) -> None:
        """The trajectory as it was live, with the one from measuring afterwards."""
        for rounds in _CONVENTIONS:
            live, late = [
                score_records(given, Options(rounds=rounds)) for given in (records, sorted_out)
            ]
            for then, now in zip(live.points, late.points, strict=True):
                self._compare(f"round {then.round} by {rounds}, live and afterwards", then, now)

    def compare_places(self, trace: Iterable[Record], records: Iterable[Record]) -> None:
        """What measurements say that they are about, with what lies there."""
        kinds: dict[int, str] = {}
        rounds: dict[Rounds, dict[int, int]] = {name: {} for name in _CONVENTIONS}
        projectors = {name: RoundProjector(name) for name in _CONVENTIONS}
        for record in trace:
            kinds[record.version] = record.kind
            for name, projector in projectors.items():
                projector.feed(record)
                rounds[name][record.version] = projector.number
        for record in records:
            event = record.event
            if not isinstance(event, UtilityScored | ProgressRated):
                continue
            what = f"{record.kind} {record.stream}/{record.version}"
            if isinstance(event, UtilityScored) and event.snapshot is not None:
                kind = kinds.get(event.snapshot)
                self._compare(f"what {what} scores", SnapshotTaken.__name__, kind)
            elif event.until is not None:
                number = rounds[event.rounds].get(event.until)
                self._compare(f"the round that {what} is about", event.round, number)

    def compare_stops(self, records: Sequence[Record]) -> None:
        """Advised stops, with the tolerance up to there, however rounds are counted."""
        taus = check_taus({r.event.tau for r in records if isinstance(r.event, StopAdvised)})
        if not taus:
            return
        folds = [
            TrajectoryFold(self._session, Options(rounds=rounds, taus=taus))
            for rounds in _CONVENTIONS
        ]
        held: set[tuple[int, int]] = set()  # a rating may be replaced before its advice is recorded
        for record in records:
            event = record.event
            for fold in folds:
                advices = (one for one in fold.feed(record) if isinstance(one, StopAdvice))
                held.update((advice.tau, advice.round) for advice in advices)
            if isinstance(event, StopAdvised) and (event.tau, event.round) not in held:
                what = f"the round after which {record.stream} stops at τ = {event.tau}"
                self._differ(what, str(event.round), str(folds[0].stops.get(event.tau)))

    async def compare_measurements(
        self, scorer: Scorer, trace: Iterable[Record], recorded: Iterable[Record]
    ) -> None:
        """Compares a scorer's recorded measurements with those that it makes now."""
        fresh = await _measure(scorer, self._session, trace)
        for record in recorded:
            event = fresh.pop(record.id, None)
            if event is None or not _same(record, event):
                self._differ(f"measurement {record.id}", _text(record.event), _text(event))
        for ident, event in fresh.items():
            self._differ(f"measurement {ident}", None, _text(event))


def _measurers(measured: Iterable[Record], scorers: Iterable[Scorer]) -> dict[str, Scorer]:
    """The scorer of each stream, if one with the recorded configuration was passed in."""
    refs: dict[str, ScorerRef] = {}
    for record in measured:
        ref = getattr(record.event, "scorer", None)
        if isinstance(ref, ScorerRef):
            refs.setdefault(record.stream, ref)
    return {
        stream: scorer
        for stream, ref in sorted(refs.items())
        for scorer in scorers
        if scorer.ref == ref and stream_of(ref) == stream
    }


async def _measure(scorer: Scorer, session: str, trace: Iterable[Record]) -> dict[str, Event]:
    """Measures a trace with a scorer: events by identity, keeping the first as a session does."""
    found: dict[str, Event] = {}
    try:
        observer = Observer(scorer.begin(session))
        for record in trace:
            for event, of in await observer.observe(record):
                found.setdefault(measurement_id(scorer.ref, of), event)
    except Exception as error:  # noqa: BLE001  (compared with the failure that was recorded)
        text = error_text(error)
        failed = ScorerFailed(scorer=scorer.ref, error=text, type=type(error).__name__)
        found[measurement_id(scorer.ref, "failed")] = failed
    return found


def _same(record: Record, event: Event) -> bool:
    kind, schema = codec.kind_of(event)
    body = codec.encode_body(event)
    return record.body == body or record.event == codec.decode_body(kind, schema, body)


def _text(event: object) -> str | None:
    return None if event is None else msgspec.json.encode(event).decode()


_CONVENTIONS: tuple[Rounds, ...] = ("handoff", "human-turn")
