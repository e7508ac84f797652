"""Oversight: approvals by who decided, interruptions, pushback, autonomous stretches, attended time."""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.to_thread
import duolog
import pytest
from duolog.cli import main
from duolog.engine.errors import InvalidInput
from duolog.engine.events import ApprovalAsked, ApprovalGiven, RecordsLost
from duolog.engine.records import RECORDING, Draft
from duolog.scoring.display.updates import describe_update
from duolog.scoring.oversight import (
    Oversight,
    OversightFold,
    attended_seconds,
    fold_oversight,
    follow_oversight,
    summarise,
)
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.updates import AnyUpdate, OversightUpdated
from duolog.telemetry.log import Log

T = 1_800_000_000.0


async def found_in(log: Log, session: str) -> Oversight:
    await log.settle()
    fold = OversightFold()
    async for record in log.read(session):
        fold.feed(record)
    return fold.measures


async def test_who_decided_is_told_apart() -> None:
    async with duolog.open("memory://") as log:
        session = await log.session("s", task="deploy")
        agent, human = session.agent, session.human
        decisions: list[dict[str, object]] = [
            {"source": "person"},
            {"source": "person", "approved": False},
            {"source": "rule"},
            {"source": "setting", "approved": False},
            {},
            {"approved": False, "expired": True},
        ]
        for number, decision in enumerate(decisions):
            asked = await agent.asks(
                "May I?", action=f"a{number}", shows="a diff", risk="high", at=T
            )
            await human.approves(asked, at=T + 10 * (number + 1), **decision)  # type: ignore[arg-type]
        await agent.asks("And this?", action="open", at=T + 90)
        await agent.acts("a0", result="ok", at=T + 91)
        await agent.acts("unasked", result="ok", at=T + 92)
        found = await found_in(log, "s")
        records = [record async for record in log.read("s")]
    got = found.approvals
    assert (got.asked, got.approved_by_person, got.rejected_by_person) == (7, 1, 1)
    assert (got.by_rule, got.by_setting, got.by_unknown) == (1, 1, 1)
    assert (got.expired, got.unanswered) == (1, 1)
    assert (got.never_asked, got.actions) == (1, 2)
    assert found.latencies == (10.0, 10.0)
    assert found.approves_everything is False
    given = [
        (one.event.source, one.role) for one in records if isinstance(one.event, ApprovalGiven)
    ]
    assert given == [
        ("person", "human"),
        ("person", "human"),
        ("rule", "environment"),
        ("setting", "environment"),
        (None, "human"),
        (None, "environment"),
    ]
    (first, *_) = [one.event for one in records if isinstance(one.event, ApprovalAsked)]
    assert first.risk == "high"
    assert first.shown is not None


async def test_a_decision_of_a_rule_opens_no_round() -> None:
    async with duolog.open("memory://") as log:
        session = await log.session("s")
        await session.human.says("Deploy it.")
        asked = await session.agent.asks("May I?")
        await session.human.approves(asked, source="setting")
        await session.agent.says("Done.")
        await log.settle()
        assert (await found_in(log, "s")).agent_turns == 1


async def test_what_contradicts_itself_is_refused() -> None:
    async with duolog.open("memory://") as log:
        session = await log.session("s")
        asked = await session.agent.asks("May I?")
        with pytest.raises(InvalidInput, match="expired"):
            await session.human.approves(asked, expired=True)
        with pytest.raises(InvalidInput, match="source is person, rule or setting"):
            await session.human.approves(asked, source="robot")  # type: ignore[arg-type]


async def test_interruptions_pushback_questions_and_stretches() -> None:
    async with duolog.open("memory://") as log:
        session = await log.session("s", labels={"person": "p1"})
        agent, human = session.agent, session.human
        await human.says("Book a train to Lyon on Friday.", at=T)
        await agent.says("Which class would you like?", at=T + 5)
        await human.says("First class, please.", at=T + 20)
        await agent.acts("search", at=T + 25)
        await human.says("That is wrong, I said Lyon, not Paris.", at=T + 30)
        await agent.acts("search", {"to": "Lyon"}, result="8:02", at=T + 40)
        await agent.says("8:02 it is.", at=T + 100)
        found = await found_in(log, "s")
    assert (found.agent_turns, found.human_turns, found.questions) == (3, 3, 1)
    assert found.interruptions == 1
    assert found.corrections == 1
    assert found.stretches == ((1, 0.0), (1, 0.0), (2, 60.0))
    assert found.person == "p1"
    summary = summarise([found])
    assert summary.interruptions_by_turn == pytest.approx(1 / 3)
    assert summary.pushback_by_turn == pytest.approx(2 / 3 + (found.failures or 0) / 3)
    assert summary.questions_by_interruption == 1.0
    assert summary.approve_everything is None
    assert summary.latency is None
    assert summary.attended == pytest.approx(20.0)  # 5 to 20, and 25 to 30


def attended(person: str | None, *intervals: tuple[float, float]) -> Oversight:
    return Oversight(
        person=person,
        attended=intervals,
        opened=min(start for start, _ in intervals),
        last=max(end for _, end in intervals),
    )


def test_attended_time_is_a_union_by_person() -> None:
    sessions = [
        attended("p", (0, 10), (30, 40)),
        attended("p", (5, 35)),
        attended("q", (0, 10)),
        attended(None, (0, 100)),
    ]
    assert attended_seconds(sessions) == 50.0
    summary = summarise(sessions)
    assert (summary.attended, summary.persons, summary.unattributed) == (50.0, 2, 1)
    assert summarise([attended(None, (0, 100))]).attended is None


@pytest.mark.parametrize(
    ("latencies", "trend"),
    [
        ((), None),
        ((9.0, 1.0), None),
        ((9.0, 7.0, 5.0, 3.0), -2.0),
        ((4.0, 4.0, 4.0, 4.0, 90.0), 0.0),
    ],
)
def test_the_trend_of_latencies_is_the_median_slope(
    latencies: tuple[float, ...], trend: float | None
) -> None:
    assert Oversight(latencies=latencies).latency_trend == trend


async def test_one_message_that_cannot_be_read_makes_pushback_missing() -> None:
    async with duolog.open("memory://") as log:
        session = await log.session("s")
        await session.human.says("Das ist falsch, ich wollte nach Lyon fahren.")
        await session.agent.says("Gut.")
        found = await found_in(log, "s")
    assert found.corrections is None
    assert summarise([found]).pushback_by_turn is None


async def test_live_equals_the_log() -> None:
    async with duolog.open("memory://") as log:
        live = OversightFold()
        async with log.subscribe() as subscription:
            session = await log.session("s")
            await session.human.says("Hello", at=T)
            await session.agent.says("Hi, what can I do?", at=T + 1, durable=True)
            for _ in range(3):
                live.feed(await anext(subscription))
        whole = await fold_oversight(log.read_all())
    assert whole == {"s": live.measures}


def record(path: Path) -> None:
    async def tell() -> None:
        async with duolog.open(f"sqlite:///{path}") as log:
            for name, person in (("a", "p1"), ("b", "p1"), ("c", None)):
                labels = {} if person is None else {"person": person}
                session = await log.session(name, task="deploy", agent="v7", labels=labels)
                await session.human.says("Deploy it.", at=T)
                asked = await session.agent.asks("May I?", action="deploy", at=T + 5)
                await session.human.approves(asked, source="person", at=T + 8)
                await session.agent.acts("deploy", result="ok", at=T + 9)
            await log.settle()

    anyio.run(tell)


def test_the_command_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.db"
    record(path)
    assert main(["oversight", str(path), "--json"]) == 0
    (summary,) = json.loads(capsys.readouterr().out)["groups"].values()
    assert summary["approve_everything"] == 1.0
    assert summary["attended"] == 3.0  # two sessions of one person at once
    assert summary["unattributed"] == 1
    assert main(["oversight", str(path), "person=p1"]) == 0
    out = capsys.readouterr().out
    assert "v7 (2)" in out
    assert "100.0% of 2" in out
    assert main(["oversight", str(path), "persn=p1"]) == 2
    assert "did you mean 'person'" in capsys.readouterr().err


async def test_the_numbers_of_a_log_that_grows_come_when_they_change() -> None:
    async with duolog.open("memory://") as log:
        session = await log.session("s", release="1")
        await session.human.says("Cancel it.")
        asked = await session.agent.asks("May I?")
        await log.settle()
        async with aclosing(follow_oversight(log, by="release", every=0.01)) as reports:
            first = await anext(reports)
            assert first.groups["1"].approvals.unanswered == 1
            await session.human.approves(asked, source="person")
            other = await log.session("t", release="2")
            await other.agent.says("Hello. Anything to do?", durable=True)
            with anyio.fail_after(120):
                async for found in reports:
                    if found.groups["1"].approvals.approved_by_person and "2" in found.groups:
                        break
        everything = await fold_oversight(log.read_all())
        assert found.groups["1"] == summarise([everything["s"]])
        assert found.groups["2"] == summarise([everything["t"]])
        only = follow_oversight(log, by="release", admits=lambda one: one.session == "t")
        async with aclosing(only):
            assert list((await anext(only)).groups) == ["2"]


async def test_a_watch_streams_the_numbers_of_a_session_as_updates(tmp_path: Path) -> None:
    options = duolog.Options(oversight=True)
    live: list[AnyUpdate] = []
    async with duolog.open(f"sqlite:///{tmp_path}/log.db") as log:
        log.watch(options=options, on_update=live.append).start()
        session = await log.session("s", user="p")
        await session.human.says("Deploy it.", at=T)
        action = await session.agent.acts("build", at=T + 1)
        await session.human.says("No, that is wrong. Stop.", at=T + 3)
        await session.agent.resolves(action, "built", at=T + 4)
        asked = await session.agent.asks("May I?", action="deploy", at=T + 5)
        await session.human.approves(asked, source="person", at=T + 8)
        asked = await session.agent.asks("And this?", at=T + 9)
        await session.human.approves(asked, source="rule", at=T + 9)
        await session.agent.says("Done.", at=T + 10)
        await session.close(durable=True)
        with anyio.fail_after(120):
            await log.settle()
        records = [record async for record in log.read_all(session="s")]
    found = [update for update in live if isinstance(update, OversightUpdated)]
    assert found
    fold = TrajectoryFold("s", options)
    replayed = [update for record in records for update in fold.feed(record)]
    assert live == replayed
    first, interrupted, approved, by_rule, last = found
    assert (first.agent_turns, first.interruptions_by_turn) == (0, None)
    assert (interrupted.interruptions, interrupted.interruptions_by_turn) == (1, 1.0)
    assert interrupted.corrections == 1
    assert (approved.latency, approved.approves_everything) == (3.0, True)
    assert approved.attended == 5.0
    assert by_rule.approvals.by_rule == 1
    assert (last.agent_turns, last.stretch_acts) == (3, 2)
    words = describe_update(interrupted)
    assert words is not None
    assert words.value == "1 of 1 agent turns interrupted"
    plain = TrajectoryFold("s")
    updates = [update for record in records for update in plain.feed(record)]
    assert updates == [update for update in live if not isinstance(update, OversightUpdated)]


async def test_sessions_with_lost_events_are_counted_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.db"
    async with duolog.open(f"sqlite:///{path}") as log:
        for name in ("whole", "incomplete"):
            session = await log.session(name, agent="v7")
            await session.human.says("Do it.")
            await session.agent.says("Done.", durable=True)
        lost = RecordsLost(count=3, begin=T, end=T, why="disk full")
        draft = Draft(lost, "recorder", "environment", T)
        await log.append("incomplete", [draft], stream=RECORDING)
        found = await fold_oversight(log.read_all())
    summary = summarise(found.values())
    assert (summary.sessions, summary.agent_turns, summary.incomplete) == (1, 1, 1)

    def run() -> tuple[int, int]:
        return main(["oversight", str(path)]), main(["show", str(path), "incomplete"])

    assert await anyio.to_thread.run_sync(run) == (0, 0)
    out = capsys.readouterr().out
    assert "1 session with events that could not be recorded left out." in out
    assert "incomplete: 3 events could not be recorded" in out
