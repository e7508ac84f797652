"""The chat that asks a model through LiteLLM, as a program that begins in this process, against a server on
loopback: a new process would load LiteLLM anew, which takes seconds."""

from __future__ import annotations

import io
import runpy
import sys
from pathlib import Path
from types import ModuleType

import anyio
import duolog
import pytest
from duolog.engine.events import ModelCalled
from duolog.engine.records import Record
from openai_server import Answer, Body, OpenAIServer

pytestmark = pytest.mark.slow  # these tests load LiteLLM

TYPED = """\
Please write a haiku about logs.
No, that is wrong: it has four lines.
/good
"""


def poet(body: Body) -> Answer:
    return Answer(
        text=f"Poem number {len(body['messages'])}.",
        prompt_tokens=10 * len(body["messages"]),
        completion_tokens=7,
    )


def chat(root: Path, server: OpenAIServer, typed: str, patch: pytest.MonkeyPatch) -> None:
    program = str(root / "examples" / "litellm_loop.py")
    patch.setattr("litellm.callbacks", [])
    patch.setattr(sys, "argv", [program, "openai/gpt-4o", server.url])
    patch.setattr(sys, "stdin", io.StringIO(typed))
    runpy.run_path(program, run_name="__main__")


async def trace(where: Path) -> list[Record]:
    async with duolog.open(f"sqlite:///{where}/chat.db", create=False) as log:
        [summary] = [summary async for summary in log.sessions()]
        assert summary.state == "ended"
        return [record async for record in log.read(summary.session)]


def test_it_talks_and_tells(
    root: Path,
    tmp_path: Path,
    litellm: ModuleType,
    openai_server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    openai_server.answer = poet
    monkeypatch.chdir(tmp_path)
    chat(root, openai_server, TYPED, monkeypatch)
    said = capsys.readouterr().out
    assert "> Poem number 1.\n" in said
    rows = [line.split() for line in said.splitlines() if line.strip()[:2] in ("1 ", "2 ")]
    assert [row[:2] for row in rows[:2]] == [["1", "0.00"], ["2", "1.00"]]
    assert "2 calls, 40 + 14 tokens, 0.000240 USD" in said
    assert [record.kind for record in anyio.run(trace, tmp_path)] == [
        "SessionOpened",
        "MessageSent",
        "ModelCalled",
        "MessageSent",
        "MessageSent",
        "ModelCalled",
        "MessageSent",
        "FeedbackGiven",
        "SessionClosed",
    ]


async def test_a_model_that_cannot_be_reached_is_no_end(
    tmp_path: Path,
    litellm: ModuleType,
    openai_server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # In this process: as a program it would load LiteLLM anew, which takes seconds.
    openai_server.fault = lambda number, body: "401"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello?\nAnybody?\n"))
    from duolog.examples import litellm_loop

    monkeypatch.setattr("litellm.callbacks", [])
    await litellm_loop.main("openai/gpt-4o", openai_server.url)
    said = capsys.readouterr().out
    assert said.count("(the model cannot be reached: AuthenticationError)") == 2
    assert "2 calls, 0 + 0 tokens, at an unknown price" in said
    calls = [r.event for r in await trace(tmp_path) if isinstance(r.event, ModelCalled)]
    assert [(call.error or "").split(":")[0] for call in calls] == ["ModelDenied"] * 2
