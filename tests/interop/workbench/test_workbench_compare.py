"""The report of what a list shows: how it is read, what it holds, and for whom."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from duolog.engine.errors import CodecError, InvalidInput
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from duolog.interop.workbench.compare.report import make_pairs, make_report
from duolog.interop.workbench.compare.trajectories import Trajectories
from duolog.interop.workbench.sessions.address import parse_address
from duolog.scoring.live import score_log
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.updates import Update
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from workbench import visiting

HOSTILE = "</pre><script>alert(1)</script>"


async def put(log: EventLog, number: int, agent: str) -> None:
    script = RecordWriter(f"{agent}-{number}")
    script.opened(clock="virtual", config={"group": {"agent": agent}})
    script.human("a plan, please")
    script.scored(number / 10, snapshot=script.output(f"plan {number}"))
    script.human("better")
    script.scored(number / 10 + 0.2, snapshot=script.output(f"better plan {number}"))
    script.closed("abandoned" if number % 2 else "finished")
    await put_records(log, script.records)


async def test_trajectories_are_those_of_scoring_and_are_folded_once() -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        for number in range(3):
            await put(log, number, "a")
        trajectories = Trajectories(visitor.bench)
        summaries = [one async for one in log.sessions()]
        readings = [one async for one in trajectories.of(summaries)]
        assert (readings[0].read, readings[-1].read) == (0, 3)
        found = readings[-1].trajectories
        assert found == [await score_log(log, one.session) for one in summaries]
        again = [one async for one in trajectories.of(summaries)][-1].trajectories
        assert again is not None
        assert found is not None
        assert all(one is other for one, other in zip(again, found, strict=True))


async def test_pairs_say_where_nothing_can_test_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_log("memory://") as log:
        for number in range(6):
            for agent in ("a", "b"):
                await put(log, number, agent)
        trajectories = [await score_log(log, one.session) async for one in log.sessions()]
    assert "p is missing" not in make_pairs(trajectories, (1,))
    monkeypatch.setattr("duolog.scoring.comparison.pairs.find_spec", lambda _: None)
    assert "p is missing" in make_pairs(trajectories, (1,))


async def test_the_report_holds_table_figures_and_pairs_and_is_escaped() -> None:
    async with open_log("memory://") as log:
        for number in range(6):
            for agent in ("a", HOSTILE):
                await put(log, number, agent)
        trajectories = [await score_log(log, one.session) async for one in log.sessions()]
        made = make_report(trajectories, (1, 2))
        html, data = str(made["html"]), str(made["data"])
        assert "<script" not in html
        assert "&lt;script&gt;" in html
        assert "style=" not in html
        assert 'id="curves"' in html
        assert 'id="survival"' in html
        assert "0.450" in html  # mean of what stands at the end
        found = json.loads(data)
        assert found["link"] == "/session?id="
        assert len(found["series"]) == 2
        pairs = make_pairs(trajectories, (1, 2))
        assert "beside" in pairs or "No comparison by pairs" in pairs
        assert "<script" not in pairs
        assert make_pairs(trajectories[:1], (1,)) == ""
        assert "no sessions to report on" in str(make_report([], (1,))["html"])


@pytest.mark.parametrize(
    ("role", "status"), [("operator", 200), ("viewer", 200), ("participant", 403)]
)
async def test_it_is_for_those_to_whom_all_sessions_are_open(role: str, status: int) -> None:
    async with open_log("memory://") as log, visiting(log, role) as visitor:
        assert (await visitor.get("/compare")).status_code == status
        assert (await visitor.get("/compare", state="wrong")).status_code in (400, 403)
        if status == 403:
            assert (await visitor.get("/v1/compare/stream")).status_code == 403


async def test_it_says_how_many_sessions_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = TrajectoryFold.feed

    def damaged(self: TrajectoryFold, record: Record) -> Sequence[Update]:
        if record.session == "a-1":
            raise CodecError("a damaged record")
        return feed(self, record)

    monkeypatch.setattr(TrajectoryFold, "feed", damaged)
    async with open_log("memory://") as log:
        for number in range(3):
            await put(log, number, "a")
        async with visiting(log) as visitor:
            sent = (await visitor.get("/v1/compare/stream")).text
    assert "3 sessions; 1 of them cannot be read, and are left out" in sent


async def test_its_address_is_that_of_the_list() -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        await put(log, 1, "a")
        listed = await visitor.client.get("/sessions?agent=a&sort=-utility")
        assert 'href="/compare?agent=a&amp;sort=-utility"' in listed.text
        page = await visitor.client.get("/compare?agent=a&sort=-utility")
        assert 'href="/sessions?agent=a&amp;sort=-utility"' in page.text
        with pytest.raises(InvalidInput):
            parse_address([("utility", "much")])
