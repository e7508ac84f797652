"""``duolog run`` on models by several programs into one log: the budget is that of all together."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from duolog.cli import main
from duolog.engine.events import ModelCalled
from duolog.engine.log.open import open_log
from forked import Forked
from openai_server import Answer, Body, Fault, OpenAIServer
from travel_model import play

pytestmark = pytest.mark.slow

BUDGET = 40_000

EACH = 1_000
"""Tokens of a call."""

AT_ONCE = 2
"""Sessions of a program."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, litellm_at_work: None) -> Iterator[OpenAIServer]:
    """Plays all parts of travel planning, and counts as many tokens for each call."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")

    def answer(body: Body) -> Answer:
        said = play(body)
        return Answer(
            text=said.text,
            tool_calls=said.tool_calls,
            prompt_tokens=EACH - 10,
            completion_tokens=10,
        )

    with OpenAIServer(answer=answer).running() as server:
        yield server


@pytest.fixture(params=["postgres", pytest.param("sqlite", marks=pytest.mark.soak)])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shared.db?durability=normal"
    found: str = request.getfixturevalue("postgres").url(durability="normal")
    return found


def spent(where: str) -> int:
    """Tokens of all calls that a log holds."""

    async def read() -> int:
        async with open_log(where, create=False) as log:
            calls = [r.event async for r in log.read_all() if isinstance(r.event, ModelCalled)]
        return sum((call.tokens.prompt or 0) + (call.tokens.completion or 0) for call in calls)

    return anyio.run(read)


def test_programs_keep_one_budget(
    log: str, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """What both have spent counts for each. A call that is under way when the limit is reached still
    counts, and so does one that is made before the log says what the other has spent.

    One of the programs is this process. Nobody is answered before both have asked.
    """

    server.opened = opened = asyncio.Event()

    def open_for_both(number: int, body: Body) -> Fault | None:
        if len({headers["authorization"] for headers in server.headers}) == 2:
            opened.set()
        return None

    server.fault = open_for_both
    command = ["run", "travel", "--agents", "two-stage", "--log", log, "--api-base", server.url]
    command += ["--models", "openai/gpt-4o", "--user-model", "openai/gpt-4o", "--sessions", "8"]
    command += ["--concurrency", str(AT_ONCE), "--budget-tokens", str(BUDGET)]
    other = Forked(
        ["-P", "-m", "duolog", *command],
        environment={**os.environ, "OPENAI_API_KEY": "sk-other"},
        stderr=subprocess.PIPE,
        models=True,
    )
    codes: list[int | None] = [main(command)]
    said = [capfd.readouterr().err, other.communicate()[1]]
    codes.append(other.returncode)
    assert codes == [3, 3], said
    assert spent(log) == EACH * len(server.requests)
    assert BUDGET <= spent(log) < 2 * BUDGET  # which two programs apart would spend
    for err in said:
        assert re.search(r"^models: \d+ calls", err, re.MULTILINE)  # each has made some
        last = err.splitlines()[-1]
        assert "8 of 8 sessions left to be run: the budget of the experiment is used up: " in last
        assert f"of {BUDGET}; the same command continues from here" in last
