"""How long pages of the workbench take: opening, filters, and the parts of a long session."""

from __future__ import annotations

import time

import anyio
import httpx
from duolog.benchmarks.workbench.server import Server, say, timed
from duolog.benchmarks.workloads.many_sessions import LONG

__all__ = ("FILTERS", "measure_pages")

FILTERS = (
    "agent=two-stage",
    "agent=two-stage&state=finished&utility=0.3..&sort=-utility",
    "q=travel-77",
    "rounds=8..&sort=-rounds",
    "sort=session",
)


async def measure_pages(server: Server, client: httpx.AsyncClient) -> None:
    """Asks for them, one after the other."""
    first = await timed(lambda: client.get("/sessions"))
    whole = (time.perf_counter() - server.began) * 1000
    say("open: from the start, the page alone", f"{whole:.0f} ms", f"{first:.0f} ms")
    while "reading the list" in (await client.get("/sessions?state=open")).text:  # noqa: ASYNC110
        await anyio.sleep(0.1)
    taken, used = time.perf_counter() - server.began, server.processor_time()
    say("the list is read after", f"{taken:.1f} s", f"{used:.1f} s of the processor")
    for query in FILTERS:
        path = f"/sessions?{query}"
        taken = await timed(lambda path=path: client.get(path))  # type: ignore[misc]
        again = await timed(lambda path=path: client.get(path))  # type: ignore[misc]
        say(f"filter {query[:34]}", f"{taken:.0f} ms", f"again {again:.0f} ms")
    for part in ("index?after=0", "records?from=9000&to=9019", "state?at=9000", "state?at=8990"):
        path = f"/v1/session/{part}&session={LONG}"
        taken = await timed(lambda path=path: client.get(path))  # type: ignore[misc]
        say(f"session: {part}", f"{taken:.0f} ms")
