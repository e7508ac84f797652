"""The log as a product embeds it: recording, watching, callbacks, stops, closing."""

from __future__ import annotations

import asyncio
import inspect
import random
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import duolog
import pytest
from duolog.engine.errors import InvalidInput, LogClosed, LogUnavailable
from duolog.engine.events import ScorerRef, StopAdvised, UtilityScored
from duolog.engine.log.contract import Store
from duolog.engine.log.open import MemoryLog
from duolog.engine.records import Draft, Record
from duolog.engine.scorers.protocol import Measurement, SessionScorer
from duolog.scoring.live import score_log
from duolog.scoring.scorers.progress import rule_judge
from duolog.scoring.scorers.retention import RetentionUtility
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.updates import (
    EffortUpdated,
    RatingUpdated,
    ScorerDown,
    SessionEnded,
    StageChanged,
    StopAdvice,
    Update,
    UtilityUpdated,
)
from duolog.telemetry.log import Log, StoreMethod
from duolog.telemetry.receipt import Awaited
from duolog.telemetry.session import Recording
from duolog.testing.contracts.log import check_event_log
from gated_log import Gate
from log_measurements import last_utility

BAD = "That is still wrong, as I said before."


async def quarrel(s: Recording[Awaited], rounds: int = 3) -> None:
    """A conversation in which nothing comes of anything."""
    await s.human.says("Please mend the parser.")
    for number in range(rounds):
        await s.agent.says(f"I have tried {number} times.")
        await s.human.says(BAD)


async def until_closed(updates: AsyncIterator[Update], session: str) -> list[Update]:
    """Updates up to the end of a session and of its measurements."""
    found: list[Update] = []
    with anyio.fail_after(120):
        async for update in updates:
            found.append(update)
            if isinstance(update, SessionEnded) and update.session == session:
                return found
    return found


@pytest.mark.slow
async def test_it_keeps_the_contract_of_a_log(tmp_path: Path) -> None:
    await check_event_log(lambda: duolog.open("memory://"))
    paths = iter(range(1000))
    await check_event_log(lambda: duolog.open(f"sqlite:///{tmp_path}/{next(paths)}.db"))


async def test_it_takes_the_care_of_its_store(tmp_path: Path) -> None:
    async with duolog.open(f"sqlite:///{tmp_path}/t.db") as log:
        s = await log.session("s")
        await s.human.says("forget this", durable=True)
        records = [record async for record in log.read_all()]
        assert (await log.forget("s")).sessions == ("s",)
        assert (await log.verify()).problems == ()
        assert (await log.vacuum()).finished
    async with duolog.open("memory://") as copy:
        assert await copy.restore(records) == records


@pytest.mark.parametrize(
    "name", [name for name, member in vars(Log).items() if isinstance(member, StoreMethod)]
)
async def test_a_method_of_the_store_is_declared_as_the_store_declares_it(name: str) -> None:
    declared, found = getattr(Store, name), getattr(Log, name)
    assert inspect.getdoc(found) == inspect.getdoc(declared)
    assert inspect.signature(found) == inspect.signature(declared)
    store = MemoryLog()
    async with Log(store) as log:
        assert getattr(log, name) == getattr(store, name)


def test_a_log_has_all_that_a_store_has() -> None:
    public = {name for name in dir(Store) if not name.startswith("_")}
    assert public <= set(dir(Log))


# --- watching ------------------------------------------------------------------------------------


async def test_what_scoring_tells_while_people_work() -> None:
    async with duolog.open("memory://") as log:
        found: list[Update] = []
        scorers = (rule_judge(), RetentionUtility())
        updates = log.watch(scorers=scorers, on_update=found.append).start()
        s = await log.session("s", judge="rule-judge", utility="retention")
        await s.human.says("Please write to Ann.")
        await s.agent.submits("Dear Ann, I am well and hope the same of you")
        await s.human.edits("Dear Ann, I am ill and hope the same of you")
        await s.human.says("Thanks, that is perfect!")
        await s.agent.says("You are welcome")
        await s.close(durable=True)
        await updates.settle()
    assert {type(update).__name__ for update in found} >= {
        "RoundOpened",
        "RoundClosed",
        "EffortUpdated",
        "StageChanged",
        "RatingUpdated",
        "UtilityUpdated",
        "SessionEnded",
    }
    ratings = [(u.round, u.rating) for u in found if isinstance(u, RatingUpdated)]
    assert ratings[0] == (1, 5)
    utilities = [u for u in found if isinstance(u, UtilityUpdated)]
    assert utilities[-1].utility == pytest.approx(10 / 11)
    assert next(u.utility for u in utilities) is None  # there is an output, and no score of it yet
    assert {u.scorer for u in utilities} == {"", "retention@3"}
    [stage] = [u for u in found if isinstance(u, StageChanged)]
    assert (stage.round, stage.stage) == (2, "refinement")
    efforts = [u.effort["acts"] for u in found if isinstance(u, EffortUpdated)]
    assert efforts == [1, 2, 3]
    assert all(update.session == "s" and update.position > 0 for update in found)


async def test_live_equals_replay() -> None:
    """The same updates as a replay of the log gives, and the same trajectories."""
    async with duolog.open("memory://") as log:
        random_ = random.Random(7)
        found: dict[str, list[Update]] = {}
        updates = log.watch(
            scorers=[rule_judge(), RetentionUtility()],
            on_update=lambda update: found.setdefault(update.session, []).append(update),
        ).start()
        sessions = [await log.session(f"s{n}", judge="rule-judge") for n in range(20)]
        for turn in range(400):
            s = random_.choice(sessions)
            match random_.randrange(5):
                case 0:
                    await s.human.says(random_.choice((BAD, "Thanks, great!", "And now the rest.")))
                case 1:
                    await s.agent.says("Here you are.")
                case 2:
                    await s.agent.submits(f"draft {turn} of the letter")
                case 3:
                    await s.human.edits(f"draft {turn} of my letter")
                case 4:
                    await s.agent.acts("look", result=turn)
            if turn % 50 == 0:
                await anyio.wait_all_tasks_blocked()
        for s in sessions:
            await s.close(durable=True)
        await updates.settle()
        assert set(found) == {s.id for s in sessions}
        for session, live in found.items():
            fold = TrajectoryFold(session)
            replayed: list[Update] = []
            async for record in log.read_all(session=session):
                replayed.extend(fold.feed(record))
            assert live == replayed
            assert fold.trajectory() == await score_log(log, session)


async def test_a_watch_begins_now_or_where_it_is_told() -> None:
    async with duolog.open("memory://") as log:
        s = await log.session("s")
        await s.human.says("one", durable=True)
        later, all_ = log.watch(), log.watch(after_position=0)
        await s.human.says("two")
        await s.close(durable=True)
        first = await until_closed(all_, "s")
        second = await until_closed(later, "s")
        assert [u.position for u in first if isinstance(u, EffortUpdated)] == [2, 3]
        assert [u.position for u in second if isinstance(u, EffortUpdated)] == [3]


async def test_one_session_only() -> None:
    async with duolog.open("memory://") as log:
        updates = log.watch(scorers=[rule_judge()], session="b")
        for name in ("a", "b"):
            s = await log.session(name)
            await quarrel(s)
            await s.close(durable=True)
        found = await until_closed(updates, "b")
        assert {update.session for update in found} == {"b"}
        await updates.aclose()


async def test_a_loop_over_a_watch_ends_with_the_log() -> None:
    found: list[Update] = []

    async def consume(log: Log) -> None:
        found.extend([update async for update in log.watch(scorers=[rule_judge()])])

    async with anyio.create_task_group() as tasks, duolog.open("memory://") as log:
        tasks.start_soon(consume, log)
        await anyio.wait_all_tasks_blocked()
        s = await log.session("s")
        await quarrel(s)
        await s.close()
    assert any(isinstance(update, StopAdvice) for update in found)
    assert any(isinstance(update, SessionEnded) for update in found)


async def test_a_watch_that_is_closed_ends_its_scorers() -> None:
    async with duolog.open("memory://") as log:
        updates = log.watch(scorers=[rule_judge()])
        s = await log.session("s")
        await s.human.says("hello")
        assert (await anext(updates)).session == "s"
        await updates.aclose()
        assert [update async for update in updates] == []
        await quarrel(s)
        await s.close(durable=True)
        await anyio.wait_all_tasks_blocked()
        assert [r.stream async for r in log.read_all() if r.stream != "trace"] == []


async def test_nothing_that_waits_for_updates_loses_one() -> None:
    async with duolog.open("memory://") as log:
        s = await log.session("s")
        updates = log.watch()
        await s.human.says("hello", durable=True)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anext(updates)
        assert [type(await anext(updates)).__name__ for _ in range(2)] == [
            "RoundOpened",
            "EffortUpdated",
        ]


# --- stops ---------------------------------------------------------------------------------------


async def advised(log: Log, session: str) -> list[StopAdvised]:
    events = [record.event async for record in log.read(session, stream="tolerance@1")]
    return [event for event in events if isinstance(event, StopAdvised)]


async def test_advice_to_stop_is_delivered_and_recorded() -> None:
    async with duolog.open("memory://") as log:
        told: list[StopAdvice] = []

        async def warn(advice: StopAdvice) -> None:
            told.append(advice)

        updates = log.watch(
            scorers=[rule_judge()], options=Options(taus=(2,)), on_stop=warn
        ).start()
        s = await log.session("s", judge="rule-judge")
        await quarrel(s)
        await s.close(durable=True)
        await updates.settle()
        [advice] = told
        assert (advice.session, advice.round, advice.tau) == ("s", 2, 2)
        assert advice.rounds == (1, 2)
        assert all(rating < 3 for rating in advice.ratings)
        [event] = await advised(log, "s")
        assert event == StopAdvised(
            round=2,
            tau=2,
            rule="2 rounds in a row rated below 3",
            enforced=False,
            scorer=ScorerRef(name="tolerance", version="1", config=""),
        )
        again = log.watch(options=Options(taus=(2,)), after_position=0, on_stop=warn).start()
        await again.settle()
        assert len(told) == 2
        assert len(await advised(log, "s")) == 1  # delivered again, and recorded once


async def test_a_watch_that_only_looks_on_takes_no_advice_from_a_handler(tmp_path: Path) -> None:
    """A record of delivery by the onlooker would tell the handler's watch that it is done."""
    async with duolog.open(f"sqlite:///{tmp_path}/t.db") as log:
        s = await log.session("s", judge="human")
        for _ in range(3):
            await s.agent.says("no")
            await s.human.rates(1)
            await s.human.says("that is wrong")
        await s.close(durable=True)
        options = Options(taus=(2,))
        looking = log.watch(options=options, after_position=0)
        assert any([isinstance(await anext(looking), StopAdvice) for _ in range(12)])
        assert await advised(log, "s") == []
        told: list[StopAdvice] = []

        async def warn(advice: StopAdvice) -> None:
            told.append(advice)

        handling = log.watch(options=options, after_position=0, on_stop=warn, leases=True).start()
        await handling.settle()
        assert len(told) == len(await advised(log, "s")) == 1


async def test_a_restarted_watch_records_nothing_twice(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    counts = []
    for turn in range(3):
        async with duolog.open(url) as log:
            log.watch(scorers=[rule_judge(), RetentionUtility()], after_position=0).start()
            s = await log.session("s", judge="rule-judge")
            await s.agent.submits(f"draft {turn}")
            await quarrel(s)
        async with duolog.open(url) as log:
            ids = [r.caller_id async for r in log.read_all() if r.stream != "trace"]
            assert len(set(ids)) == len(ids)
            counts.append(len(ids))
    assert counts == sorted(set(counts))


# --- what goes wrong, and stays here ---------------------------------------------------------------


class Broken:
    """A scorer that breaks at the first thing it is shown."""

    ref = ScorerRef(name="broken", version="1", config="-")

    def begin(self, session: str) -> SessionScorer:
        return self

    async def observe(self, record: Record) -> Sequence[Measurement]:
        raise RuntimeError("no such model")


class Stuck:
    """A scorer that waits, and scores once it may."""

    ref = ScorerRef(name="stuck", version="1", config="-")

    def __init__(self) -> None:
        self.free = anyio.Event()

    def begin(self, session: str) -> SessionScorer:
        return self

    async def observe(self, record: Record) -> Sequence[Measurement]:
        await self.free.wait()
        if record.kind != "MessageSent":
            return ()
        scored = UtilityScored(scorer=self.ref, round=1, value=0.5)
        return (Measurement(scored, f"m/{record.version}"),)


async def test_a_broken_scorer_shows_and_reaches_nobody() -> None:
    async with duolog.open("memory://") as log:
        found: list[Update] = []
        updates = log.watch(scorers=[Broken(), rule_judge()], on_update=found.append).start()
        s = await log.session("s", judge="rule-judge")
        await quarrel(s)
        await s.close(durable=True)
        await updates.settle()
        [down] = [update for update in found if isinstance(update, ScorerDown)]
        line = Broken.observe.__code__.co_firstlineno + 1
        where = f"test_telemetry_log.py, line {line}, in observe"
        assert (down.scorer, down.error) == ("broken@1", f"RuntimeError: no such model ({where})")
        assert sum(isinstance(update, StopAdvice) for update in found) == 3
        assert [s.quarantined for s in updates.statistics().scorers] == [1, 0]


async def test_nothing_that_is_recorded_waits_for_a_scorer() -> None:
    async with duolog.open("memory://") as log:
        stuck = Stuck()
        updates = log.watch(scorers=[stuck]).start()
        s = await log.session("s")
        await quarrel(s, rounds=100)
        await s.close(durable=True)
        assert (await log.summary("s")).state == "ended"
        assert await last_utility(log, "s") is None
        stuck.free.set()
        await updates.settle()
        assert await last_utility(log, "s") == 0.5


@pytest.mark.parametrize("error", [KeyError("dashboard"), asyncio.CancelledError("dashboard")])
async def test_a_callback_that_raises_is_logged_and_counted(
    caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    async with duolog.open("memory://") as log:

        async def fails(advice: StopAdvice) -> None:
            raise error

        updates = log.watch(scorers=[rule_judge()], on_stop=fails).start()
        s = await log.session("s", judge="rule-judge")
        await quarrel(s)
        await s.close(durable=True)
        await updates.settle()
        statistics = updates.statistics()
        assert (statistics.failed, statistics.stops) == (3, 3)
        assert len(await advised(log, "s")) == 3
        assert "a callback failed" in caplog.text
        assert f"{type(error).__name__}: {error}" in caplog.text


async def test_an_advice_that_cannot_be_recorded_is_delivered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(session: str, drafts: Sequence[Draft], stream: str) -> Exception | None:
        return LogUnavailable("full") if stream.startswith("tolerance") else None

    gate = Gate(MemoryLog())
    gate.fail(refuse)
    told: list[StopAdvice] = []
    async with Log(gate.log) as log:
        updates = log.watch(scorers=[rule_judge()], on_stop=told.append).start()
        s = await log.session("s", judge="rule-judge")
        await quarrel(s)
        await s.close(durable=True)
        await updates.settle()
    assert len(told) == 3
    assert "was delivered, and could not be recorded" in caplog.text


# --- opening and closing ---------------------------------------------------------------------------


async def test_settling_waits_until_all_is_written_measured_and_told() -> None:
    found: list[Update] = []
    async with duolog.open("memory://") as log:
        log.watch(scorers=[rule_judge()], on_update=found.append).start()
        s = await log.session("s", judge="rule-judge")
        await quarrel(s)
        await log.settle()
        assert log.recorder.statistics().waiting == 0
        assert [update.round for update in found if isinstance(update, StopAdvice)] == [1, 2, 3]
        await log.settle()
    await log.settle()  # nothing is waited for in a log that is closed


async def test_closing_measures_what_was_recorded() -> None:
    told: list[Update] = []
    async with duolog.open("memory://") as log:
        log.watch(scorers=[rule_judge()], on_update=told.append).start()
        s = await log.session("s", judge="rule-judge")
        await quarrel(s)
    assert sum(isinstance(update, StopAdvice) for update in told) == 3


async def test_closing_does_not_wait_for_ever() -> None:
    gate = Gate(MemoryLog())
    async with Log(gate.log, deadline=0.05) as log:
        log.watch(scorers=[Stuck()]).start()
        s = await log.session("s")
        await s.human.says("written", durable=True)
        gate.fail(lambda session, drafts, stream: LogUnavailable("full"))
        await s.human.says("lost")
        with anyio.fail_after(120):
            while not log.recorder.statistics().retries:  # noqa: ASYNC110  (nobody tells)
                await anyio.sleep(0.001)
    assert [(part.session, part.events, part.error) for part in log.unwritten] == [("s", 1, "full")]
    await log.aclose()


async def test_closed_is_closed() -> None:
    async with duolog.open("memory://") as log:
        updates = log.watch()
        await log.aclose()
        with pytest.raises(LogClosed):
            await log.session("s")
        with pytest.raises(LogClosed):
            log.watch()
        with pytest.raises(LogClosed):
            await anext(updates)


async def test_what_cannot_be_opened_is_not_left_open(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with pytest.raises(InvalidInput, match="at least one event"):
        async with duolog.open(f"sqlite:///{path}", room=0):
            pass
    with pytest.raises(LogClosed, match="open the log with 'async with' before using it"):
        duolog.open("memory://").watch(after_position=0).start()
    with pytest.raises(InvalidInput, match="no store for"):
        duolog.open("ftp://x")


async def test_a_watch_is_started_once() -> None:
    async with duolog.open("memory://") as log:
        updates = log.watch().start()
        with pytest.raises(InvalidInput, match="started once"):
            updates.start()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"idle_after": "7d"}, "idle_after is a number, not '7d'"),
        ({"room": True}, "room is a number, not True"),
        ({"linger": "5ms"}, "linger is a number, not '5ms'"),
        ({"spill": "/tmp/spill"}, "such as Spill"),
        ({"retention": "90d"}, "such as Retention"),
    ],
)
def test_a_setting_of_the_wrong_type_is_refused_at_once(
    setting: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        duolog.open("memory://", **setting)
