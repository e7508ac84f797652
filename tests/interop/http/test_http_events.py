"""Posting events over HTTP and reading them back: answers, conflicts, ids, pages, the stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from duolog.engine import codec
from duolog.engine.events import MessageSent, SessionOpened
from duolog.engine.log.exchange.jsonl_export import to_jsonl
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import Draft
from duolog.interop.http.limits import HttpLimits
from duolog.scoring.live import follow_updates
from http_server import Client, Told, message, serving, until
from log_measurements import last_utility

pytestmark = pytest.mark.slow

OPENED: dict[str, object] = {
    "kind": "SessionOpened",
    "actor": "shop",
    "role": "environment",
    "body": {
        "task": "support",
        "instance": "7",
        "clock": "utc",
        "participants": [{"name": "ann", "role": "human"}, {"name": "bot", "role": "agent"}],
    },
}


async def take(told: AsyncIterator[Told], count: int) -> list[Told]:
    with anyio.fail_after(120):
        return [await anext(told) for _ in range(count)]


async def test_a_batch_is_appended_and_answered_with_its_records() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        answer = await client.post(
            "s/1", OPENED | {"id": "m0"}, message(id="m1", seen=1, time=12.5)
        )
        assert answer.status == 200
        records = [record async for record in log.read("s/1")]
        assert answer.json["version"] == 2
        lines = [json.loads(to_jsonl(record)) for record in records]
        assert answer.json["records"] == lines
        assert isinstance(records[0].event, SessionOpened)
        assert records[1].event == MessageSent(text="hello")
        assert (records[1].caller_id, records[1].seen, records[1].time) == ("m1", 1, 12.5)


async def test_a_session_that_nobody_opened_is_opened_with_those_who_act_in_it() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        first, second = [await client.post("s", message(str(n), id=str(n))) for n in range(2)]
        assert (first.status, second.status) == (200, 200)
        records = [record async for record in log.read("s")]
        assert [record.kind for record in records] == ["SessionOpened"] + ["MessageSent"] * 2
        opened = records[0].event
        assert isinstance(opened, SessionOpened)
        assert [(one.name, one.role) for one in opened.participants] == [("ann", "human")]


async def test_the_same_batch_again_is_recorded_once() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        batch = [OPENED | {"id": "open"}, message(id="a"), message(id="b")]
        answers = [await client.post("s", *batch) for _ in range(3)]
        assert [answer.status for answer in answers] == [200] * 3
        assert len({answer.body for answer in answers}) == 1
        assert (await log.summary("s")).events == 3


async def test_an_id_that_is_taken_by_another_event_is_a_conflict() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        await client.post("s", message("one", id="a"))
        answer = await client.post("s", message("two", id="a"))
        assert answer.status == 409
        assert (answer.json["error"], answer.json["id"]) == ("duplicate-conflict", "a")
        assert (await log.summary("s")).version == 2


async def test_another_version_than_expected_is_a_conflict_that_says_both() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        await client.post("s", OPENED, message())
        answer = await client.post("s", message(), expected_version=1)
        assert answer.status == 409
        assert answer.json["error"] == "version-conflict"
        assert (answer.json["expected"], answer.json["actual"]) == (1, 2)
        assert (await client.post("s", message(), expected_version=2)).status == 200
        assert (await client.post("s", OPENED)).json["actual"] == 3


async def test_a_closed_session_takes_feedback_and_nothing_else() -> None:
    closed = message(kind="SessionClosed", body={"reason": "finished", "by": "ann"})
    thumbs = message(kind="FeedbackGiven", body={"thumbs": "up"})
    async with MemoryLog() as log, serving(log) as (client, _):
        await client.post("s", OPENED, closed)
        answer = await client.post("s", message())
        assert (answer.status, answer.json["error"]) == (409, "session-closed")
        assert (await client.post("s", thumbs)).status == 200


async def test_a_close_that_gives_no_reason_is_recorded_as_ended() -> None:
    closed = message(kind="SessionClosed", body={"by": "ann"})
    async with MemoryLog() as log, serving(log) as (client, _):
        assert (await client.post("s", OPENED, closed)).status == 200
        assert (await log.summary("s")).state == "ended"


async def test_a_snapshot_gets_its_digest_from_the_server() -> None:
    snapshot = message(kind="SnapshotTaken", body={"content": {"b": 1, "a": [2]}})
    async with MemoryLog() as log, serving(log) as (client, _):
        answer = await client.post("s", snapshot)
        assert answer.json["records"][0]["body"]["digest"] == codec.digest({"a": [2], "b": 1})


async def test_a_scorer_elsewhere_writes_into_its_own_stream() -> None:
    scorer = {"name": "tests", "version": "1", "config": ""}
    body = {"scorer": scorer, "round": 1, "value": 0.5}
    scored = message(kind="UtilityScored", actor="tests", role="scorer", body=body)
    async with MemoryLog() as log, serving(log) as (client, _):
        await client.post("s", message())
        assert (await client.post("s", scored, stream="tests@1")).status == 200
        assert await last_utility(log, "s") == 0.5


async def test_sessions_come_in_pages() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        for number in range(5):
            await client.post(f"s{number}", message())
        pages = [await client.get(f"/v1/sessions?limit=2&after={after}") for after in (0, 2, 4)]
        names = [[one["session"] for one in page.json["sessions"]] for page in pages]
        assert names == [["s0", "s1"], ["s2", "s3"], ["s4"]]
        assert [page.json["next"] for page in pages] == [2, 4, None]


async def test_a_session_tells_its_summary_and_its_records_in_pages() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        await client.post("other", message())
        await client.post("s", *[message(str(number)) for number in range(4)])
        bare = (await client.get("/v1/sessions/s")).json
        assert bare["session"]["version"] == 5
        assert "records" not in bare
        page: dict[str, Any] = {"next": 0}
        texts: list[str | None] = []
        while page["next"] is not None:
            page = (await client.get(f"/v1/sessions/s?after={page['next']}&limit=2")).json
            texts += [record["body"].get("text") for record in page["records"]]
        assert texts == [None, "0", "1", "2", "3"]


async def test_a_page_of_large_records_ends_early() -> None:
    limits = HttpLimits(page_bytes=1000)
    async with MemoryLog() as log, serving(log, limits=limits) as (client, _):
        await client.post("s", *[message("x" * 600) for _ in range(4)])
        page = (await client.get("/v1/sessions/s?after=0")).json
        assert len(page["records"]) == 2
        assert page["next"] == page["records"][-1]["position"]


async def test_the_stream_catches_up_then_goes_live_and_goes_on_where_it_was_left() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        await client.post("s", OPENED, message("one"))
        async with client.follow() as told:
            first = await take(told, 2)
            await client.post("s", message("two"))
            first += await take(told, 1)
        assert [one.id for one in first] == [1, 2, 3]
        assert first[1].data["body"]["text"] == "one"
        await client.post("s", message("three"))
        async with client.follow(**{"Last-Event-ID": "2"}) as told:
            assert [one.data["body"]["text"] for one in await take(told, 2)] == ["two", "three"]
        async with client.follow("?after=now") as told:
            await until(lambda: log.statistics().subscriptions)
            await client.post("s", message("four"))
            assert [one.id for one in await take(told, 1)] == [5]


async def test_the_stream_of_one_session_holds_no_other() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        await client.post("a", message())
        await client.post("b", message("for b"))
        async with client.follow("?session=b") as told:
            assert [one.data["session"] for one in await take(told, 2)] == ["b", "b"]


async def test_the_stream_tells_updates_where_they_are_asked_for() -> None:
    async with MemoryLog() as log, serving(log, updates=follow_updates) as (client, _):
        await client.post("s", OPENED, message("one"))
        async with client.follow("?updates=1") as told:
            found: list[Told] = []
            while not found or found[-1].id != 2:
                found += await take(told, 1)
        records = [one for one in found if one.event == "record"]
        updates = [one for one in found if one.event == "update"]
        assert [one.data["position"] for one in records] == [1, 2]
        assert {"RoundOpened", "EffortUpdated"} <= {one.data["update"] for one in updates}
        # The id comes last, so that a client that comes back with it has missed nothing.
        assert [one.id for one in found if one.data["position"] == 2][:-1] == [None] * (
            sum(one.data["position"] == 2 for one in found) - 1
        )


async def test_a_silent_stream_says_that_it_is_there() -> None:
    limits = HttpLimits(heartbeat=0.01)
    async with (
        MemoryLog() as log,
        serving(log, limits=limits) as (client, _),
        client.follow() as told,
    ):
        assert [one.event for one in await take(told, 2)] == ["comment"] * 2


async def test_a_stream_that_nobody_reads_any_more_is_closed() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        async with client.follow():
            await until(lambda: log.statistics().subscriptions)
        await until(lambda: not log.statistics().subscriptions)
        assert (await client.get("/healthz")).json["streams"] == 0


async def test_streams_end_when_the_server_stops(tmp_path: Path) -> None:
    async with open_log(str(tmp_path / "log.db")) as log, serving(log) as (client, server):
        await client.post("s", message())
        async with client.follow() as told:
            await take(told, 2)
            server.stop()
            with anyio.fail_after(120), pytest.raises(StopAsyncIteration):
                await anext(told)


async def test_a_log_that_cannot_be_written_is_no_fault_of_the_client() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        await log.append("s", [Draft(MessageSent(text="x"), "ann", "human", 1.0)])
        await log.aclose()
        answer = await client.post("s", message(), expected_version=1)
        assert (answer.status, answer.json["error"]) == (503, "log-closed")
        assert answer.headers["retry-after"] == "1"
        assert (await client.get("/healthz")).status == 503


async def test_the_description_names_each_path_and_kind() -> None:
    async with MemoryLog() as log, serving(log, token="t" * 20) as (client, _):
        found = (await Client(client.port).get("/openapi.json")).json
    assert found["openapi"].startswith("3.1")
    assert set(found["paths"]) == {
        "/v1/sessions",
        "/v1/sessions/{session}",
        "/v1/sessions/{session}/events",
        "/v1/sessions/{session}/agui",
        "/v1/stream",
        "/healthz",
        "/openapi.json",
    }
    schemas = found["components"]["schemas"]
    assert schemas["SnapshotTaken"]["required"] == ["content"]
    assert schemas["SessionClosed"]["required"] == ["by"]
    assert {"Batch", "Posted", "Appended", "HttpProblem", "RecordData"} <= set(schemas)
    text = json.dumps(found)
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.partition('"')[0] in schemas
