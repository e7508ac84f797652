from __future__ import annotations

import random

import anyio
import msgspec
import pytest
from duolog.engine.errors import InvalidInput, SessionNotFound
from duolog.engine.events import (
    ActionTaken,
    Event,
    ProgressRated,
    Role,
    ScorerFailed,
    ScorerRef,
    SessionOpened,
    SnapshotTaken,
    StopAdvised,
    UtilityScored,
)
from duolog.engine.log.memory import MemoryLog
from duolog.engine.records import TRACE, Draft, Record
from duolog.engine.rounds import RoundProjector, Rounds, is_act
from duolog.engine.scorers.runner import ScorerRunner
from duolog.scoring.live import score_log, score_records, score_sessions, watch
from duolog.scoring.scorers.progress import rule_judge
from duolog.scoring.scorers.utility import Missing, Score, SnapshotUtility
from duolog.scoring.stopping import ToleranceStop
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.points import Trajectory
from duolog.scoring.trajectory.tolerance import PENDING, stop_rounds
from duolog.scoring.trajectory.updates import (
    RatingUpdated,
    RoundClosed,
    RoundOpened,
    StopAdvice,
    StopWithdrawn,
    Update,
    UtilityUpdated,
)
from duolog.testing.records import RecordWriter
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

# --- sessions of any shape, measured in any order ------------------------------------------------

STEPS = st.lists(
    st.sampled_from(["human", "agent", "search", "look", "draft", "edit", "blank", "rate"]),
    max_size=25,
)
SCORES = st.lists(
    st.tuples(
        st.sampled_from(["u@1.9", "u@1.10", "v@1"]),
        st.integers(1, 40),
        st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 1.0])),
    ),
    max_size=12,
)
RATED = st.lists(
    st.tuples(
        st.sampled_from(["j@1", "j@2"]),
        st.integers(1, 40),
        st.one_of(st.none(), st.integers(1, 5)),
        st.sampled_from(["handoff", "human-turn"]),
    ),
    max_size=12,
)
JUDGES = st.sampled_from([None, "human", "j", "nobody"])
OPTIONS = st.builds(
    Options,
    rounds=st.sampled_from(["handoff", "human-turn"]),
    utility=st.sampled_from([None, "u", "v"]),
    judge=st.sampled_from(["auto", "auto", "none", "j@1"]),
)


class Session:
    """A trace, and measurements of it by stream, each with the trace version it has to follow."""

    def __init__(
        self,
        steps: list[str],
        scores: list[tuple[str, int, float | None]],
        rated: list[tuple[str, int, int | None, str]],
        judge: str | None,
        closes: bool,
        fails: bool,
    ) -> None:
        script = RecordWriter()
        script.opened(config={"judge": judge} if judge else {})
        for step in steps:
            self._do(script, step)
        if closes:
            script.closed()
        self.trace = list(script.records)
        last = len(self.trace)
        self.streams: dict[str, list[tuple[int, Record]]] = {}
        ends: dict[str, int] = {}
        for stream, at, value in scores:
            about = self.trace[(at - 1) % last]
            self._measure(
                script, stream, about.version, script.scored(value, snapshot=about, scorer=stream)
            )
        for stream, at, rating, rounds in rated:
            about = self.trace[(at - 1) % last]
            ends[stream] = number = ends.get(stream, 0) + 1
            record = script.rated(
                number,
                rating,
                judge=stream,
                until=about,
                rounds="handoff" if rounds == "handoff" else "human-turn",
            )
            self._measure(script, stream, about.version, record)
        if fails:
            ref = ScorerRef(name="j", version="1", config="")
            event = ScorerFailed(scorer=ref, error="x", type="E")
            self._measure(script, "j@1", 1, script.add(event, "j", "scorer", stream="j@1"))

    def _do(self, script: RecordWriter, step: str) -> None:
        match step:
            case "human":
                script.human("please go on")
            case "agent":
                script.agent("well")
            case "search":
                script.agent(ActionTaken(name="search"))
            case "look":
                script.human(ActionTaken(name="look"))
            case "draft":
                script.output(f"draft {len(script.records)}")
            case "edit":
                script.output(f"edit {len(script.records)}", by="human")
            case "blank":
                script.output("")
            case "rate":
                version = script.records[-1]
                script.rated(1, 1 + len(script.records) % 5, judge=None, until=version)

    def _measure(self, script: RecordWriter, stream: str, needs: int, record: Record) -> None:
        self.streams.setdefault(stream, []).append((needs, record))

    def merged(self, seed: random.Random) -> list[Record]:
        """All records in some order that a log may have: each stream's own order is kept."""
        left = {stream: list(records) for stream, records in self.streams.items()}
        trace = list(self.trace)
        reached = 0
        merged: list[Record] = []
        while trace or any(left.values()):
            ready = [s for s, records in left.items() if records and records[0][0] <= reached]
            choices = [*ready, TRACE] if trace else ready
            stream = seed.choice(choices)
            if stream == TRACE:
                record = trace.pop(0)
                reached = record.version
            else:
                record = left[stream].pop(0)[1]
            merged.append(msgspec.structs.replace(record, position=len(merged) + 1))
        return merged


SESSIONS = st.builds(Session, STEPS, SCORES, RATED, JUDGES, st.booleans(), st.booleans())


def told(records: list[Record], options: Options) -> tuple[list[Update], TrajectoryFold]:
    fold = TrajectoryFold(records[0].session, options)
    return [update for record in records for update in fold.feed(record)], fold


@given(SESSIONS, OPTIONS, st.randoms(use_true_random=False), st.randoms(use_true_random=False))
def test_when_measurements_come_does_not_change_the_trajectory(
    session: Session, options: Options, one: random.Random, other: random.Random
) -> None:
    _, first = told(session.merged(one), options)
    _, second = told(session.merged(other), options)
    assert first.trajectory() == second.trajectory()
    assert first.stops == second.stops


@given(SESSIONS, OPTIONS, st.randoms(use_true_random=False))
def test_looking_at_the_trajectory_in_between_changes_nothing(
    session: Session, options: Options, seed: random.Random
) -> None:
    records = session.merged(seed)
    fold = TrajectoryFold("s", options)
    updates: list[Update] = []
    for count, record in enumerate(records, start=1):
        updates += fold.feed(record)
        assert fold.trajectory() == score_records(records[:count], options)
    assert (updates, fold.trajectory()) == (
        told(records, options)[0],
        score_records(records, options),
    )


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(SESSIONS, OPTIONS, st.randoms(use_true_random=False))
def test_whoever_follows_the_updates_knows_the_trajectory(
    session: Session, options: Options, seed: random.Random
) -> None:
    updates, fold = told(session.merged(seed), options)
    utility: dict[int, float | None] = {}
    rating: dict[int, int | None] = {}
    stops: dict[int, int] = {}
    for update in updates:
        match update:
            case RoundOpened():
                utility[update.round] = update.utility
                rating.setdefault(update.round, None)
            case RoundClosed():
                assert utility[update.round] == update.point.utility
                assert rating[update.round] in (None, update.point.rating)
            case UtilityUpdated():
                for number in range(update.round, update.through + 1):
                    utility[number] = update.utility
            case RatingUpdated():
                rating[update.round] = update.rating
            case StopWithdrawn():
                del stops[update.tau]
            case StopAdvice():
                stops[update.tau] = update.round
                assert len(update.ratings) == update.tau
    points = fold.trajectory().points
    assert [utility[point.round] for point in points] == [point.utility for point in points]
    assert [rating[point.round] for point in points] == [point.rating for point in points]
    assert stops == fold.stops


@given(SESSIONS, OPTIONS, st.randoms(use_true_random=False))
def test_stops_are_those_of_the_ratings_in_the_trajectory(
    session: Session, options: Options, seed: random.Random
) -> None:
    fold = told(session.merged(seed), options)[1]
    points = fold.trajectory().points
    ratings = [PENDING if point.pending else point.rating for point in points if not point.closing]
    assert {tau: fold.stops.get(tau) for tau in (1, 2, 3)} == stop_rounds(ratings, (1, 2, 3))


@given(SESSIONS, OPTIONS, st.randoms(use_true_random=False))
def test_effort_only_grows(session: Session, options: Options, seed: random.Random) -> None:
    points = score_records(session.merged(seed), options).points
    for measure in ("rounds", "acts", "tokens_written", "tokens_read", "deferrals", "seconds"):
        values = [value for point in points if (value := point.effort[measure]) is not None]
        assert values == sorted(values)


@given(SESSIONS, st.sampled_from(["handoff", "human-turn"]))
def test_records_that_open_no_round_need_not_be_fed_to_the_projector(
    session: Session, convention: Rounds
) -> None:
    whole, sparse = RoundProjector(convention), RoundProjector(convention)
    for record in session.trace:
        over = whole.feed(record)
        if is_act(record) or record.kind in ("SessionOpened", "SessionClosed"):
            assert sparse.feed(record) == over


# --- logs ----------------------------------------------------------------------------------------


def length(snapshot: SnapshotTaken, opened: SessionOpened) -> Score | Missing:
    text = str(snapshot.content)
    return Score(len(text) / 20) if len(text) <= 20 else Missing("too long to judge")


async def play(log: MemoryLog, session: str, rounds: int) -> None:
    """A session of some rounds, scored live."""
    measuring = ScorerRunner(log, session, [SnapshotUtility("length", "1", length), rule_judge()])

    async def add(event: Event, actor: str, role: Role) -> None:
        await measuring.measure(await log.append(session, [Draft(event, actor, role, 1.0)]))

    script = RecordWriter(session)
    script.opened(config={"judge": "rule-judge"})
    for number in range(rounds):
        script.human("that is still wrong" if number % 3 else "great, go on")
        script.agent("let me see")
        script.output("x" * (number * 7))
    script.closed()
    for record in script.records:
        event = record.event
        assert isinstance(event, Event)
        await add(event, record.actor, record.role)


async def replayed(log: MemoryLog, session: str) -> tuple[list[Update], Trajectory]:
    fold = TrajectoryFold(session)
    updates: list[Update] = []
    async for record in log.read_all(session=session):
        updates += fold.feed(record)
    return updates, fold.trajectory()


async def test_live_gives_the_same_updates_as_a_replay() -> None:
    names = [f"s{number}" for number in range(8)]
    live: list[Update] = []
    async with MemoryLog() as log, watch(log) as updates:

        async def everything() -> None:
            async with anyio.create_task_group() as players:
                for number, name in enumerate(names):
                    players.start_soon(play, log, name, 1 + number)
            await log.append("end", [Draft(opening(), "engine", "environment", 0.0)])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(everything)
            async for update in updates:
                if update.session == "end":
                    break
                live.append(update)
        again: list[Update] = []
        for name in names:
            expected, trajectory = await replayed(log, name)
            assert expected == [update for update in live if update.session == name]
            assert updates.trajectory(name) == trajectory == await score_log(log, name)
            again += expected
        assert len(again) == len(live)
        assert any(isinstance(update, StopAdvice) for update in live)
        scored = [trajectory async for trajectory in score_sessions(log)]
        assert {t.session: t for t in scored}["s3"] == await score_log(log, "s3")
        assert len(scored) == len(names) + 1


def opening() -> SessionOpened:
    return SessionOpened(task="t", instance="1", participants=(), clock="utc")


async def test_watching_from_a_position_gives_what_a_whole_watch_gives_after_it() -> None:
    async with MemoryLog() as log:
        await play(log, "a", 3)
        await play(log, "b", 3)
        await log.append("end", [Draft(opening(), "engine", "environment", 0.0)])
        whole = await until_end(log, 0)
        for position in (1, 5, 17, 30):
            rest = [update for update in whole if update.position > position]
            assert await until_end(log, position) == rest


async def until_end(log: MemoryLog, after_position: int, keep: int = 1024) -> list[Update]:
    got: list[Update] = []
    async with watch(log, after_position=after_position, keep=keep) as updates:
        async for update in updates:
            if update.session == "end":
                return got
            got.append(update)
    raise AssertionError("the watch ended")


async def test_a_session_measured_long_after_its_close_is_folded_again() -> None:
    async with MemoryLog() as log:
        for name in ("a", "b", "c"):
            await play(log, name, 2)
        ref = ScorerRef(name="length", version="2", config="")
        late = UtilityScored(scorer=ref, snapshot=4, value=0.9)
        await log.append("a", [Draft(late, "length", "scorer", 1.0)], stream="length@2")
        await log.append("end", [Draft(opening(), "engine", "environment", 0.0)])
        few = await until_end(log, 0, keep=1)
        assert few == await until_end(log, 0)
        assert isinstance(few[-1], UtilityUpdated)
        assert few[-1].session == "a"


async def test_a_large_record_is_not_lost_where_its_step_is_cancelled() -> None:
    script = RecordWriter()
    async with MemoryLog() as log:
        for record in (script.opened(), script.human("a" * 100_000)):
            draft = Draft(record.event, record.actor, record.role, record.time)  # type: ignore[arg-type]
            await log.append("s", [draft])
        async with watch(log, after_position=0) as updates:
            assert (await updates.step()).record.position == 1
            with anyio.CancelScope() as scope:
                scope.cancel()
                await updates.step()
            assert updates.position == 1
            with anyio.fail_after(120):
                assert (await updates.step()).record.position == 2
        assert updates.position == 2


async def test_one_session_can_be_watched_alone() -> None:
    async with MemoryLog() as log:
        await play(log, "a", 2)
        await play(log, "b", 2)
        expected, _ = await replayed(log, "b")
        async with watch(log, session="b") as updates:
            got = [await updates.__anext__() for _ in expected]
            assert got == expected
            with pytest.raises(InvalidInput, match="'a'"):
                updates.trajectory("a")


async def test_a_session_that_is_not_there_cannot_be_scored() -> None:
    async with MemoryLog() as log:
        with pytest.raises(SessionNotFound):
            await score_log(log, "nobody")


def test_a_tolerance_used_up_advises_the_engine_to_stop() -> None:
    script = RecordWriter()
    script.opened(config={"judge": "human"})
    stop = ToleranceStop("s", 2)
    advice: list[StopAdvised] = []
    for _ in range(3):
        script.human("go on")
        script.agent("well")
        script.rated(1, 2, judge=None, until=script.records[-1])
    for record in script.records:
        advised = stop.feed(record)
        if advised is not None:
            advice.append(advised)
    assert [(a.round, a.tau, a.rule, a.enforced) for a in advice] == [
        (2, 2, "2 rounds in a row rated below 3", True)
    ]


def test_a_rating_in_the_log_is_what_a_judge_recorded() -> None:
    script = RecordWriter()
    record = script.rated(1, 4)
    assert isinstance(record.event, ProgressRated)
    assert record.event.scorer == ScorerRef(name="judge", version="1", config="")
