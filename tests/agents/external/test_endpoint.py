"""An agent behind an OpenAI-compatible endpoint takes a seat, through a real HTTP server."""

from __future__ import annotations

import json
from collections.abc import Iterator

import anyio
import pytest
from duolog.agents.external.address import read_address
from duolog.agents.external.endpoint import KEY
from duolog.engine.errors import InvalidInput, SessionInterrupted
from external_agents import LONG, SECRET, calls, record, session
from openai_server import Answer, Body, Fault, OpenAIServer


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(answer=toast).running() as server:
        yield server


def toast(body: Body) -> Answer:
    """Asks in words, and calls a tool once it has an answer."""
    if "Butter" not in body["messages"][-1]["content"]:
        return Answer(text="What on it?", completion_tokens=60)
    content = json.dumps({"content": "toast with butter"})
    return Answer(tool_calls=[("submit", content)])


def test_an_agent_behind_an_endpoint_speaks_and_acts(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "key-of-the-agent")
    made = session(f"openai:{server.url}#toaster")
    result, records = anyio.run(record, made)
    assert (result.reason, result.utility) == ("finished", 1.0)
    assert SECRET not in json.dumps(server.requests)
    assert server.requests[0]["model"] == "toaster"
    assert {"message", "submit"} <= {t["function"]["name"] for t in server.requests[0]["tools"]}
    assert server.headers[0]["authorization"] == "Bearer key-of-the-agent"
    assert "key-of-the-agent" not in str([one.body for one in records])
    assert calls(records)[0].latency == pytest.approx(2.0)  # 60 tokens at 60 a second
    assert calls(records)[0].model.startswith("openai-127.0.0.1-")


@pytest.mark.parametrize("fault", ["429", "500", "truncated", "malformed", "timeout"])
def test_a_failed_call_is_made_again(server: OpenAIServer, fault: Fault) -> None:
    server.fault = lambda number, body: fault if number == 0 else None
    timeout = 5.0 if fault == "timeout" else LONG
    made = session(f"openai:{server.url}", timeout=timeout, until=lambda: server.requests)
    result, records = anyio.run(record, made)
    assert result.reason == "finished"
    assert calls(records)[0].error is not None
    assert server.faults == [fault]


@pytest.mark.parametrize(
    ("fault", "says"),
    [("401", "status 401.*DUOLOG_AGENT_KEY"), ("empty", "which is not a completion")],
)
def test_what_does_not_pass_leaves_a_session_to_be_resumed(
    server: OpenAIServer, fault: Fault, says: str
) -> None:
    server.fault = lambda number, body: fault
    with pytest.raises(SessionInterrupted, match=says):
        anyio.run(record, session(f"openai:{server.url}"))
    server.fault = lambda number, body: None
    result, _ = anyio.run(record, session(f"openai:{server.url}"))
    assert result.reason == "finished"


def test_nobody_at_the_address_is_one_clear_line() -> None:
    with pytest.raises(SessionInterrupted, match=r"http://127.0.0.1:9/v1 cannot be reached"):
        anyio.run(record, session("openai:http://127.0.0.1:9/v1"))


def test_calls_that_fit_no_tool_fail_the_session(server: OpenAIServer) -> None:
    server.answer = lambda body: Answer(tool_calls=[("fly", "{}")])
    result, _ = anyio.run(record, session(f"openai:{server.url}"))
    assert result.reason == "failed"
    assert "unknown action 'fly'" in str(result.error)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("openai:http://localhost:8000/v1", "openai-localhost-8000"),
        ("openai:https://a.example/v1/chat/completions#big", "openai-a.example-big"),
        ("mine=openai:http://localhost:8000/v1", "mine"),
        ("exec:./agent.sh --fast", "exec-agent"),
        ("exec:python3.11 -u tools/my_agent.py", "exec-my_agent"),
        ("acp:claude-code-acp", "acp-claude-code-acp"),
    ],
)
def test_an_address_has_a_short_name(text: str, name: str) -> None:
    assert read_address(text).name == name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("openai:localhost", "lacks a URL"),
        ("openai:http://me@localhost/v1", "neither a query nor a user"),
        ("openai:http://localhost:99999/v1", "is not a URL"),
        ("exec:", "lacks a program"),
        ("exec:'a", "as a shell would"),
        ("exec:./agent --api-key abcdefgh12345678", "looks like a secret"),
        ("a b=exec:true", "is not an agent address"),
        ("a/b=exec:true", "not a valid agent name"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_address(text)


def test_a_program_that_is_not_there_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidInput, match="no executable program 'no-such-agent'"):
        session("exec:no-such-agent --fast")
