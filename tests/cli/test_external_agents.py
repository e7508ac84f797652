"""Agents that are a user's own programs, in every command that takes an agent."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from duolog.cli import main
from openai_server import Answer, Body, OpenAIServer

pytestmark = [pytest.mark.usefixtures("plain"), pytest.mark.slow]

Capture = pytest.CaptureFixture[str]

AGENT = """
import json, sys
for line in sys.stdin:
    turn = json.loads(line)
    with open("asked", "a") as file:
        file.write(line)
    if turn["output"] is None:
        actions = [{"name": "submit", "arguments": {"content": "jam"}}]
    else:
        actions = [{"name": "message", "arguments": {"text": "And?"}}, {"name": "wait"}]
    print(json.dumps({"actions": actions}), flush=True)
"""


def done(capsys: Capture, *arguments: str, code: int = 0) -> str:
    """A command's output, the messages last."""
    capsys.readouterr()
    assert main(arguments) == code, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out + err


def test_a_program_plays_in_experiments_forks_and_chats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    done(capsys, "new", "task", "shop")
    Path("agent.py").write_text(AGENT, encoding="utf-8")
    agent = f"exec:{sys.executable} agent.py"
    run = ("run", "shop.py:Shop", "--agents", f"clerk,{agent}", "--log", "a.db")
    limits = ("--sessions", "1", "--max-rounds", "3")
    assert "2 sessions: 2 run" in done(capsys, *run, *limits)
    asked = Path("asked").read_text("utf-8")
    assert "bread, butter, eggs" not in asked  # the customer's private wishes
    assert "2 sessions: 0 run, 2 in the log already" in done(capsys, *run, *limits)
    assert "nothing differs" in done(capsys, "replay", "a.db", "--check")

    Path("asked").unlink()
    fork = ("fork", "a.db", "shop-0-exec-agent", "--at-round", "2")
    done(capsys, *fork, "--agent", "clerk")
    assert not Path("asked").exists()  # its part is executed again from the log
    assert "clerk → exec-agent" in done(
        capsys, "fork", "a.db", "shop-0-clerk", "--at-round", "2", "--agent", agent
    )
    done(capsys, *fork, "--seed", "5")

    Path("typed").write_text("/finish\n", encoding="utf-8")
    with Path("typed").open(encoding="utf-8") as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        done(capsys, "chat", "shop.py:Shop", "--agent", f"mine={agent}", "--log", "c.db", "--plain")
    assert "mine, person" in done(capsys, "sessions", "c.db")

    named = ("fork", "a.db", "shop-0-clerk", "--at-round", "2", "--agent", agent, "--seed", "6")
    assert "--agent-env DUOLOG_TOKEN: no agent gets" in done(
        capsys, *named, "--agent-env", "DUOLOG_TOKEN", code=2
    )
    done(capsys, *named, "--agent-env", "MY_KEY")

    other = run[:3] + (f"{agent} --fast",) + run[4:]
    assert "has changed since" in done(capsys, *other, *limits, code=2)
    Path("e.toml").write_text(
        f'task = "shop.py:Shop"\nagents = ["a=exec:true", "b={agent}"]\nlog = "b.db"\nsessions = 1\n'
        "agent_timeout = 30\nagent_env = ['MY_KEY']\nlimits = { rounds = 3 }\n",
        encoding="utf-8",
    )
    said = done(capsys, "run", "e.toml", code=3)
    assert "a=exec:true ended with exit code 0 before it had answered" in said
    assert "b, customer" in done(capsys, "sessions", "b.db")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A server of a model on loopback."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with OpenAIServer().running() as server:
        yield server


def test_an_endpoint_plays_in_experiments_forks_and_chats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, endpoint: OpenAIServer
) -> None:
    def answer(body: Body) -> Answer:
        if "jam" in str(body["messages"][1:]):
            return Answer(tool_calls=[("message", '{"text": "And?"}')], prompt_tokens=7)
        return Answer(tool_calls=[("submit", '{"content": "jam"}')], prompt_tokens=7)

    endpoint.answer = answer
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    done(capsys, "new", "task", "shop")
    agent = f"helper=openai:{endpoint.url}#m-1"
    run = ("run", "shop.py:Shop", "--agents", agent, "--log", "a.db", "--sessions", "1")
    assert "1 session: 1 run" in done(capsys, *run, "--max-rounds", "3")
    asked = json.dumps(endpoint.requests)
    assert {one["model"] for one in endpoint.requests} == {"m-1"}
    assert "bread, butter, eggs" not in asked  # the customer's private wishes
    shown = done(capsys, "show", "a.db", "shop-0-helper")
    assert "submits" in shown or "jam" in shown

    before = len(endpoint.requests)
    done(capsys, "fork", "a.db", "shop-0-helper", "--at-round", "2", "--seed", "5")
    assert len(endpoint.requests) > before

    before = len(endpoint.requests)
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as typed, os.fdopen(writing, "wb", 0) as typing:
        typing.write(b"Some jam?\n")

        def answer_and_finish(body: Body) -> Answer:
            if len(endpoint.requests) == before + 1:  # the person has waited for the agent
                typing.write(b"/finish\n")
            return answer(body)

        endpoint.answer = answer_and_finish
        monkeypatch.setattr(sys, "stdin", typed)
        done(capsys, "chat", "shop.py:Shop", "--agent", agent, "--log", "c.db", "--plain")
    assert len(endpoint.requests) > before

    endpoint.fault = lambda number, body: "401"
    said = done(capsys, *run[:-3], "b.db", "--sessions", "1", code=3)
    assert "401" in said or "API key" in said


def test_the_time_of_an_external_agent_can_be_set_in_forks_and_chats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    done(capsys, "new", "task", "shop")
    done(capsys, "run", "shop.py:Shop", "--log", "a.db", "--sessions", "1", "--max-rounds", "3")
    Path("slow.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    slow = ("--agent", f"slow=exec:{sys.executable} slow.py", "--agent-timeout")
    fork = ("fork", "a.db", "shop-0-clerk", "--at-round", "2", *slow)
    assert "no whole answer from 'slow' within 0.2 s" in done(capsys, *fork, "0.2", code=2)
    assert "agent_timeout must be more than 0 seconds" in done(capsys, *fork, "0", code=2)
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as typed, os.fdopen(writing, "w"):
        monkeypatch.setattr(sys, "stdin", typed)  # the person waits, and types nothing
        chat = ("chat", "shop.py:Shop", *slow, "0.2", "--log", "c.db", "--plain")
        said = done(capsys, *chat)
    assert "no whole answer from 'slow' within 0.2 s" in said
    assert "--agent-timeout 0.2" in said
