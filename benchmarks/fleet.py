"""Tries a fleet of workers in a product: an outage, kills, a full disk, and a deploy of a newer version.

    python -P -m duolog.benchmarks.fleet [--seconds 30] [--workers 2]

Workers record chats in one log on PostgreSQL, and watch it together. Meanwhile the server is stopped and
started again; each worker is killed (the first while the server is away), and another one takes its
place; the server is stopped once more while a worker's disk is full; and the layout of the log is raised,
as a newer version of Duolog would, until the workers have been replaced. Reports

- what was lost: events that a worker had handed over, against those in the log, and whether their
  session says so (``RecordsLost``);
- what was decided twice: advice to stop that reached a second handler, and whether that handler was told
  so (``redelivered``), as after a kill between handler and acknowledgement;
- the latency that recording added to a request of three events: p50, p99 and the worst, and the same of
  requests while the server was away.

Exits with 1 if something was lost without a mark, or handed over again without a kill or without saying so.
"""

from __future__ import annotations

import argparse
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
import duolog
from duolog.benchmarks.measuring import quantile
from duolog.engine.events import RecordsLate, RecordsLost
from duolog.engine.log.open import open_log
from duolog.scoring.trajectory.updates import StopAdvice
from duolog.telemetry.spill import Spill
from duolog.testing.postgres_server import PostgresServer, missing, running_postgres

__all__ = ()

_CHATS = 20  # at a time, of each worker
_TURNS = 8  # in each
_PAUSE = 0.02  # seconds between requests of a worker
_SMALL = "small"  # the worker whose disk is full
_DISK = 65_536  # bytes of a file on it
_ROOM = 150  # events for which it has room in memory
_AROUND = 30.0  # after a kill, an end or an outage: advice may come again


async def _work(url: str, place: Path, name: str) -> None:
    """A worker: records chats until it is killed or told to end."""
    ends = (place / "end", place / f"end-{name}")
    small = name.startswith(_SMALL)
    if small:  # its disk is full after some events
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (_DISK, resource.RLIM_INFINITY))

    def line(file: str, text: str) -> None:
        # Not into a file, because the limit on files would hit it: the test is not about these notes.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.sendto(f"{file} {text}".encode(), str(place / "notes"))

    def on_stop(advice: StopAdvice) -> None:
        line(
            "stops",
            f"{advice.session} {advice.round} {advice.tau} {time.time()} {int(advice.redelivered)}",
        )

    spill = Spill(directory=place / (f"spill-{name}" if small else "spill"))
    log = duolog.open(url, spill=spill, deadline=20.0, room=_ROOM if small else 10_000)
    async with log:
        log.watch(
            scorers=[duolog.rule_judge()], options=duolog.Options(taus=(2,)), on_stop=on_stop
        ).start()
        number = 0
        while not any(end.exists() for end in ends):
            chat, turn = number // (_CHATS * _TURNS) * _CHATS + number % _CHATS, number // _CHATS
            begun = time.perf_counter()
            session = await log.session(f"{name}-{chat}", task="support", agent="v7", output=None)
            mark = f"{number}"
            await session.human.says(f"That is still wrong. ({turn})", id=f"{mark}/h")
            await session.agent.acts("look", result="nothing", id=f"{mark}/t")
            await session.agent.says("Please wait.", id=f"{mark}/a")
            took = time.perf_counter() - begun
            line("handed", f"{session.id} {mark} {time.time()} {took}")
            number += 1
            await anyio.sleep(_PAUSE)


def _pause(seconds: float) -> None:
    anyio.run(anyio.sleep, seconds)


def _start(url: str, place: Path, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "duolog.benchmarks.fleet", "--worker", name]
    errors = (place / f"errors-{name}").open("wb")
    return subprocess.Popen([*command, "--log", url, "--place", str(place)], stderr=errors)


class _Notes:
    """The workers' notes, over a socket: a kill or a full disk could cut off a file.

    Args:
        place: where the socket is.
    """

    def __init__(self, place: Path) -> None:
        self._lines: list[list[str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._socket.bind(str(place / "notes"))
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            self._lines.append(self._socket.recv(4096).decode().split())

    def of(self, kind: str) -> list[list[str]]:
        """The notes of a kind."""
        return [one[1:] for one in self._lines if one[0] == kind]


class _Held(NamedTuple):
    """The contents of the log in the end.

    Attributes:
        ids: sessions and callers' ids of events.
        lost: events that are marked as lost, by session.
        late: events that came late.
        acknowledged: advice to stop.
    """

    ids: set[str]
    lost: Counter[str]
    late: int
    acknowledged: int


async def _held(url: str) -> _Held:
    ids: set[str] = set()
    lost: Counter[str] = Counter()
    late = acknowledged = 0
    async with open_log(url) as log:
        async for record in log.read_all():
            event = record.event
            if record.caller_id is not None:
                ids.add(f"{record.session} {record.caller_id}")
            if isinstance(event, RecordsLost):
                lost[record.session] += event.count
            elif isinstance(event, RecordsLate):
                late += event.last - event.first + 1
            elif record.kind == "StopAdvised":
                acknowledged += 1
    return _Held(ids, lost, late, acknowledged)


async def _set_layout(url: str, change: int) -> None:
    """Raises the layout of the log, as a newer version would, or lowers it again."""
    import asyncpg

    dsn = url.partition("?")[0]
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            f"UPDATE fleet.log SET layout = layout + {int(change)}, epoch = epoch + 1"
        )
    finally:
        await connection.close()


class _Fleet:
    """The workers that run, and when something was done to them or the server.

    Args:
        url: the URL of the log.
        place: for what they share.
    """

    def __init__(self, url: str, place: Path) -> None:
        self._url = url
        self._place = place
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.codes: list[int] = []
        self.kills: list[float] = []
        self.ends: list[float] = []
        self.taken_over: list[float] = []
        self.outages: list[tuple[float, float]] = []

    def start(self, name: str) -> None:
        """Starts a worker."""
        self.running[name] = _start(self._url, self._place, name)

    def kill(self, name: str) -> None:
        """Kills a worker."""
        self.running[name].send_signal(signal.SIGKILL)
        self.running.pop(name).wait()
        self.kills.append(time.time())

    def end(self, *names: str) -> None:
        """Has workers end, as a deploy does."""
        for name in names:
            (self._place / f"end-{name}").touch()
        self.codes += [self.running.pop(name).wait(timeout=90) for name in names]
        self.ends.append(time.time())

    @contextmanager
    def outage(self, server: PostgresServer) -> Iterator[None]:
        """The server is away."""
        server.stop("immediate")
        begun = time.time()
        yield
        self.outages.append((begun, time.time()))
        server.start()


def _run(fleet: _Fleet, server: PostgresServer, url: str, step: float, workers: int) -> None:
    """What happens to the fleet."""
    names = [f"w{n}" for n in range(workers)]
    for name in names:
        fleet.start(name)
    _pause(2 * step)
    with fleet.outage(server):
        _pause(step / 2)
        fleet.kill(names[0])
        fleet.start(f"{names[0]}b")
        _pause(step / 2)
    _pause(step)
    for name in names[1:]:
        fleet.kill(name)
        fleet.start(f"{name}b")
        _pause(step / 2)
    fleet.start(_SMALL)
    _pause(step)
    with fleet.outage(server):
        _pause(1.5 * step)
    _pause(step)
    fleet.end(_SMALL)
    anyio.run(_set_layout, url, 1)  # from here on, these workers are of an older version
    fleet.taken_over.append(time.time())
    _pause(step)
    fleet.end(*fleet.running)
    anyio.run(_set_layout, url, -1)
    for name in names:
        fleet.start(f"{name}c")
    _pause(2 * step)
    fleet.end(*fleet.running)


def _measure(seconds: float, workers: int) -> bool:
    with tempfile.TemporaryDirectory() as directory, running_postgres(durable=False) as server:
        place, url = Path(directory), server.url(schema="fleet")
        notes, fleet = _Notes(place), _Fleet(url, place)
        _run(fleet, server, url, seconds / 11, workers)
        held = anyio.run(_held, url)
        return _report(place, notes, fleet, held)


def _report(place: Path, notes: _Notes, fleet: _Fleet, held: _Held) -> bool:
    handed = notes.of("handed")
    missing_of: Counter[str] = Counter()
    for session, mark, *_ in handed:
        for part, events in (("h", 1), ("t", 2), ("a", 1)):
            if f"{session} {mark}/{part}" not in held.ids:
                missing_of[session] += events
    unmarked = missing_of - held.lost
    advice = notes.of("stops")
    stops = Counter(" ".join(one[:3]) for one in advice)
    twice = {key for key, count in stops.items() if count > 1}
    firsts = Counter(" ".join(one[:3]) for one in advice if one[4] == "0")
    untold = {key for key, count in firsts.items() if count > 1}
    moments = (*fleet.kills, *fleet.ends, *fleet.taken_over, *(end for _, end in fleet.outages))
    idle = {  # nothing was done to a worker that could have handed it over before
        " ".join(one[:3])
        for one in advice
        if one[4] == "1" and not any(0 < float(one[3]) - k < _AROUND for k in moments)
    }
    left = [one for one in place.glob("spill*/*") if one.suffix in (".spill", ".tally")]
    print(f"requests: {len(handed):,} of 3 events; exit codes {fleet.codes}")
    print(
        f"lost: {missing_of.total()} events, {unmarked.total()} of them without a mark "
        f"({held.lost.total()} marked); late: {held.late}; spill files left: {len(left)}"
    )
    print(
        f"advice: {len(stops)} handled, {held.acknowledged} acknowledged, {len(twice)} twice, "
        f"{len(untold)} of them without saying so; redelivered: "
        f"{sum(one[4] == '1' for one in advice)}, {len(idle)} of them for no reason"
    )
    away = [
        float(one[3]) * 1e3
        for one in handed
        if any(begun <= float(one[2]) <= end for begun, end in fleet.outages)
    ]
    if unmarked:
        print("without a mark: " + ", ".join(f"{s} {n}" for s, n in sorted(unmarked.items())))
    for what, took in (("", [float(one[3]) * 1e3 for one in handed]), (" while away", away)):
        print(
            f"added to a request{what}: p50 {quantile(took, 0.5):.2f} ms, "
            f"p99 {quantile(took, 0.99):.1f} ms, worst {max(took, default=0.0):.0f} ms"
        )
    for path in sorted(place.glob("errors-*")):
        if "Traceback" in (text := path.read_text()):
            print(f"{path.name}: {text[-2000:]}")
    return not (unmarked or untold or idle or any(fleet.codes))


def main() -> int:
    """Runs the fleet, or one of its workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--log", help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        anyio.run(_work, given.log, Path(given.place), given.worker)
        return 0
    if why := missing():
        sys.stderr.write(f"{why}\n")
        return 2
    return 0 if _measure(given.seconds, given.workers) else 1


if __name__ == "__main__":
    sys.exit(main())
