"""``serve`` and ``workbench`` in several copies on one log: what one takes, the other has."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE
from duolog.engine.scorers.driver import ScorerPool
from duolog.interop.workbench.live import LiveSessions, live_messages
from duolog.scoring.live import follow_updates
from duolog.scoring.scorers.progress import rule_judge
from duolog.testing.sessions import put_records
from http_server import message, serving
from workbench import story, visiting

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/log.db"
    found: str = request.getfixturevalue("postgres").url()
    return found


@asynccontextmanager
async def copies(url: str) -> AsyncIterator[tuple[Store, Store]]:
    async with open_log(url) as one, open_log(url) as other:
        yield one, other


async def test_what_is_posted_to_one_copy_is_read_and_followed_at_the_other(url: str) -> None:
    async with copies(url) as (one, other), AsyncExitStack() as stack:
        first, _ = await stack.enter_async_context(serving(one, updates=follow_updates))
        second, _ = await stack.enter_async_context(serving(other, updates=follow_updates))
        told = await stack.enter_async_context(second.follow())
        assert (await first.post("s", message("a", id="1"))).status == 200
        with anyio.fail_after(120):
            while (await anext(told)).data.get("kind") != "MessageSent":
                pass
        page = (await second.get("/v1/sessions/s?after=0")).json
        assert [record["kind"] for record in page["records"]] == ["SessionOpened", "MessageSent"]
        assert (await second.post("s", message("b", id="2"))).status == 200
        assert (await first.get("/v1/sessions/s")).json["session"]["version"] == 3


async def test_what_one_human_sends_through_both_copies_is_recorded_once(url: str) -> None:
    async with (
        copies(url) as (one, other),
        serving(one) as (first, _),
        serving(other) as (second, _),
    ):
        await first.post("s", message("opening", id="0"))
        answers = []

        async def send(number: int) -> None:
            client = (first, second)[number % 2]
            answers.append(await client.post("s", message("pay", id="pay-7")))

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(send, number)
        assert {answer.status for answer in answers} == {200}
        assert len({answer.body for answer in answers}) == 1
        unnamed = []

        async def expect(client: object) -> None:
            assert client in (first, second)
            answer = await (first if client is first else second).post(
                "s", message("again"), expected_version=3
            )
            unnamed.append(answer.status)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(expect, first)
            tasks.start_soon(expect, second)
        assert sorted(unnamed) == [200, 409]
        kinds = [record.kind async for record in one.read("s")]
        assert kinds == ["SessionOpened"] + ["MessageSent"] * 3


async def test_copies_that_measure_by_the_same_scorer_record_each_measurement_once(
    url: str,
) -> None:
    async with copies(url) as (one, other), anyio.create_task_group() as tasks:
        pools = [ScorerPool(log, [rule_judge()]) for log in (one, other)]
        for pool in pools:
            tasks.start_soon(pool.run)
        script = story("s", [1, 2, 5])
        script.closed()
        await put_records(one, [r for r in script.records if r.stream == TRACE])
        for pool in pools:
            await pool.settle()
        tasks.cancel_scope.cancel()
    async with open_log(url) as log:
        found = [record async for record in log.read_all() if record.stream != TRACE]
    assert found
    assert len({record.id for record in found}) == len(found)
    assert [record.version for record in found] == list(range(1, len(found) + 1))


async def test_what_is_recorded_beside_one_workbench_is_shown_at_the_other(url: str) -> None:
    async with copies(url) as (one, other), visiting(one) as first, visiting(other) as second:
        streams = [
            live_messages(LiveSessions(workbench), 0)
            for workbench in (first.workbench, second.workbench)
        ]
        script = story("s", [1])
        await put_records(one, script.records)
        for shown in streams:
            with anyio.fail_after(120):
                while "s" not in json.loads(str((await anext(shown)).data))["rows"]:
                    pass
