"""Measures the HTTP interface: product sessions that post events, one a request, to a real server.

    python -P -m duolog.benchmarks.http_load [--rate 1000] [--seconds 60] [--kills 0]

``duolog serve`` runs in a separate process, on a log on disk with scorers by rules. The clients run in
this one: a number of conversations at once, each on a connection that it keeps, at a total rate of
events, and one client that follows the stream. A conversation is closed after a hundred events, and
another begins. With ``--kills`` the server is killed (SIGKILL) that many times, evenly, and started
again; the clients resend events that were not acknowledged. Reports

- the processor time of the server, as a ratio to that of a bare server (``floors.http``) under the same
  load, in turn;
- *posted*: from when an event was due until it was acknowledged, waiting for its turn included;
- *told*: from when it was due until the stream told of it;
- what was lost or doubled: events acknowledged against those in the log;
- memory of the server, at the beginning, in the middle and at the end, and its share of a core.

Exits with 1 if something was lost or doubled.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
from duolog.benchmarks.measuring import Row, add_arguments, compare, resident_memory, write_rows
from duolog.engine.log.open import open_log

PER_SESSION = 100
OURS = re.compile(r"e\d+")  # ids of posted events; those that the server adds have others
HEAD = (
    "POST /v1/sessions/{}/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
)
PLAN = "\n".join(f"Day {day}: a walk by the river, lunch at the mill, the museum" for day in "123")


def event(kind: str, human: bool, **body: object) -> dict[str, object]:
    """An event of one of the two."""
    actor, role = ("human", "human") if human else ("agent", "agent")
    return {"kind": kind, "actor": actor, "role": role, "body": body}


def step(number: int) -> dict[str, object]:
    """What happens next in a conversation."""
    plan = PLAN.replace("mill", f"mill no. {number}")
    steps = (
        event("MessageSent", True, text="Could you move lunch to a quieter place?"),
        event("ActionTaken", False, name="search", arguments={"what": "lunch", "day": 2}),
        event("ModelCalled", False, model="m", purpose="act", request="d", latency=0.4),
        event("SnapshotTaken", False, content=plan),
        event("MessageSent", False, text="I have moved it; please have a look at the plan."),
        event("MessageSent", True, text="That is still wrong, as I said before."),
        event("MessageSent", False, text="There is nothing else, I am afraid."),
        event("FeedbackGiven", True, thumbs="down"),
    )
    return steps[number % len(steps)]


class Server:
    """A server as a process, which can be killed and started again; None serves as the floor does."""

    def __init__(self, log: str, scorers: str | None) -> None:
        self.log = log
        self.scorers = scorers
        self.port = 0
        self.cpu = 0.0
        self.start()

    def start(self) -> None:
        """Starts it, on the same port as before."""
        command = [sys.executable, "-P", "-m"]
        if self.scorers is None:
            command += ["duolog.benchmarks.floors.http", self.log]
        else:
            command += ["duolog", "serve", "--log", self.log, "--port", str(self.port)]
            command += ["--scorers", self.scorers] if self.scorers else []
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r":(\d+) ", line)
        if found is None:
            sys.exit(line + self.process.stderr.read())
        self.port = int(found[1])
        self.cpu -= self._spent()  # starting does not count

    def _spent(self) -> float:
        """Seconds of processor time that the process has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def end(self, how: signal.Signals) -> None:
        """Ends it, and waits for that."""
        self.cpu += self._spent()
        self.process.send_signal(how)
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def memory(self) -> float:
        """Its memory, in MB."""
        return resident_memory(str(self.process.pid))


class Load(NamedTuple):
    """The load under way, and its outcome."""

    server: Server
    begun: float
    until: float
    posted: list[float]
    told: list[float]
    due: dict[tuple[str, str], float]
    acknowledged: Counter[str]
    failures: Counter[str]


async def converse(load: Load, number: int, gap: float, offset: float) -> None:
    """One client: conversation after conversation, an event each ``gap`` seconds."""
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    at = load.begun + offset
    count = int(PER_SESSION * offset / gap)  # so that not all end at once
    talk = 0
    while at < load.until:
        await anyio.sleep(max(0.0, at - time.perf_counter()))
        session, ident = f"talk-{number}-{talk}", f"e{count}"
        last = count >= PER_SESSION
        posted = (
            event("SessionClosed", True, reason="finished", by="human") if last else step(count)
        )
        body = json.dumps({"events": [posted | {"id": ident}]}).encode()
        head = f"{HEAD.format(session)}Content-Length: {len(body)}\r\n\r\n"
        load.due[session, ident] = at
        while True:
            try:
                if connection is None:
                    connection = await asyncio.open_connection("127.0.0.1", load.server.port)
                status = await post(*connection, head.encode() + body)
            except (OSError, EOFError):
                if connection is not None:
                    connection[1].close()
                connection = None
                load.failures["connection"] += 1
                await anyio.sleep(0.05)
                continue
            if status == 200:
                break
            load.failures[str(status)] += 1
            await anyio.sleep(0.05)
        load.posted.append(time.perf_counter() - at)
        load.acknowledged[session] += 1
        talk, count = (talk + 1, 0) if last else (talk, count + 1)
        at += gap
    if connection is not None:
        connection[1].close()


async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> int:
    """Makes a request, and gives its status."""
    writer.write(data)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    await reader.readexactly(int(length[1]) if length else 0)
    return int(head[9:12])


async def follow(load: Load) -> None:
    """Follows the stream, and resumes at its last position after a break."""
    last = "0"
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", load.server.port)
            ask = f"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {last}\r\n\r\n"
            writer.write(ask.encode())
            while line := await reader.readline():
                if line.startswith(b"id: "):
                    last = line[4:].decode().strip()
                elif line.startswith(b"data: "):
                    record = json.loads(line[6:])
                    due = load.due.pop((record["session"], record.get("id", "")), None)
                    if due is not None:
                        load.told.append(time.perf_counter() - due)
        except OSError:
            pass  # the server was killed; continue with the next one
        await anyio.sleep(0.05)


async def floor_cost(asked: argparse.Namespace, log: str, seconds: float) -> float:
    """CPU seconds of the bare server for an event of the same load."""
    server = Server(log, None)
    begun = time.perf_counter() + 0.5
    load = Load(server, begun, begun + seconds, [], [], {}, Counter(), Counter())
    gap = asked.sessions / asked.rate
    async with anyio.create_task_group() as clients:
        for number in range(asked.sessions):
            clients.start_soon(converse, load, number, gap, gap * number / asked.sessions)
    await anyio.to_thread.run_sync(server.end, signal.SIGTERM)
    return server.cpu / load.acknowledged.total()


async def run(asked: argparse.Namespace, log: str, seconds: float) -> tuple[bool, float]:
    """The load: whether all of it is in the log, once, and CPU seconds of the server for an event."""
    server = Server(log, asked.scorers)
    begun = time.perf_counter() + 0.5
    until = begun + seconds
    load = Load(server, begun, until, [], [], {}, Counter(), Counter())
    gap = asked.sessions / asked.rate
    memory: list[float] = []
    async with anyio.create_task_group() as followers:
        followers.start_soon(follow, load)
        async with anyio.create_task_group() as clients:
            for number in range(asked.sessions):
                clients.start_soon(converse, load, number, gap, gap * number / asked.sessions)
            kills = [begun + seconds * n / (asked.kills + 1) for n in range(1, asked.kills + 1)]
            while (now := time.perf_counter()) < until:
                if now > begun + 1:
                    memory.append(server.memory())
                if kills and now >= kills[0]:
                    kills.pop(0)
                    await anyio.to_thread.run_sync(server.end, signal.SIGKILL)
                    await anyio.to_thread.run_sync(server.start)
                await anyio.sleep(0.5)
        with anyio.move_on_after(5):
            while load.due:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        followers.cancel_scope.cancel()
    took = time.perf_counter() - begun
    await anyio.to_thread.run_sync(server.end, signal.SIGTERM)
    sent = load.acknowledged.total()
    print(f"{sent} events in {took:.1f} s, {sent / took:.0f} a second, {asked.sessions} sessions")
    shares = f"the server {server.cpu / took:.0%}, the clients {time.process_time() / took:.0%}"
    print(f"of a core, {shares}; tried again: {dict(load.failures)}")
    print(f"posted (median, 99 %, most)  {quantiles(load.posted)}")
    print(f"told (median, 99 %, most)    {quantiles(load.told)}")
    print(f"memory: {memory[0]:.0f}, {memory[len(memory) // 2]:.0f}, {memory[-1]:.0f} MB")
    return await check(log, load), server.cpu / sent


async def check(where: str, load: Load) -> bool:
    """Compares the acknowledged events with the log."""
    seen: Counter[tuple[str, str]] = Counter()
    scored = 0
    async with open_log(where, create=False) as log:
        async for record in log.read_all():
            scored += record.stream != "trace"
            if record.stream == "trace" and OURS.fullmatch(record.caller_id or ""):
                seen[record.session, record.caller_id or ""] += 1
    doubled = sum(count - 1 for count in seen.values())
    lost = load.acknowledged.total() - len(seen)
    print(f"in the log: {len(seen)} events, {scored} measurements; lost {lost}, doubled {doubled}")
    print(f"not told by the stream: {len(load.due)}")
    return not (lost or doubled or load.due)


def quantiles(spent: list[float]) -> str:
    """Median, 99th percentile and maximum."""
    ordered = sorted(spent)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    median = statistics.median(ordered)
    return f"{1e3 * median:8.2f} {1e3 * p99:8.2f} {1e3 * ordered[-1]:8.2f}  ms ({len(ordered)})"


def measure(asked: argparse.Namespace, folder: str) -> tuple[bool, Row]:
    """The load again and again, in turn with the floor's."""
    ours, bare, good = [], [], True
    seconds = asked.seconds / asked.repeat / (3 if asked.quick else 1)
    for turn in range(asked.repeat):
        ok, mine = anyio.run(run, asked, f"{folder}/http-{turn}.db", seconds)
        ours.append(mine)
        bare.append(anyio.run(floor_cost, asked, f"{folder}/bare-{turn}.db", seconds))
        good = good and ok
    mine, least = statistics.median(ours), statistics.median(bare)
    return good, compare(
        f"HTTP, posts of one event at {asked.rate:,}/s : bare server",
        ours,
        bare,
        better="lower",
        goal=40.0 * asked.rate / 1000,
        value=100 * mine * asked.rate,
        unit="%",
        about=f"{1e6 * mine:.0f} of {1e6 * least:.0f} us CPU an event; % of a core",
    )


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0, help="in all, all ours")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--scorers", default="rule-judge,retention")
    add_arguments(parser)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ok, row = measure(asked, folder)
    write_rows(asked.rows, [row])
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
