"""AG-UI over HTTP: a session as a stream for a front end, from wherever the client left it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from agui_streams import Front, Json
from duolog.engine.log.open import MemoryLog
from duolog.scoring.live import follow_updates
from http_server import Told, message, serving

PATH = "/v1/sessions/s/agui"
BYE: dict[str, object] = {
    "kind": "SessionClosed",
    "actor": "ann",
    "role": "human",
    "body": {"reason": "finished", "by": "ann"},
}


async def until_end(told: AsyncIterator[Told]) -> tuple[list[Json], list[int]]:
    """Events up to the end of the session, and the ids that came with them."""
    events: list[Json] = []
    ids: list[int] = []
    closed = False
    with anyio.fail_after(120):
        async for one in told:
            events.append(one.data)
            ids += [] if one.id is None else [one.id]
            closed = closed or one.data.get("name") == "duolog.closed"
            if closed and one.data["type"] == "RUN_FINISHED":
                break
    return events, ids


async def test_a_session_is_followed_as_a_front_end_does() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        await client.post("s", message("one"))
        async with client.follow(path=PATH) as told:
            await client.post("s", message("two"), BYE)
            events, ids = await until_end(told)
        assert [text for _, _, text in Front(events).said.values()] == ["one", "two"]
        assert ids == [2, 3, 4]


async def test_a_client_that_comes_back_is_told_what_it_needs() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        await client.post("s", message("one"), message("two"), message("three"), BYE)
        async with client.follow(path=PATH, **{"Last-Event-ID": "3"}) as told:
            events, ids = await until_end(told)
        assert [event["type"] for event in events][:3] == [
            "RUN_STARTED",
            "MESSAGES_SNAPSHOT",
            "STATE_SNAPSHOT",
        ]
        assert [text for _, _, text in Front(events).said.values()] == ["one", "two", "three"]
        assert ids == [3, 4, 5]


async def test_who_joins_now_is_told_at_once() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        await client.post("s", message("one"))
        async with client.follow("?after=now", path=PATH) as told:
            with anyio.fail_after(120):
                kinds = [(await anext(told)).data["type"] for _ in range(3)]
        assert kinds == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"]


async def test_what_scoring_makes_of_it_comes_along() -> None:
    async with MemoryLog() as log, serving(log, updates=follow_updates) as (client, _):
        await client.post("s", message("one"), BYE)
        async with client.follow("?updates=1", path=PATH) as told:
            events, _ = await until_end(told)
        assert "duolog.effort" in [event.get("name") for event in events]


async def test_a_session_that_is_not_there_and_updates_that_nobody_gives() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        assert (await client.get(PATH)).status == 404
        await client.post("s", message("one"))
        assert (await client.get(f"{PATH}?updates=1")).status == 400
