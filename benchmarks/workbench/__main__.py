"""Measures the workbench on a large log: opening, filters, a long session, and many viewers.

    python -P -m duolog.benchmarks.workbench [--log big.db] [--viewers 200] [--rate 1000] [--seconds 20]

``duolog workbench`` runs in a separate process. Without ``--log`` a log of 100,000 sessions and five
million records is made first, which takes some minutes; with it, one that ``workloads.many_sessions`` made is
taken, and written to. Reports

- *open*: from the start of the process until the list's page has come, and the same of the page alone;
- *filter*: the page of a filtered or sorted list, the first time that it is asked for, once the list was read;
- *session*: index, a part, and the state at a moment, of a session of 20,000 records;
- *live*: so many viewers of the list, and of the session that is written to, while so many events a second
  are appended by another process: from when an event was durable until the last viewer was sent it, the
  server's share of a core, and its memory at the beginning and at the end;
- *memory* (``--minutes N``): viewers come and go, page after page, while another process appends: the
  server's memory by quarters of the time.

With ``--browser`` a browser scrolls through the long session (tasks of more than 50 ms, by the processor and by
the clock, memory), and follows
the log on the list, the live page and the long session: how far behind the page is, from when an event was durable
until the page's scripts had taken it.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

import httpx
from duolog.benchmarks.workbench.browser import measure_browser
from duolog.benchmarks.workbench.live import measure_live, measure_memory
from duolog.benchmarks.workbench.pages import measure_pages
from duolog.benchmarks.workbench.server import Server, say
from duolog.benchmarks.workloads.many_sessions import write


async def main(asked: argparse.Namespace) -> None:
    """Runs the chosen measurements."""
    with tempfile.TemporaryDirectory() as scratch:
        log = asked.log or Path(scratch, "big.db")
        if not log.exists():
            say("making the log", str(log))
            await write(log, sessions=100_000, records=50, long=20_000)
        server = await asyncio.to_thread(Server, log)
        try:
            async with httpx.AsyncClient(base_url=server.base, timeout=120) as client:
                await server.enter(client)
                await measure_pages(server, client)
                if asked.viewers:
                    await measure_live(
                        server, client, log, asked.viewers, asked.rate, asked.seconds
                    )
                if asked.browser:
                    await measure_browser(server, log, asked.rate, asked.seconds)
                if asked.minutes:
                    seconds = asked.minutes * 60
                    await measure_memory(server, client, log, 40, asked.rate // 4, seconds)
        finally:
            server.end()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--minutes", type=float, default=0.0)
    asyncio.run(main(parser.parse_args()))
