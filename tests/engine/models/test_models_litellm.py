"""LiteLLM against a real server on loopback: requests, replies, and the error for each fault."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import (
    InvalidInput,
    MissingExtra,
    ModelBadReply,
    ModelDenied,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from duolog.engine.events import Tokens
from duolog.engine.installation import install_command
from duolog.engine.models import (
    LiteLLMModel,
    Message,
    ModelReply,
    ModelRequest,
    Models,
    Retry,
    Terms,
    Tool,
    ToolCall,
)
from duolog.engine.models.litellm.errors import model_error, retry_after
from openai_server import Answer, Fault, OpenAIServer

REQUEST = ModelRequest(
    model="openai/gpt-4o", messages=(Message(role="user", content="A weekend in Oslo, please"),)
)
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])

# OpenAI's prices of this model, US dollars per token, as LiteLLM has them.
PROMPT, CACHED, COMPLETION = 2.5e-06, 1.25e-06, 1e-05


@pytest.fixture
def server(openai_server: OpenAIServer) -> OpenAIServer:
    return openai_server


# --- what is sent and read -------------------------------------------------------------------------


@STREAMED
async def test_text_usage_and_price(server: OpenAIServer, stream: bool) -> None:
    server.answer = lambda body: Answer(
        text="Fjords — and trolls 🧌",
        prompt_tokens=100,
        completion_tokens=20,
        cached_tokens=40,
        reasoning_tokens=8,
    )
    reply = await LiteLLMModel(api_base=server.url, stream=stream).complete(REQUEST)
    assert reply.text == "Fjords — and trolls 🧌"
    assert reply.tool_calls == ()
    assert reply.finish == "stop"
    assert reply.tokens == Tokens(prompt=100, completion=20, cached=40, reasoning=8)
    assert reply.cost == pytest.approx(60 * PROMPT + 40 * CACHED + 20 * COMPLETION)
    assert reply.model == "gpt-4o"
    assert reply.latency > 0


@STREAMED
async def test_tool_calls_keep_the_words_of_the_model(server: OpenAIServer, stream: bool) -> None:
    broken = '{"city": "Oslo", "nights": tw'
    server.answer = lambda body: Answer(tool_calls=[("find", '{"city": "Oslo"}'), ("book", broken)])
    reply = await LiteLLMModel(api_base=server.url, stream=stream).complete(REQUEST)
    assert reply.text == ""
    assert reply.finish == "tool_calls"
    assert reply.tool_calls == (
        ToolCall(id="call_0_0", name="find", arguments='{"city": "Oslo"}'),
        ToolCall(id="call_0_1", name="book", arguments=broken),
    )


@STREAMED
async def test_all_of_the_request_is_sent_and_nothing_else(
    server: OpenAIServer, stream: bool
) -> None:
    request = ModelRequest(
        model="openai/gpt-4o",
        messages=(
            Message(role="system", content="Be brief."),
            Message(role="user", content="Oslo?", name="ada"),
            Message(
                role="assistant",
                tool_calls=(ToolCall(id="7", name="find", arguments='{"city":"Oslo"}'),),
            ),
            Message(role="tool", content="nothing", tool_call_id="7"),
        ),
        tools=(
            Tool(
                name="find",
                description="finds",
                parameters={"type": "object", "properties": {"city": {"type": "string"}}},
            ),
            Tool(name="wait"),
        ),
        tool_choice="required",
        temperature=0.3,
        max_tokens=77,
        seed=5,
        stop=("END", "STOP"),
        options={"top_p": 0.9},
    )
    await LiteLLMModel(
        api_base=server.url, stream=stream, options={"presence_penalty": 0.5}
    ).complete(request)
    [body] = server.requests
    sent = dict(body)
    if stream:
        assert sent.pop("stream") is True
        assert sent.pop("stream_options") == {"include_usage": True}
    call = {"name": "find", "arguments": '{"city":"Oslo"}'}
    assert sent == {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Oslo?", "name": "ada"},
            {
                "role": "assistant",
                "tool_calls": [{"id": "7", "type": "function", "function": call}],
            },
            {"role": "tool", "content": "nothing", "tool_call_id": "7"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "find",
                    "description": "finds",
                    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "wait",
                    "description": "",
                    "parameters": {"type": "object", "properties": {}},
                },
            },
        ],
        "tool_choice": "required",
        "temperature": 0.3,
        "max_tokens": 77,
        "seed": 5,
        "stop": ["END", "STOP"],
        "top_p": 0.9,
        "presence_penalty": 0.5,
    }


async def test_what_is_not_asked_for_is_not_sent(server: OpenAIServer) -> None:
    await LiteLLMModel(api_base=server.url).complete(REQUEST)
    assert server.requests == [
        {"model": "gpt-4o", "messages": [{"role": "user", "content": "A weekend in Oslo, please"}]}
    ]
    assert server.headers[0]["authorization"] == f"Bearer {os.environ['OPENAI_API_KEY']}"


@STREAMED
async def test_an_unknown_price_is_none(server: OpenAIServer, stream: bool) -> None:
    unpriced = ModelRequest(model="openai/a-model-of-ours", messages=REQUEST.messages)
    reply = await LiteLLMModel(api_base=server.url, stream=stream).complete(unpriced)
    assert reply.cost is None
    assert reply.tokens.prompt == 5


async def test_a_price_can_be_told(server: OpenAIServer) -> None:
    prices = {"input_cost_per_token": 0.5, "output_cost_per_token": 2.0}
    priced = ModelRequest(model="openai/a-priced-model", messages=REQUEST.messages)
    server.answer = lambda body: Answer(text="Yes", prompt_tokens=10, completion_tokens=3)
    reply = await LiteLLMModel(api_base=server.url, options=prices).complete(priced)
    assert reply.cost == 11.0


@STREAMED
async def test_who_counts_nothing_costs_nobody_knows_what(
    server: OpenAIServer, stream: bool
) -> None:
    server.counts = False
    reply = await LiteLLMModel(api_base=server.url, stream=stream).complete(REQUEST)
    assert reply.text == "You said: A weekend in Oslo, please"
    assert reply.tokens == Tokens()
    assert reply.cost is None


async def test_half_a_surrogate_pair_is_spelled_out(server: OpenAIServer) -> None:
    server.answer = lambda body: Answer(text="\ud83d half")
    reply = await LiteLLMModel(api_base=server.url).complete(REQUEST)
    assert reply.text == "\\ud83d half"


@STREAMED
async def test_a_slow_first_byte_is_waited_for(server: OpenAIServer, stream: bool) -> None:
    server.fault = lambda number, body: "slow"
    reply = await LiteLLMModel(api_base=server.url, stream=stream).complete(REQUEST)
    assert reply.text == "You said: A weekend in Oslo, please"
    assert reply.latency >= server.slow


# --- what goes wrong -------------------------------------------------------------------------------

KINDS: Mapping[Fault, type[ModelError]] = {
    "429": ModelRateLimited,
    "500": ModelUnavailable,
    "400": ModelRefused,
    "401": ModelDenied,
    "context": ModelRefused,
    "truncated": ModelBadReply,
    "malformed": ModelBadReply,
    "empty": ModelBadReply,
}


@STREAMED
@pytest.mark.parametrize("fault", KINDS)
async def test_each_fault_has_its_kind_and_is_tried_once(
    server: OpenAIServer, fault: Fault, stream: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    server.fault = lambda number, body: fault
    with pytest.raises(ModelError) as caught:
        await LiteLLMModel(api_base=server.url, stream=stream).complete(REQUEST)
    assert type(caught.value) is KINDS[fault]
    assert len(server.requests) == 1
    assert "'openai/gpt-4o'" in str(caught.value)
    assert os.environ["OPENAI_API_KEY"] not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert capfd.readouterr().out == ""


async def test_the_provider_quotes_the_key_and_we_do_not(server: OpenAIServer) -> None:
    server.fault = lambda number, body: "401"
    with pytest.raises(ModelDenied, match=r"Incorrect API key provided: \[removed\]"):
        await LiteLLMModel(api_base=server.url).complete(REQUEST)


async def test_secrets_of_the_call_are_taken_out_of_what_the_provider_says(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server.fault = lambda number, body: "401"
    headers = {"Authorization": "Bearer plain words of mine"}
    model = LiteLLMModel(api_base=server.url, options={"extra_headers": headers})
    with pytest.raises(ModelDenied) as caught:
        await model.complete(REQUEST)
    assert server.headers[0]["authorization"] == "Bearer plain words of mine"
    assert "provided: [removed]" in str(caught.value)
    assert "plain words" not in str(caught.value)


async def test_a_call_that_is_cancelled_early_leaves_nothing_behind(
    server: OpenAIServer, recwarn: pytest.WarningsRecorder
) -> None:
    model = LiteLLMModel(api_base=server.url)
    await model.prepare()
    for _ in range(3):
        with anyio.move_on_after(0):
            await model.complete(REQUEST)
    # Any further work of the threads comes after what was left to them.
    await asyncio.gather(
        *(asyncio.get_running_loop().run_in_executor(None, gc.collect) for _ in range(8))
    )
    await anyio.lowlevel.checkpoint()
    gc.collect()
    assert [str(one.message) for one in recwarn if "never awaited" in str(one.message)] == []
    assert server.requests == []
    assert (await model.complete(REQUEST)).text == "You said: A weekend in Oslo, please"


async def test_retry_after_is_read(server: OpenAIServer) -> None:
    server.fault = lambda number, body: "429"
    server.retry_after = 12.5
    with pytest.raises(ModelRateLimited) as caught:
        await LiteLLMModel(api_base=server.url).complete(REQUEST)
    assert caught.value.retry_after == 12.5


@STREAMED
async def test_no_answer_in_time(server: OpenAIServer, stream: bool) -> None:
    server.fault = lambda number, body: "timeout"
    models = Models(
        LiteLLMModel(api_base=server.url, stream=stream), terms=Terms(timeout=0.1, retry=Retry())
    )
    with pytest.raises(ModelTimeout, match=r"no whole answer from 'openai/gpt-4o' within 0\.1 s"):
        await models.attempt(REQUEST)
    assert len(server.requests) <= 1  # it may not have arrived in that time


async def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with OpenAIServer().running() as server:
        gone = server.url
    with pytest.raises(ModelUnavailable):
        await LiteLLMModel(api_base=gone).complete(REQUEST)


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (ModelRequest(model="no-such-provider/x", messages=REQUEST.messages), ModelDenied),
        (
            ModelRequest(model="openai/o1", messages=REQUEST.messages, temperature=0.3),
            ModelDenied,
        ),
    ],
)
async def test_what_no_provider_takes(
    server: OpenAIServer, request_: ModelRequest, kind: type[ModelError]
) -> None:
    with pytest.raises(kind):
        await LiteLLMModel(api_base=server.url).complete(request_)
    assert server.requests == []


async def test_an_unknown_model_is_named(server: OpenAIServer) -> None:
    request_ = ModelRequest(model="nope", messages=REQUEST.messages)
    with pytest.raises(
        ModelDenied, match="unknown model 'nope'; names begin with a provider, as in "
    ):
        await LiteLLMModel(api_base=server.url).complete(request_)


@pytest.mark.parametrize("model", ["openai/gpt-4o", "gemini/gemini-2.0-flash"])
async def test_without_a_key_nobody_is_asked_again_and_again(
    model: str, monkeypatch: pytest.MonkeyPatch, litellm_at_work: None
) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelDenied) as raised:
        await LiteLLMModel().complete(ModelRequest(model=model, messages=REQUEST.messages))
    assert "no API key for" in str(raised.value)
    assert "Traceback" not in str(raised.value)


@STREAMED
async def test_calls_at_once_do_not_mix(server: OpenAIServer, stream: bool) -> None:
    model = LiteLLMModel(api_base=server.url, stream=stream)
    replies: dict[int, ModelReply] = {}

    async def ask(number: int) -> None:
        message = Message(role="user", content=f"number {number}")
        replies[number] = await model.complete(
            ModelRequest(model="openai/gpt-4o", messages=(message,))
        )

    async with anyio.create_task_group() as tasks:
        for number in range(30):
            tasks.start_soon(ask, number)
    assert {n: reply.text for n, reply in replies.items()} == {
        n: f"You said: number {n}" for n in range(30)
    }


# --- set-up ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["api_key", "callbacks", "num_retries", "max_retries", "stream"])
async def test_what_is_not_the_users_to_set(server: OpenAIServer, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} is not an option of a model call"):
        LiteLLMModel(options={name: 1})
    request = ModelRequest(model="openai/gpt-4o", messages=REQUEST.messages, options={name: 1})
    with pytest.raises(InvalidInput, match=f"{name} is not an option of a model call"):
        await LiteLLMModel(api_base=server.url).complete(request)


def test_without_litellm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(MissingExtra, match=re.escape(install_command("llm"))):
        LiteLLMModel()


PROBE = """
import gc, json, os, sys
os.environ.pop("LITELLM_LOCAL_MODEL_COST_MAP", None)
connected = []
sys.addaudithook(lambda event, args: connected.append(str(args[1])) if event == "socket.connect" else None)
import anyio
from duolog.engine.models import LiteLLMModel, Message, ModelRequest
model = LiteLLMModel(api_base=sys.argv[1])
before = "litellm" in sys.modules
request = ModelRequest(model="openai/gpt-4o", messages=(Message(role="user", content="Hi"),))
anyio.run(model.complete, request)
import litellm
callbacks = [*litellm.callbacks, *litellm.success_callback, *litellm.failure_callback]
print(json.dumps([before, connected, len(callbacks), gc.isenabled()]))
"""


@pytest.mark.slow
def test_nothing_is_loaded_before_the_first_call_and_nothing_fetched_ever(
    server: OpenAIServer, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, server.url],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    before, connected, callbacks, collects = json.loads(done.stdout)
    assert not before
    assert collects  # garbage, after an import without
    assert connected == [f"('127.0.0.1', {server.port})"]
    assert callbacks == 0
    assert done.stderr == ""


# --- what errors mean ------------------------------------------------------------------------------


class RateLimitError(Exception):
    """An error with the same name as LiteLLM's."""


def test_no_credit_is_no_limit_of_rates() -> None:
    error = RateLimitError("Error code: 429 - insufficient_quota: You exceeded your current quota")
    assert type(model_error(error, "m")) is ModelDenied
    assert type(model_error(RateLimitError("slow down"), "m")) is ModelRateLimited


def test_what_nobody_knows_is_tried_again() -> None:
    error = model_error(ZeroDivisionError("in some library"), "m")
    assert type(error) is ModelUnavailable
    assert str(error) == "ZeroDivisionError: 'm': in some library"


def test_a_long_story_is_cut_short() -> None:
    assert len(str(model_error(RateLimitError("x" * 10_000), "m"))) < 600


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=90), usegmt=True)}, 0.0),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_what_a_provider_asks_to_wait(headers: Mapping[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW.timestamp()) == seconds
