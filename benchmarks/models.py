"""Measures what Duolog adds to a model call: CPU per call of sessions above a bare ``acompletion``.

A loopback server in a separate process answers at once. Both sides send it the same requests, equally
many at a time: tasks that only call LiteLLM, and sessions whose agent asks, says the reply, and waits
until every call is in a SQLite log. Rounds of both alternate.

Usage: python benchmarks/models.py [--sessions 200] [--calls 10] [--rounds 7] [--log memory://]
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import anyio
from duolog.engine.events import Participant
from duolog.engine.log.open import open_log
from duolog.engine.models import (
    Caller,
    LiteLLMModel,
    Message,
    ModelRequest,
    Models,
    Rates,
    Terms,
    model_actor,
)
from duolog.engine.session.actors import Player
from duolog.engine.session.decisions import Decision, Finish, Say
from duolog.engine.session.limits import Limits
from duolog.engine.session.runner import Session
from duolog.engine.session.simulation import simulate
from duolog.engine.session.view import View
from duolog.testing import Script, a_session, human

SERVER = Path(__file__).parents[1] / "tests" / "support" / "openai_server.py"
MODEL = "openai/gpt-4o"
SYSTEM = "You help somebody to plan a trip. " * 60
SETTLE = 0.5
ASKED = "A weekend in Oslo, with fjords, and not too dear, please. " * 5


class Cost(NamedTuple):
    """Of one call: milliseconds of CPU, and of wall time over all of them."""

    cpu: float
    wall: float


class Asking:
    """Asks a number of times, says the replies, and finishes."""

    def __init__(self, caller: Caller, calls: int) -> None:
        self._caller = caller
        self._left = calls

    async def decide(self, view: View) -> Decision:
        """One call, one message."""
        if not self._left:
            return Decision((Finish(),))
        self._left -= 1
        messages = (Message(role="system", content=SYSTEM), Message(role="user", content=ASKED))
        reply = await self._caller.ask(
            ModelRequest(model=MODEL, messages=messages, temperature=0.7), purpose="act"
        )
        return Decision((Say(reply.text),))


async def bare(url: str, tasks: int, calls: int) -> None:
    """Calls LiteLLM and nothing else."""
    acompletion = import_module("litellm").acompletion

    async def ask() -> None:
        for _ in range(calls):
            messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASKED}]
            await acompletion(
                model=MODEL,
                messages=messages,
                temperature=0.7,
                api_base=url,
                num_retries=0,
                max_retries=0,
            )

    async with anyio.create_task_group() as group:
        for _ in range(tasks):
            group.start_soon(ask)


async def sessions(url: str, count: int, calls: int, where: str) -> None:
    """Runs sessions whose agent makes the same calls."""
    terms = Terms(rates=Rates(concurrency=count))
    models = Models(LiteLLMModel(api_base=url), terms=terms)

    def make(number: int) -> Session:
        player = Player(
            Participant(name="agent", role="agent", model=MODEL),
            model_actor(models, lambda caller: Asking(caller, calls)),
        )
        waiting = human(Script().hear())
        limits = Limits(actions=None, rounds=None)
        return a_session(waiting, player, id=f"s{number}", limits=limits)

    makers = [lambda number=number: make(number) for number in range(count)]
    async with open_log(where) as log:
        await simulate(log, makers, concurrency=count)
    made = models.statistics().spent
    if made.calls != count * calls or made.failures:
        raise SystemExit(f"{made} is not {count * calls} calls without a failure")


async def cost(work: Callable[[], Awaitable[None]], calls: int) -> Cost:
    """Does it, and waits for what LiteLLM still does in the background: that is part of the cost."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    await work()
    took = time.perf_counter() - wall
    await anyio.sleep(SETTLE)
    return Cost((time.process_time() - cpu) / calls * 1000, took / calls * 1000)


async def compare(url: str, count: int, calls: int, rounds: int, where: str | None) -> None:
    """Alternates both, and prints milliseconds per call and their ratio."""
    await bare(url, 4, 4)  # LiteLLM imports much of itself when it is first used
    await sessions(url, 4, 4, "memory://")
    gc.collect()
    gc.freeze()  # LiteLLM's objects, which each full collection would look through
    alone: list[Cost] = []
    ours: list[Cost] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            log = where or f"{folder}/{number}.db"
            alone.append(await cost(partial(bare, url, count, calls), count * calls))
            ours.append(await cost(partial(sessions, url, count, calls, log), count * calls))
            more = ours[-1].cpu / alone[-1].cpu - 1
            print(
                f"bare {alone[-1].cpu:5.2f} ms CPU, {alone[-1].wall:5.2f} ms wall; "
                f"Duolog {ours[-1].cpu:5.2f}, {ours[-1].wall:5.2f}; {more:+.1%}"
            )
    more = statistics.median(b.cpu / a.cpu - 1 for a, b in zip(alone, ours, strict=True))
    before, after = (statistics.median(c.cpu for c in costs) for costs in (alone, ours))
    print(f"medians of CPU per call: {before:.2f} ms, {after:.2f} ms; Duolog adds {more:.1%}")


def main() -> None:
    """Starts the server, and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--log", help="URL of the log; a new SQLite file in each round by default")
    asked = parser.parse_args()
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("OPENAI_API_KEY", "sk-none")
    server = subprocess.Popen([sys.executable, SERVER], stdout=subprocess.PIPE, text=True)
    try:
        if server.stdout is None:
            raise SystemExit("the server's output cannot be read")
        url = server.stdout.readline().strip()
        anyio.run(compare, url, asked.sessions, asked.calls, asked.rounds, asked.log)
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
