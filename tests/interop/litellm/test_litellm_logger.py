"""Calls through LiteLLM land in sessions: real calls against a real server, and failures."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import duolog
import pytest
from duolog.engine.errors import InvalidInput, MissingExtra
from duolog.engine.events import ModelCalled, Tokens
from duolog.engine.installation import install_command
from duolog.engine.records import Record
from duolog.interop.litellm import logger as module
from duolog.interop.litellm.recorder import CallRecorder, LiteLLMStatistics
from openai_server import Answer, Body, Fault, OpenAIServer

if TYPE_CHECKING:
    import openai
    from duolog.interop.litellm.hooks import LiteLLMLogger

ASKED = [{"role": "user", "content": "Where is my order?"}]
COUNTED = {"include_usage": True}


def calls(records: list[Record]) -> list[ModelCalled]:
    return [record.event for record in records if isinstance(record.event, ModelCalled)]


async def trace(log: duolog.Log, session: str) -> list[Record]:
    await log.settle()
    return [record async for record in log.read(session)]


Response: TypeAlias = Any  # of LiteLLM: a completion, or a stream
Ask: TypeAlias = Callable[..., Awaitable[Response]]


def asking(litellm: ModuleType, server: OpenAIServer, **metadata: str) -> Ask:
    """Asks a model, on behalf of a session."""

    async def ask(model: str = "openai/gpt-4o", **more: object) -> Response:
        arguments = {"messages": ASKED, "api_base": server.url, "max_retries": 0} | more
        return await litellm.acompletion(model=model, metadata=dict(metadata), **arguments)

    return ask


async def test_a_call_lands_in_the_session_that_it_names(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    openai_server.answer = lambda body: Answer(
        text="On its way.",
        prompt_tokens=100,
        completion_tokens=20,
        cached_tokens=60,
        reasoning_tokens=8,
    )
    ask = asking(litellm, openai_server, duolog_session="s", duolog_purpose="reply")
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        s = await log.session("s", task="support")
        await s.human.says("Where is my order?")
        response = await ask()
        assert await logger.settle("s", 60)
        await s.agent.says(response.choices[0].message.content)
        records = await trace(log, "s")
        assert logger.statistics().recorded == 1
    assert [record.kind for record in records] == [
        "SessionOpened",
        "MessageSent",
        "ModelCalled",
        "MessageSent",
    ]
    record = records[2]
    assert (record.actor, record.role) == ("agent", "agent")
    assert record.caller_id is not None
    assert record.caller_id.startswith("litellm/")
    [call] = calls(records)
    assert call.model == "openai/gpt-4o"
    assert call.purpose == "reply"
    assert call.reply == {"text": "On its way.", "finish": "stop", "model": "gpt-4o"}
    assert call.tokens == Tokens(prompt=100, completion=20, cached=60, reasoning=8)
    assert call.cost is not None
    assert 0 < call.cost < 0.01
    assert call.latency > 0
    assert call.error is None
    assert len(call.request) == 32
    assert records[1].time - call.latency < record.time


async def test_the_same_request_has_the_same_digest_streamed_or_not(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    ask = asking(litellm, openai_server, duolog_session="s")
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        await ask(temperature=0.5)
        async for _ in await ask(temperature=0.5, stream=True, stream_options=COUNTED):
            pass
        await ask(temperature=0.7)
        assert await logger.settle(seconds=60)
        first, second, third = calls(await trace(log, "s"))
    assert first.request == second.request != third.request


async def test_a_stream_is_one_call(litellm: ModuleType, openai_server: OpenAIServer) -> None:
    openai_server.answer = lambda body: Answer(
        text="It left our house on Monday, and is due tomorrow.",
        prompt_tokens=9,
        completion_tokens=12,
        cached_tokens=4,
        reasoning_tokens=2,
    )
    ask = asking(litellm, openai_server, duolog_session="s")
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        chunks = [chunk async for chunk in await ask(stream=True, stream_options=COUNTED)]
        assert await logger.settle(seconds=60)
        [call] = calls(await trace(log, "s"))
    assert len(chunks) > 3
    assert isinstance(call.reply, dict)
    assert call.reply["text"] == "It left our house on Monday, and is due tomorrow."
    assert call.tokens == Tokens(prompt=9, completion=12, cached=4, reasoning=2)
    assert call.cost is not None


async def test_a_stream_that_counts_nothing_has_no_tokens_and_no_cost(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    ask = asking(litellm, openai_server, duolog_session="s")
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        async for _ in await ask(stream=True):
            pass
        assert await logger.settle(seconds=60)
        [call] = calls(await trace(log, "s"))
    assert call.tokens == Tokens()
    assert call.cost is None


async def test_a_model_without_a_price_has_no_cost(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    ask = asking(litellm, openai_server, duolog_session="s")
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        await ask("openai/nobody-knows-it")
        assert await logger.settle(seconds=60)
        [call] = calls(await trace(log, "s"))
    assert call.tokens.prompt is not None
    assert call.cost is None


async def test_tool_calls_are_recorded(litellm: ModuleType, openai_server: OpenAIServer) -> None:
    openai_server.answer = lambda body: Answer(tool_calls=[("look_up", '{"order": 42}')])
    ask = asking(litellm, openai_server, duolog_session="s")
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        await ask()
        assert await logger.settle(seconds=60)
        [call] = calls(await trace(log, "s"))
    assert isinstance(call.reply, dict)
    assert call.reply["finish"] == "tool_calls"
    assert call.reply["tool_calls"] == [
        {"id": "call_0_0", "name": "look_up", "arguments": '{"order": 42}'}
    ]


@pytest.mark.parametrize(("fault", "kind"), [("401", "ModelDenied"), ("400", "ModelRefused")])
async def test_a_failure_is_recorded_and_still_raised(
    litellm: ModuleType, openai_server: OpenAIServer, fault: Fault, kind: str
) -> None:
    ask = asking(litellm, openai_server, duolog_session="s")
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        await ask()  # its cost must not be taken for that of the next one
        openai_server.fault = lambda number, body: fault
        with pytest.raises((litellm.AuthenticationError, litellm.BadRequestError)):
            await ask()
        assert await logger.settle(seconds=60)
        _, call = calls(await trace(log, "s"))
    assert call.error is not None
    assert call.error.startswith(f"{kind}: ")
    assert "sk-proj" not in call.error
    assert call.reply is None
    assert call.tokens == Tokens()
    assert call.cost is None


async def test_the_key_of_the_call_is_not_in_the_record_of_its_failure(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    openai_server.fault = lambda number, body: "401"
    ask = asking(litellm, openai_server, duolog_session="s")
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        with pytest.raises(litellm.AuthenticationError):
            await ask(api_key="a key of no known form")
        assert await logger.settle(seconds=60)
        [call] = calls(await trace(log, "s"))
    assert call.error is not None
    assert "Incorrect API key provided: [removed]" in call.error
    assert "no known form" not in call.error


async def test_litellm_is_asked_to_use_the_prices_that_it_ships(
    litellm: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)
    async with duolog.open("memory://") as log:
        duolog.litellm_logger(log)
    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"


async def test_a_stream_that_breaks_is_one_failure(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    openai_server.fault = lambda number, body: "truncated"
    ask = asking(litellm, openai_server, duolog_session="s")
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        with pytest.raises(litellm.ServiceUnavailableError):
            async for _ in await ask(stream=True):
                pass
        assert await logger.settle(seconds=60)
        [call] = calls(await trace(log, "s"))
    assert call.error is not None
    assert call.cost is None


async def test_parallel_calls_each_land_in_their_session(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)

        async def converse(number: int) -> None:
            ask = asking(litellm, openai_server, duolog_session=f"s{number % 5}")
            await ask(messages=[{"role": "user", "content": f"call {number}"}])

        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(converse, number)
        assert await logger.settle(seconds=60)
        replies = {
            session: sorted(
                call.reply["text"]
                for call in calls(await trace(log, f"s{session}"))
                if isinstance(call.reply, dict)
            )
            for session in range(5)
        }
    assert replies == {
        session: sorted(f"You said: call {number}" for number in range(session, 30, 5))
        for session in range(5)
    }


async def test_calls_that_name_no_session_are_left_alone(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        await asking(litellm, openai_server)()
        await asking(litellm, openai_server, duolog_session="s")()
        assert await logger.settle(seconds=60)
        await log.settle()
        assert [summary.session async for summary in log.sessions()] == ["s"]


async def test_who_called_and_what_an_unopened_session_is_about(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    people = {"duolog_actor": "critic", "duolog_session": "s"}
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log, task="support", humans=["ann"], agents=["writer"])
        litellm.callbacks.append(logger)
        await asking(litellm, openai_server, **people)()
        await asking(litellm, openai_server, **people | {"duolog_actor": "ann"})()
        await asking(litellm, openai_server, duolog_session="s", duolog_role="human")()
        assert await logger.settle(seconds=60)
        records = await trace(log, "s")
    assert [(record.actor, record.role) for record in records[1:]] == [
        ("critic", "agent"),
        ("ann", "human"),
        ("human", "human"),
    ]
    assert isinstance(records[0].event, duolog.SessionOpened)
    assert records[0].event.task == "support"


async def test_a_session_that_is_closed_keeps_the_call_out_and_the_caller_unharmed(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        s = await log.session("s")
        await s.close(durable=True)
        response = await asking(litellm, openai_server, duolog_session="s")()
        assert await logger.settle(seconds=60)
        assert response.choices[0].message.content == "You said: Where is my order?"
        assert calls(await trace(log, "s")) == []
        assert log.recorder.statistics().refused == 1


async def test_a_log_that_is_closed_harms_nobody(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    async with duolog.open("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
    response = await asking(litellm, openai_server, duolog_session="s")()
    assert await logger.settle(seconds=60)
    assert response.choices[0].message.content
    assert (logger.statistics().recorded, logger.statistics().failed) == (0, 1)


# --- synchronous calls ----------------------------------------------------------------------------


@pytest.fixture
def client(openai_server: OpenAIServer) -> Iterator[openai.OpenAI]:
    """A client whose connections are closed; LiteLLM's own leaves that to the end of the process."""
    from openai import OpenAI  # takes seconds

    with OpenAI(base_url=openai_server.url, max_retries=0) as made:
        yield made


def test_synchronous_calls_from_threads(litellm: ModuleType, client: openai.OpenAI) -> None:
    with duolog.open_sync("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)

        def converse(session: str, *, stream: bool) -> None:
            answer = litellm.completion(
                model="openai/gpt-4o",
                messages=[{"role": "user", "content": session}],
                client=client,
                metadata={"duolog_session": session},
                stream=stream,
                stream_options=COUNTED if stream else None,
            )
            assert not stream or list(answer)

        threads = [
            threading.Thread(target=converse, args=(f"s{number}",), kwargs={"stream": number > 2})
            for number in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert logger.wait(seconds=60)
        for number in range(6):
            s = log.session(f"s{number}")
            s.close(durable=True)
            [call] = calls(log.read(s.id))
            assert isinstance(call.reply, dict)
            assert call.reply["text"] == f"You said: {s.id}"
            assert call.tokens.prompt == 1
        assert logger.statistics().recorded == 6


def test_a_synchronous_failure(
    litellm: ModuleType, openai_server: OpenAIServer, client: openai.OpenAI
) -> None:
    openai_server.fault = lambda number, body: "401"
    with duolog.open_sync("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        with pytest.raises(litellm.AuthenticationError):
            litellm.completion(
                model="openai/gpt-4o",
                messages=ASKED,
                client=client,
                metadata={"duolog_session": "s"},
                max_retries=0,
            )
        assert logger.wait("s", 60)
        log.session("s").close(durable=True)
        [call] = calls(log.read("s"))
    assert call.error is not None
    assert call.error.startswith("ModelDenied: ")


def test_asynchronous_calls_with_a_synchronous_log(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    with duolog.open_sync("memory://") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        ask = asking(litellm, openai_server, duolog_session="s")

        async def main() -> None:
            await asyncio.gather(ask(), ask())
            assert await logger.settle(seconds=60)

        asyncio.run(main())
        log.session("s").close(durable=True)
        assert len(calls(log.read("s"))) == 2


# --- what LiteLLM might tell ------------------------------------------------------------------------


def told(call: str = "c1", session: object = "s", **more: object) -> dict[str, object]:
    return {
        "litellm_call_id": call,
        "model": "gpt-4o",
        "custom_llm_provider": "openai",
        "litellm_params": {"metadata": {"duolog_session": session}},
        **more,
    }


BEGAN = datetime(2026, 11, 1, 12, 0, 0)
ENDED = BEGAN + timedelta(seconds=2)


async def test_what_is_told_twice_is_recorded_once() -> None:
    async with duolog.open("memory://") as log:
        recorder = CallRecorder(log, {})
        recorder.end(told(), None, BEGAN, ENDED)
        recorder.end(told(), None, BEGAN, ENDED + timedelta(seconds=1))
        [call] = calls(await trace(log, "s"))
        assert recorder.statistics() == LiteLLMStatistics(recorded=1, repeated=1)
    assert call.latency == 2.0


async def test_attempts_under_one_id_are_told_apart() -> None:
    async with duolog.open("memory://") as log:
        recorder = CallRecorder(log, {})
        recorder.end(told(), None, BEGAN, ENDED)
        recorder.end(told(), None, ENDED, ENDED + timedelta(seconds=1))
        records = await trace(log, "s")
    assert [record.caller_id for record in records[1:]] == ["litellm/c1", "litellm/c1/2"]
    assert [call.attempt for call in calls(records)] == [1, 2]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"litellm_params": None},
        {"litellm_params": {"metadata": None}},
        told(session=""),
        told(session=7),
        told(session=["s"]),
    ],
)
async def test_odd_metadata_names_no_session(odd: dict[str, object]) -> None:
    async with duolog.open("memory://") as log:
        recorder = CallRecorder(log, {})
        recorder.begin(odd)
        recorder.end(odd, None, BEGAN, ENDED)
        assert recorder.statistics() == LiteLLMStatistics(skipped=1)


async def test_what_is_no_call_at_all_is_counted_and_harms_nobody() -> None:
    async with duolog.open("memory://") as log:
        recorder = CallRecorder(log, {})
        recorder.end(told(), object(), None, None)  # type: ignore[arg-type]
        recorder.end(told("c2"), object(), BEGAN, ENDED)
        [call] = calls(await trace(log, "s"))
        assert recorder.statistics() == LiteLLMStatistics(recorded=1, failed=1)
    assert (call.reply, call.tokens, call.cost, call.error) == (None, Tokens(), None, None)


async def test_where_there_is_no_room_a_call_is_dropped_even_if_others_wait() -> None:
    async with duolog.open("memory://", room=1, on_full="block") as log:
        recorder = CallRecorder(log, {})
        recorder.end(told("c1"), None, BEGAN, ENDED)
        recorder.end(told("c2"), None, BEGAN, ENDED)  # nothing was written in between
        assert recorder.statistics() == LiteLLMStatistics(recorded=1, failed=1)
        assert log.recorder.statistics().dropped_verbs == {"called_model": 1}


async def test_calls_under_way_are_waited_for_only_so_long() -> None:
    async with duolog.open("memory://") as log:
        recorder = CallRecorder(log, {})
        recorder.begin(told())
        assert recorder.statistics().under_way == 1
        assert await recorder.settle("another", 10.0)
        assert not await recorder.settle("s", 0.0)
        assert not recorder.wait(None, 0.0)
        recorder.end(told(), None, BEGAN, ENDED)
        assert await recorder.settle(None, 10.0)


async def test_a_name_that_nobody_knows_is_refused_at_once() -> None:
    async with duolog.open("memory://") as log:
        with pytest.raises(
            InvalidInput, match="unknown label or option 'tsk'; did you mean 'task'"
        ):
            CallRecorder(log, {"tsk": "support"})  # type: ignore[typeddict-unknown-key]


async def test_without_litellm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> object:
        return None if name == "litellm" else find_spec(name)

    monkeypatch.setattr(module, "find_spec", find)
    async with duolog.open("memory://") as log:
        with pytest.raises(MissingExtra, match=re.escape(install_command("llm"))):
            duolog.litellm_logger(log)


def bodies(server: OpenAIServer) -> list[Body]:
    return list(server.requests)


async def test_nothing_of_ours_reaches_the_provider(
    litellm: ModuleType, openai_server: OpenAIServer
) -> None:
    async with duolog.open("memory://") as log:
        logger: LiteLLMLogger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        await asking(litellm, openai_server, duolog_session="s")()
        assert await logger.settle(seconds=60)
    assert "duolog" not in str(bodies(openai_server))
