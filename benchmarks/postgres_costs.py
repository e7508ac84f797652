"""Measures the cost of an event in a log on PostgreSQL: the table for planning in ``docs/scale.md``.

    python -P -m duolog.benchmarks.postgres_costs              # 100,000 events in sessions of 50
    python -P -m duolog.benchmarks.postgres_costs --quick      # a tenth of them

It starts a server in a temporary directory, for which it needs the programs of PostgreSQL. Sizes hold
anywhere; times hold for this machine (for times against a floor, see ``log_postgres.py``).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio
import asyncpg
from duolog.benchmarks.log_postgres import append_ours
from duolog.benchmarks.workloads.typical_events import EVENTS
from duolog.engine.codec import encode_body
from duolog.engine.log.open import open_log
from duolog.engine.log.postgres.settings import parse
from duolog.engine.records import Record
from duolog.testing.postgres_server import PostgresServer, missing, running_postgres

__all__ = ("main",)

_EACH: Final = 50  # events of a session

_SIZE: Final = (
    "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname ~ $2"
)
_WRITTEN: Final = "SELECT pg_current_wal_insert_lsn() - '0/0'"


class _Costs:
    """Measures one log after the other, and prints a line for each figure."""

    def __init__(self, server: PostgresServer, sessions: int) -> None:
        self._server = server
        self._sessions = sessions
        self._events = sessions * _EACH

    async def measure(self) -> None:
        """Prints all figures."""
        body = statistics.mean(len(encode_body(event)) for event in EVENTS)
        self._print("body of an event", f"{body:.0f} bytes in the mean")
        url = self._server.url()
        before = await self._ask(url, "CHECKPOINT", _WRITTEN)
        began = time.perf_counter()
        await append_ours(url, self._sessions, self._events)
        seconds = time.perf_counter() - began
        after = await self._ask(url, _WRITTEN)
        self._print("appended by as many writers as sessions", f"{self._events / seconds:,.0f}/s")
        self._print("write-ahead log", f"{(after - before) / self._events:.0f} bytes an event")
        await self._sizes(url, "table of records, with its indexes", "^records", self._events)
        await self._sizes(url, "list of sessions", "^summaries", self._sessions)
        await self._sizes(url, "list of streams", "^streams", self._sessions)
        await self._reading(url)
        await self._chained(self._server.url(chain="yes"))

    async def _chained(self, url: str) -> None:
        await append_ours(url, self._sessions, self._events)
        await self._sizes(url, "hash chain", "^chain", self._events)
        async with open_log(url) as log:
            await self._rate("verify, with a hash chain", self._events, log.verify)

    async def _reading(self, url: str) -> None:
        async with open_log(url) as log:

            def decode(records: Sequence[Record]) -> None:
                for record in records:
                    _ = record.event

            async def scan() -> None:
                await log.scan(decode)

            async def listed() -> None:
                async for _ in log.sessions():
                    pass

            async def read(session: str) -> None:
                async for record in log.read(session):
                    _ = record.event

            await self._rate("reading and decoding in order", self._events, scan)
            await self._rate("verify", self._events, log.verify)
            await self._rate("list of sessions", self._sessions, listed)
            await self._each(f"one session of {_EACH} events", read)
            await self._each(f"forgetting one session of {_EACH} events", log.forget)

    async def _each(self, what: str, work: Callable[[str], Awaitable[object]]) -> None:
        taken = []
        for number in range(20):
            began = time.perf_counter()
            await work(f"session-{number}")
            taken.append(time.perf_counter() - began)
        self._print(what, f"{statistics.median(taken) * 1e3:.1f} ms")

    async def _rate(self, what: str, count: int, work: Callable[[], Awaitable[object]]) -> None:
        began = time.perf_counter()
        await work()
        self._print(what, f"{count / (time.perf_counter() - began):,.0f}/s")

    async def _sizes(self, url: str, what: str, tables: str, count: int) -> None:
        connection = await asyncpg.connect(parse(url).dsn)
        size = await connection.fetchval(_SIZE, parse(url).schema, tables)
        await connection.close()
        each = "an event" if count == self._events else "a session"
        self._print(what, f"{size / count:.0f} bytes {each}")

    async def _ask(self, url: str, *statements: str) -> int:
        """Runs statements one by one; the number that the last one gives."""
        connection = await asyncpg.connect(parse(url).dsn)
        for statement in statements:
            found = await connection.fetchval(statement)
        await connection.close()
        return int(found)

    def _print(self, what: str, figure: str) -> None:
        print(f"{what:45} {figure}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the events")
    options = parser.parse_args(arguments)
    if why := missing():
        sys.exit(why)
    with running_postgres() as server:
        anyio.run(_Costs(server, 200 if options.quick else 2000).measure)


if __name__ == "__main__":
    main()
