"""Scorers at work in a session: in order, once each, and never in its way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint
from duolog.engine.errors import InvalidInput, LogUnavailable
from duolog.engine.events import (
    ProgressRated,
    ScorerFailed,
    ScorerRef,
    SessionClosed,
    StopAdvised,
    UtilityScored,
)
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from duolog.engine.scorers.protocol import Measurement, SessionScorer, measurement_id, stream_of
from duolog.engine.session.runner import Session, run_session
from duolog.engine.session.time.clock import RealClock, VirtualClock
from duolog.testing import Script, Workshop, a_session, agent, human, played, streams
from virtual_loop import in_virtual_time

Observe = Callable[[Record], Sequence[Measurement]]


class Scoring:
    """A scorer made of one function."""

    def __init__(self, observe: Observe, name: str = "scoring") -> None:
        self.ref = ScorerRef(name=name, version="1", config="c")
        self._observe = observe

    def begin(self, session: str) -> SessionScorer:
        return self

    async def observe(self, record: Record) -> Sequence[Measurement]:
        await checkpoint()
        return self._observe(record)


REF = ScorerRef(name="scoring", version="1", config="c")


def utility(of: str = "x", value: float | None = 0.5, round: int = 1) -> Measurement:
    return Measurement(UtilityScored(scorer=REF, round=round, value=value), of)


def talk(*scorers: Scoring, stop: RatedBadly | None = None) -> Session:
    user = Script().say("a").pause(1).say("b").pause(1).finish()
    helper = Script().pause(0.5).submit("x").pause(9)
    return a_session(human(user), agent(helper), scorers=scorers, stop=stop)


class RatedBadly:
    """Advises to stop on the first bad rating."""

    def __init__(self) -> None:
        self.fed: list[tuple[str, int]] = []

    def feed(self, record: Record) -> StopAdvised | None:
        self.fed.append((record.stream, record.version))
        event = record.event
        if isinstance(event, ProgressRated) and event.rating == 1:
            return StopAdvised(round=event.round, tau=1, rule="first bad", enforced=True)
        return None


def rating_at(version: int, rating: int = 1) -> Scoring:
    def observe(record: Record) -> Sequence[Measurement]:
        if record.version != version:
            return []
        return [Measurement(ProgressRated(round=1, rating=rating, scorer=REF), "round/1")]

    return Scoring(observe)


async def test_a_scorer_is_given_the_whole_trace_in_order_and_nothing_else() -> None:
    seen: list[Record] = []

    def remember(record: Record) -> Sequence[Measurement]:
        seen.append(msgspec.structs.replace(record, position=0))
        return [utility(f"record/{record.version}")]

    result = await played(talk(Scoring(remember), Scoring(lambda record: [], "other")))
    assert seen == result.trace


async def test_a_measurement_says_who_measured_what_and_when() -> None:
    def observe(record: Record) -> Sequence[Measurement]:
        return [utility(f"snapshot/{record.version}")] if record.kind == "SnapshotTaken" else []

    found = await played(talk(Scoring(observe)))
    [snapshot] = [r for r in found.trace if r.kind == "SnapshotTaken"]
    [measured] = found.streams[stream_of(REF)]
    assert measured.caller_id == measurement_id(REF, f"snapshot/{snapshot.version}")
    assert measured.cause == f"trace/{snapshot.version}"
    assert (measured.actor, measured.role) == ("scoring", "scorer")
    assert measured.time == snapshot.time, "measuring takes no session time"
    assert measured.seen is None


async def test_the_last_utility_is_the_sessions() -> None:
    def observe(record: Record) -> Sequence[Measurement]:
        value = {2: 0.25, 3: 0.75, 4: None}.get(record.version)
        return [utility(f"v/{record.version}", value)] if 2 <= record.version <= 4 else []

    assert (await played(talk(Scoring(observe)))).result.utility == 0.75
    assert (await played(talk())).result.utility is None


# --- scorers with faults -------------------------------------------------------------------------------


def raising(record: Record) -> Sequence[Measurement]:
    if record.version == 3:
        raise ZeroDivisionError("half a pair: \udcff")
    return [utility(f"record/{record.version}")]


def twice_at_once(record: Record) -> Sequence[Measurement]:
    return [utility("same"), utility("same")] if record.version == 3 else []


def differing(record: Record) -> Sequence[Measurement]:
    return [utility("same", record.version / 10)]


def unspeakable(record: Record) -> Sequence[Measurement]:
    return [utility("x"), Measurement(UtilityScored(scorer=REF, missing="\ud800"), "y")]


def confused(record: Record) -> Sequence[Measurement]:
    return 7  # type: ignore[return-value]


def misnamed(record: Record) -> Sequence[Measurement]:
    return [utility("x"), utility("")[:1]]  # type: ignore[list-item]


def no_event(record: Record) -> Sequence[Measurement]:
    return [Measurement({"kind": "UtilityScored"}, "x")]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("observe", "at", "type_"),
    [
        (raising, 3, "ZeroDivisionError"),
        (twice_at_once, 3, "DuplicateConflict"),
        (differing, 2, "DuplicateConflict"),
        (unspeakable, 1, "CodecError"),
        (confused, 1, "TypeError"),
        (misnamed, 1, "ValueError"),
        (no_event, 1, "TypeError"),
    ],
)
async def test_a_scorer_with_a_fault_is_quarantined_and_the_session_goes_on(
    observe: Observe, at: int, type_: str
) -> None:
    calls: list[int] = []

    def watched(record: Record) -> Sequence[Measurement]:
        calls.append(record.version)
        return observe(record)

    sound = Scoring(lambda record: [utility(f"record/{record.version}")], "sound")
    bare = await played(talk())
    found = await played(talk(Scoring(watched), sound))
    assert found.trace == bare.trace
    assert calls == list(range(1, at + 1)), "it is not asked again"
    failed = found.streams[stream_of(REF)][-1]
    assert isinstance(failed.event, ScorerFailed)
    assert (failed.event.type, failed.event.scorer) == (type_, REF)
    assert failed.cause == f"trace/{at}"
    assert len(found.streams["sound@1"]) == len(found.trace)


async def test_a_scorer_that_cannot_begin_is_quarantined(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unwilling(Scoring):
        def begin(self, session: str) -> SessionScorer:
            raise LookupError(f"no data for {session}")

    found = await played(talk(Unwilling(lambda record: [utility()])))
    [failed] = found.streams[stream_of(REF)]
    where = f"test_scorers_runner.py, line {Unwilling.begin.__code__.co_firstlineno + 1}, in begin"
    error = f"no data for session ({where})"
    assert failed.event == ScorerFailed(scorer=REF, error=error, type="LookupError")
    [line] = [r.getMessage() for r in caplog.records if r.name == "duolog.scorers"]
    assert line.startswith("event='a scorer failed, and measures this session no more'")
    assert f"error='LookupError: {error}'" in line


@in_virtual_time
async def test_a_scorer_that_hangs_is_quarantined_and_no_actor_is_blamed() -> None:
    class Hanging(Scoring):
        async def observe(self, record: Record) -> Sequence[Measurement]:
            if record.version == 3:
                await anyio.sleep_forever()
            return []

    session = msgspec.structs.replace(talk(Hanging(lambda record: [])), clock=VirtualClock(hold=1))
    found = await played(session)
    [failed] = found.streams[stream_of(REF)]
    assert failed.event == ScorerFailed(scorer=REF, error="it took too long", type="TimeoutError")
    assert found.trace == (await played(talk())).trace


async def test_two_scorers_of_one_name_and_version_contradict_each_other() -> None:
    with pytest.raises(InvalidInput, match="two scorers of one name and version"):
        await played(talk(rating_at(2), rating_at(3)))


async def test_a_log_that_fails_is_no_fault_of_the_scorers() -> None:
    class Full:
        def __init__(self, log: EventLog) -> None:
            self._log = log

        async def append(self, *args: object, **options: object) -> list[Record]:
            if "stream" in options:
                raise LogUnavailable("the disk is full")
            return await self._log.append(*args, **options)  # type: ignore[arg-type]

        def __getattr__(self, name: str) -> object:
            return getattr(self._log, name)

    async with open_log("memory://") as log:
        with pytest.raises(LogUnavailable):
            await run_session(Full(log), talk(rating_at(2)))  # type: ignore[arg-type]


# --- enforced stops ------------------------------------------------------------------------------------


async def test_a_stop_is_recorded_and_closes_the_session() -> None:
    workshop = Workshop()
    user = Script().say("a").pause(1).say("b").pause(9)
    helper = Script().act("search").pause(9)
    session = a_session(
        human(user),
        agent(helper),
        environment=workshop,
        scorers=(rating_at(4),),
        stop=RatedBadly(),
    )
    found = await played(session)
    assert [r.kind for r in found.trace][-2:] == ["ActionResolved", "SessionClosed"]
    closed = found.trace[-1].event
    assert closed == SessionClosed(
        reason="tolerance", by="engine", detail="tolerance 1 reached in round 1"
    )
    [advice] = found.streams["stop@1"]
    assert advice.event == StopAdvised(round=1, tau=1, rule="first bad", enforced=True)
    assert advice.cause == f"{stream_of(REF)}/1"
    assert found.trace[-1].time == found.trace[3].time, "it takes no session time"
    assert len(found.trace) == 6, "nobody acted after the rating"


async def test_advice_carries_its_scorers_name() -> None:
    class Named(RatedBadly):
        def feed(self, record: Record) -> StopAdvised | None:
            advice = super().feed(record)
            return advice and msgspec.structs.replace(advice, scorer=REF)

    found = await played(talk(rating_at(3), stop=Named()))
    assert [r.kind for r in found.streams[stream_of(REF)]] == ["ProgressRated", "StopAdvised"]


async def test_a_session_that_is_over_is_not_stopped() -> None:
    """The last rating comes with the close: a stop is not advised any more, let alone enforced."""

    def at_the_end(record: Record) -> Sequence[Measurement]:
        if record.kind != "SessionClosed":
            return []
        return [Measurement(ProgressRated(round=1, rating=1, scorer=REF), "round/1")]

    found = await played(talk(Scoring(at_the_end), stop=RatedBadly()))
    assert found.result.reason == "finished"
    assert set(found.streams) == {TRACE, stream_of(REF)}


async def test_a_stop_rule_is_fed_all_records_in_order_of_position() -> None:
    rule = RatedBadly()
    observing = Scoring(lambda record: [utility(f"record/{record.version}")])
    async with open_log("memory://") as log:
        session = msgspec.structs.replace(talk(observing), stop=rule, request="Go.")
        await run_session(log, session)
        recorded = [r async for r in log.read_all()]
    closed = next(i for i, record in enumerate(recorded) if record.kind == "SessionClosed")
    assert rule.fed == [(record.stream, record.version) for record in recorded[:closed]]


async def test_a_rating_by_the_person_can_stop_too() -> None:
    user = Script().say("a").hear().rate(1).pause(5).say("b")
    helper = Script().hear().say("x")
    found = await played(a_session(human(user), agent(helper), stop=RatedBadly()))
    assert found.result.reason == "tolerance"
    assert [r.kind for r in found.trace][-2:] == ["ProgressRated", "SessionClosed"]


# --- on the wall's clock ---------------------------------------------------------------------------------


async def test_on_the_wall_scorers_run_behind_and_are_done_before_the_result_is_there() -> None:
    gate = anyio.Event()

    class Slow(Scoring):
        async def observe(self, record: Record) -> Sequence[Measurement]:
            await gate.wait()
            return self._observe(record)

    slow = Slow(lambda record: [utility(f"record/{record.version}", record.version / 100)])

    async def act_on(event: anyio.Event) -> None:
        await anyio.wait_all_tasks_blocked()
        event.set()

    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        tasks.start_soon(act_on, gate)
        session = a_session(
            agent(Script().say("a").say("b").finish()),
            clock=RealClock(),
            seed=None,
            scorers=(slow,),
        )
        result = await run_session(log, session)
        found = await streams(log, session.id)
    assert len(found[stream_of(REF)]) == len(found[TRACE]) == 4
    assert result.utility == 0.04


async def test_on_the_wall_a_stop_ends_the_session() -> None:
    async def wait(context: object) -> None:
        await anyio.sleep_forever()

    session = a_session(
        human(Script().say("a")),
        agent(wait),
        clock=RealClock(),
        seed=None,
        scorers=(rating_at(2),),
        stop=RatedBadly(),
    )
    found = await played(session)
    assert found.result.reason == "tolerance"
