"""A separate machine at work on a log, with a clock that is wrong by some seconds. Run by the tests.

log_machine.py URL SKEW write NAME SESSIONS EACH RATE    prints each append that was acknowledged
log_machine.py URL SKEW follow COUNT                     prints each record that it was given
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
from duolog.engine.errors import LogUnavailable
from duolog.engine.events import MessageSent
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft, Record

__all__ = ()


def _wrong_clock(skew: float) -> None:
    right = time.time
    time.time = lambda: right() + skew


def _say(records: list[Record]) -> None:
    lines = [(r.position, r.session, r.version, (r.body or b"").decode()) for r in records]
    sys.stdout.write(json.dumps(lines) + "\n")


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[EventLog]:
    """The log; where its server is not there yet, it is tried again, as by what restarts programs."""
    async with AsyncExitStack() as stack:
        log: EventLog | None = None
        while log is None:
            try:
                log = await stack.enter_async_context(open_log(url))
            except LogUnavailable:
                await anyio.sleep(0.05)
        yield log


async def write(url: str, name: str, sessions: int, each: int, rate: float) -> None:
    """Appends to private sessions, one event after the other, each at its version; ``rate`` events a
    second in all, as fast as it can if that is 0.
    """
    acknowledged: list[Record] = []
    begun = time.monotonic()

    async def play(number: int) -> None:
        for version in range(each):
            if rate:
                due = begun + (version * sessions + number) / rate
                await anyio.sleep(max(0.0, due - time.monotonic()))
            event = MessageSent(text=f"{version}")
            drafts = [Draft(event, "w", "agent", time.time())]
            acknowledged.extend(
                await log.append(f"{name}-{number}", drafts, expected_version=version)
            )

    async with _opened(url) as log, anyio.create_task_group() as tasks:
        for number in range(sessions):
            tasks.start_soon(play, number)
    _say(acknowledged)


async def follow(url: str, count: int) -> None:
    """Subscribes from the beginning, until it was given so many records."""
    given: list[Record] = []
    async with _opened(url) as log, log.subscribe() as subscription:
        while len(given) < count:
            given.append(await anext(subscription))
    _say(given)


def main(url: str, skew: str, what: str, *rest: str) -> None:
    """Does one of them."""
    _wrong_clock(float(skew))
    if what == "write":
        name, sessions, each, rate = rest
        anyio.run(write, url, name, int(sessions), int(each), float(rate))
    else:
        anyio.run(follow, url, int(rest[0]))


if __name__ == "__main__":
    main(*sys.argv[1:])
