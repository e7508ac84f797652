"""Appends to sessions of a log at a rate, and prints which position was reached when.

python -P -m duolog.benchmarks.workloads.growing_log LOG --rate 1000 --seconds 20 [--share 0.1]

Each printed line has a position and the time at which it was durable, in seconds since 1970. The last
line begins with ``sent`` and has the number of events appended, and the seconds that it took.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import anyio
from duolog.benchmarks.workloads.many_sessions import LONG, session
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft

__all__ = ("grow",)

_TICK = 0.05  # seconds; events that fall due meanwhile are appended together
_SESSIONS = 97  # that grow, in addition to the long one


async def grow(log: EventLog, rate: float, seconds: float, share: float) -> None:
    """Appends ``rate`` events a second, a ``share`` of them to the long session."""
    source = cycle([one for number in range(50) for one in session(number, 200, closed=False)])
    begin = time.perf_counter()
    sent = 0
    while (passed := time.perf_counter() - begin) < seconds:
        due = int(passed * rate) - sent
        batches: dict[tuple[str, str], list[Draft]] = {}
        for number in range(sent, sent + due):
            stream, draft = next(source)
            name = LONG if number % 1000 < share * 1000 else f"grown-{number % _SESSIONS}"
            batches.setdefault((name, stream), []).append(draft)
        sent += due
        reached = [0]

        async def append(name: str, stream: str, drafts: Sequence[Draft]) -> None:
            records = await log.append(name, drafts, stream=stream)
            reached.append(records[-1].position)  # noqa: B023  (awaited before the next turn)

        async with anyio.create_task_group() as tasks:
            for (name, stream), drafts in batches.items():
                tasks.start_soon(append, name, stream, drafts)
        print(max(reached), time.time(), flush=True)
        await anyio.sleep(max(0.0, _TICK - (time.perf_counter() - begin - passed)))
    print("sent", sent, time.perf_counter() - begin, flush=True)


async def main(asked: argparse.Namespace) -> None:
    """Grows the log that the arguments name."""
    async with open_log(str(asked.log), create=False) as log:
        await grow(log, asked.rate, asked.seconds, asked.share)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--share", type=float, default=0.1)
    asyncio.run(main(parser.parse_args()))
