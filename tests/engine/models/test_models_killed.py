"""An experiment on models, killed again and again: it ends as it would have, and nothing is asked
twice that was answered and recorded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest
from duolog.engine.events import ModelCalled
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.models import LiteLLMModel, Models, ScriptedModel, spending
from duolog.engine.records import TRACE
from duolog.engine.session.runner import Session
from duolog.engine.session.simulation import simulate
from duolog.testing import streams
from forked import Forked
from openai_server import Answer, Body, OpenAIServer
from talkers import a_conversation, answer, answering

SESSIONS = 6
CONCURRENCY = 3
ENOUGH = 12
"""Steps after which a user has had enough, so that conversations are short."""

PROGRAM = """
import sys
support, url, path, sessions, concurrency = sys.argv[1:]
sys.path.insert(0, support)
import anyio
from duolog.engine.models import LiteLLMModel, Models
from duolog.engine.session.simulation import simulate
from duolog.engine.log.open import open_log
from functools import partial
from talkers import a_conversation

async def main():
    models = Models(LiteLLMModel(api_base=url))
    makers = [partial(a_conversation, models, id=f"s{n}", seed=n) for n in range(int(sessions))]
    async with open_log(path) as log:
        await simulate(log, makers, concurrency=int(concurrency))

anyio.run(main)
"""


def start(server: OpenAIServer, path: Path) -> Forked:
    support = Path(__file__).parents[2] / "support"
    arguments = [str(support), server.url, str(path), str(SESSIONS), str(CONCURRENCY)]
    return Forked(["-c", PROGRAM, *arguments], path.parent, stderr=subprocess.PIPE, models=True)


def conversations(models: Models) -> list[partial[Session]]:
    """The sessions that the program plays."""
    return [partial(a_conversation, models, id=f"s{n}", seed=n) for n in range(SESSIONS)]


async def recorded(log: EventLog) -> Counter[str]:
    """How many calls of each request the log holds."""
    events = [record.event async for record in log.read_all()]
    return Counter(event.request for event in events if isinstance(event, ModelCalled))


async def done(log: EventLog) -> dict[str, list[tuple[float, str, str, bytes | None]]]:
    """Traces with times, without model calls, because their tool calls have random ids."""
    return {
        id: [
            (record.time, record.kind, record.actor, record.body)
            for record in (await streams(log, id))[TRACE]
            if record.kind != "ModelCalled"
        ]
        for id in (f"s{number}" for number in range(SESSIONS))
    }


@pytest.mark.slow
@pytest.mark.parametrize("after", [(50,), pytest.param((20, 60, 100), marks=pytest.mark.soak)])
async def test_killed_in_the_middle_it_ends_as_it_would_have(
    after: tuple[int, ...], openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """The program is killed after so many requests, and started again."""
    server = openai_server
    path = tmp_path / "log.db"
    running: list[Forked] = []
    kills = list(after)

    def deadly(body: Body) -> Answer:
        if kills and len(server.requests) > kills[0]:
            kills.pop(0)
            os.kill(running[-1].pid, signal.SIGKILL)
        return answer(body, ENOUGH)

    server.answer = deadly
    at_kill: list[tuple[int, int]] = []
    for _ in after:
        running.append(start(server, path))
        _, errors = running[-1].communicate()
        assert running[-1].returncode == -signal.SIGKILL, errors
        await anyio.to_thread.run_sync(server.until_left)
        async with open_log(str(path)) as log:
            calls = (await recorded(log)).total()
            at_kill.append((len(server.requests), calls))

    # The last time it is not killed, and so need not be a program: that would load LiteLLM anew.
    asked = Models(LiteLLMModel(api_base=server.url))
    async with open_log(str(path)) as log:
        await simulate(log, conversations(asked), concurrency=CONCURRENCY)

    # Requests that are not in the log were under way when the program was killed.
    lost = 0
    for made, calls in at_kill:
        assert 0 < made - calls - lost <= CONCURRENCY
        lost = made - calls
    async with open_log(str(path)) as log, open_log("memory://") as whole:
        assert len(server.requests) == (await recorded(log)).total() + lost
        sent = Counter(json.dumps(body, sort_keys=True) for body in server.requests)
        assert sent.total() - len(sent) <= lost  # as good as nothing was sent twice
        assert (await spending(log)).failures == 0

        await simulate(
            whole, conversations(Models(ScriptedModel(partial(answering, enough=ENOUGH))))
        )
        assert await done(log) == await done(whole)
