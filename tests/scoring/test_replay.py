"""Replay: the updates that live scoring gave, in their order, at any speed, up to any point."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from duolog.engine.errors import InvalidInput, SessionNotFound
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.scoring.live import score_log, watch
from duolog.scoring.replay import Replay, Until, replay
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.updates import Update
from duolog.testing.records import RecordWriter

FAST = Options(taus=(1,))


def two_rounds(session: str, slow: float = 1.0) -> RecordWriter:
    """A session of two rounds; the rating of the first comes after the second has begun."""
    script = RecordWriter(session)
    script.opened(config={"judge": "judge"})
    script.human("plan a trip", at=slow)
    draft = script.output("a plan", at=2 * slow)
    script.scored(0.5, snapshot=draft)
    script.human("no", at=10 * slow)
    script.rated(1, 2)
    better = script.output("a better plan", at=20 * slow)
    script.scored(0.75, snapshot=better)
    script.closed(at=30 * slow)
    return script


@pytest.fixture
async def log() -> AsyncIterator[EventLog]:
    """Two sessions whose records alternate."""
    async with open_log("memory://") as log:
        pairs = zip(two_rounds("one").records, two_rounds("two", 2.0).records, strict=True)
        await log.restore([record for pair in pairs for record in pair])
        yield log


async def watched(log: EventLog, count: int) -> list[Update]:
    updates: list[Update] = []
    async with watch(log, options=FAST) as live:
        while len(updates) < count:
            updates.append(await live.__anext__())
    return updates


async def test_a_replay_gives_what_live_gave(log: EventLog) -> None:
    replayed = [update async for update in replay(log, options=FAST)]
    assert len(replayed) > 20
    assert replayed == await watched(log, len(replayed))


async def test_its_trajectories_are_those_of_the_log(log: EventLog) -> None:
    steps = Replay(log, options=FAST)
    records = [step.record async for step in steps]
    assert records == [record async for record in log.read_all()]
    assert steps.sessions == ("one", "two")
    for session in steps.sessions:
        assert steps.trajectory(session) == await score_log(log, session, FAST)
    with pytest.raises(InvalidInput, match="no record of session 'three'"):
        steps.trajectory("three")


async def test_one_session_alone(log: EventLog) -> None:
    alone = [update async for update in replay(log, session="two", options=FAST)]
    among = [update async for update in replay(log, options=FAST) if update.session == "two"]
    assert alone == among
    with pytest.raises(SessionNotFound):
        [update async for update in replay(log, session="three")]


@pytest.mark.parametrize(
    ("until", "versions"),
    [
        (Until(round=1), 3),
        (Until(round=2), 6),
        (Until(version=4), 4),
        (Until(seconds=9.0), 3),
        (Until(seconds=10.0), 4),
        (Until(time=10.0), 4),
        (Until(), 6),
    ],
)
async def test_it_stops_where_it_is_told(until: Until, versions: int, log: EventLog) -> None:
    steps = Replay(log, session="one", until=until)
    trace = [step.record.version async for step in steps if step.record.stream == "trace"]
    assert trace == list(range(1, versions + 1))


async def test_what_was_said_later_is_not_there_yet(log: EventLog) -> None:
    steps = Replay(log, session="one", options=FAST, until=Until(round=1))
    recorded = [step.record.kind async for step in steps if step.record.stream != "trace"]
    assert recorded == ["UtilityScored"]
    [point] = steps.trajectory("one").points
    assert (point.utility, point.rating, point.pending) == (0.5, None, True)


async def test_each_session_stops_on_its_own(log: EventLog) -> None:
    steps = Replay(log, until=Until(seconds=10.0))
    last: dict[str, int] = {}
    async for step in steps:
        if step.record.stream == "trace":
            last[step.record.session] = step.record.version
    assert last == {"one": 4, "two": 3}


class Wall:
    """A clock that only sleep moves."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


async def test_speed_scales_session_time(log: EventLog) -> None:
    wall = Wall()
    steps = Replay(log, session="one", speed=10.0, now=wall.now, sleep=wall.sleep)
    when = [(step.record.time, wall.time) async for step in steps]
    assert when[0] == (0.0, 100.0)
    assert [at for time, at in when] == pytest.approx([100 + time / 10 for time, _ in when])
    assert wall.time == pytest.approx(103.0)


async def test_time_lost_between_records_is_made_up(log: EventLog) -> None:
    wall = Wall()
    steps = Replay(log, session="one", speed=1.0, now=wall.now, sleep=wall.sleep)
    async for step in steps:
        if step.record.kind == "MessageSent":
            wall.time += 7.5  # the viewer is slow
    assert wall.time == 130.0


async def test_records_of_several_sessions_keep_their_order(log: EventLog) -> None:
    wall = Wall()
    steps = Replay(log, speed=1.0, now=wall.now, sleep=wall.sleep)
    positions = [step.record.position async for step in steps]
    assert positions == sorted(positions)
    assert wall.time == 160.0  # the slower session's length


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
async def test_a_speed_is_above_zero(speed: float, log: EventLog) -> None:
    with pytest.raises(InvalidInput, match="the speed of a replay is above 0"):
        Replay(log, speed=speed)


@pytest.mark.parametrize(
    "values", [{"round": 0}, {"version": -1}, {"seconds": -1.0}, {"time": float("nan")}]
)
def test_a_point_that_is_none(values: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="to stop at"):
        Until(**values)  # type: ignore[arg-type]
