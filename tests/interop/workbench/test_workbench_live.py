"""The live page: open sessions by urgency."""

from __future__ import annotations

import json

import anyio
import pytest
from duolog.engine.events import ApprovalAsked, SessionOpened
from duolog.engine.log.open import open_log
from duolog.interop.workbench.live import LiveSessions, live_messages, open_row, urgency
from duolog.interop.workbench.markup.agents import AgentMarks
from duolog.scoring.index.lines import SessionLines
from duolog.testing.records import HUMAN, RecordWriter
from duolog.testing.sessions import put_records
from workbench import story, visiting


async def test_those_about_to_give_up_come_first() -> None:
    async with open_log("memory://") as log:
        for name, ratings in (("calm", [5, 5]), ("cross", [5, 1, 2]), ("soothed", [1, 4])):
            await put_records(log, story(name, ratings).records)
        asking = story("asking", [4])
        asking.agent(ApprovalAsked(question="may I?"))
        await put_records(log, asking.records)
        lines = SessionLines(log)
        found = [await lines.line(one) async for one in log.sessions()]
        ordered = sorted(found, key=urgency, reverse=True)
        assert [one.row.session for one in ordered][:2] == ["cross", "asking"]
        cross = ordered[0]
        assert (cross.stall, cross.row.waiting, cross.stops()) == (2, 0, {1: 2, 2: 3})
        assert cross.flat == 3  # nothing rose after the first of four rounds
        assert ordered[1].row.waiting == 1
        summary = await log.summary("cross")
        assert "<script" not in open_row(summary, cross, (1, 2), AgentMarks(())).text
        await put_records(
            log, story("cross", [5, 1, 2, 5]).records[len(story("cross", [5, 1, 2]).records) :]
        )
        assert (await lines.line(await log.summary("cross"))).stall == 0


async def test_a_round_that_goes_on_resets_no_unproductive_rounds() -> None:
    async with open_log("memory://") as log:
        script = RecordWriter("product")
        script.opened()  # no judge is declared, so that no rating is due
        for number in range(1, 3):
            script.human("No, that is wrong.")
            script.output(f"plan {number}")
            script.human("Again.")
            script.rated(number, 2)
        await put_records(log, script.records)
        line = await SessionLines(log).line(await log.summary("product"))
        assert (line.rounds, line.stall) == (3, 2)


async def test_the_page_shows_open_sessions_and_lets_go_of_closed_ones() -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        script = story("s", [1])
        await put_records(log, script.records)
        messages = live_messages(LiveSessions(visitor.workbench), 0)
        with anyio.fail_after(120):
            rows: dict[str, str] = {}
            while "s" not in rows:
                rows = json.loads(str((await anext(messages)).data))["rows"]
            script.closed()
            await put_records(log, script.records[-1:])
            gone: list[str] = []
            while not gone:
                gone = json.loads(str((await anext(messages)).data))["gone"]
            assert gone == ["s"]


@pytest.mark.parametrize(
    ("role", "status"), [("operator", 200), ("viewer", 200), ("participant", 403)]
)
async def test_it_is_for_those_to_whom_all_sessions_are_open(role: str, status: int) -> None:
    async with open_log("memory://") as log, visiting(log, role) as visitor:
        assert (await visitor.get("/live")).status_code == status
        if status == 403:
            assert (await visitor.get("/v1/live/stream")).status_code == 403


async def test_it_shows_what_moved_in_the_last_minutes() -> None:
    async with open_log("memory://") as log:
        await put_records(log, story("simulated before", [1]).records)
        for name, when in (("old", 1e9), ("new", 2e9)):
            script = RecordWriter(name)
            script.add(
                SessionOpened(task="t", instance="1", participants=(HUMAN,), clock="utc"),
                "engine",
                "environment",
                at=when,
            )
            await put_records(log, script.records)
        async with visiting(log) as visitor:
            live = LiveSessions(visitor.workbench, now=lambda: 2e9 + 100)
            assert [one.session for one in await live.open()] == ["new"]
            assert live.note(1) == "1 session moved in the last 10 minutes; 3 of 3 are open"
            await put_records(log, story("simulated now", [1]).records)
            visitor.workbench.sessions.arrived["simulated before"] = 2e9 - 3600
            while "simulated now" not in visitor.workbench.sessions.arrived:
                await visitor.workbench.sessions.wait()
            assert "simulated now" in [
                one.session for one in await LiveSessions(visitor.workbench).open()
            ]
