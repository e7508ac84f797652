"""Tries a fleet of workers in somebody's product: an outage of the database, kills, and a restart.

    python -P -m duolog.benchmarks.fleet [--seconds 30] [--workers 2]

Workers record chats in one log on PostgreSQL, and watch it together. Meanwhile the server is stopped and
started again, each worker is killed (once of them while the server is away), and another one takes its
place. Reports

- what was lost: events that a worker had handed over, against those in the log. An event that was handed
  over in the last second before a kill may be in the memory of that worker alone, and is counted apart;
- what was decided twice: advice to stop that reached a second handler, beyond those that were being
  handled at a kill;
- the latency that recording added to a request of three events: p50, p99 and the worst.

Exits with 1 if something was lost or decided twice.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import anyio
import duolog
from duolog.benchmarks.measuring import quantile
from duolog.engine.events import RecordsLate, RecordsLost
from duolog.engine.log.open import open_log
from duolog.scoring.trajectory.updates import StopAdvice
from duolog.telemetry.spill import Spill
from duolog.testing.postgres_server import missing, running_postgres

__all__ = ()

_CHATS = 20  # at a time, of each worker
_TURNS = 8  # in each
_PAUSE = 0.02  # seconds between requests of a worker


async def _work(url: str, place: Path, name: str) -> None:
    """A worker: records chats until it is killed or told to end."""
    ends = place / "end"

    def line(file: str, text: str) -> None:
        descriptor = os.open(place / f"{file}-{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{text}\n".encode())
        os.close(descriptor)

    def on_stop(advice: StopAdvice) -> None:
        line("stops", f"{advice.session} {advice.round} {advice.tau} {time.time()}")

    log = duolog.open(url, spill=Spill(directory=place / "spill"), deadline=20.0)
    async with log:
        log.watch(
            scorers=[duolog.rule_judge()], options=duolog.Options(taus=(2,)), on_stop=on_stop
        ).start()
        number = 0
        while not ends.exists():
            chat, turn = number // (_CHATS * _TURNS) * _CHATS + number % _CHATS, number // _CHATS
            begun = time.perf_counter()
            session = await log.session(f"{name}-{chat}", task="support", agent="v7")
            mark = f"{number}"
            await session.human.says(f"That is still wrong. ({turn})", id=f"{mark}/h")
            await session.agent.acts("look", result="nothing", id=f"{mark}/t")
            await session.agent.says("Please wait.", id=f"{mark}/a")
            took = time.perf_counter() - begun
            line("handed", f"{session.id} {mark} {time.time()} {took}")
            number += 1
            await anyio.sleep(_PAUSE)
        statistics = log.recorder.statistics()
    line("ended", f"{statistics.late} {sum(part.events - part.spilled for part in log.unwritten)}")


def _pause(seconds: float) -> None:
    anyio.run(anyio.sleep, seconds)


def _start(url: str, place: Path, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "duolog.benchmarks.fleet", "--worker", name]
    errors = (place / f"errors-{name}").open("wb")
    return subprocess.Popen([*command, "--log", url, "--place", str(place)], stderr=errors)


def _read(place: Path, kind: str) -> list[list[str]]:
    return [
        line.split()
        for path in sorted(place.glob(f"{kind}-*"))
        for line in path.read_text().splitlines()
    ]


async def _held(url: str) -> tuple[set[str], int, int, Counter[tuple[str, int]]]:
    """Ids in the log, and how many events it says are lost and late; advice acknowledged."""
    ids: set[str] = set()
    lost = late = 0
    acknowledged: Counter[tuple[str, int]] = Counter()
    async with open_log(url) as log:
        async for record in log.read_all():
            event = record.event
            if record.caller_id is not None:
                ids.add(f"{record.session} {record.caller_id}")
            if isinstance(event, RecordsLost):
                lost += event.count
            elif isinstance(event, RecordsLate):
                late += event.last - event.first + 1
            elif record.kind == "StopAdvised":
                acknowledged[record.session, record.position] += 1
    return ids, lost, late, acknowledged


def _measure(seconds: float, workers: int) -> bool:
    with tempfile.TemporaryDirectory() as directory, running_postgres(durable=False) as server:
        place, url = Path(directory), server.url(schema="fleet")
        running = {f"w{n}": _start(url, place, f"w{n}") for n in range(workers)}
        step, kills = seconds / (workers + 3), []
        _pause(step)
        server.stop("immediate")
        _pause(step / 2)
        for number, name in enumerate(list(running)):
            if number:  # the first is killed while the server is away
                _pause(step)
            running[name].send_signal(signal.SIGKILL)
            running.pop(name).wait()
            kills.append(time.time())
            running[f"{name}b"] = _start(url, place, f"{name}b")  # starts during the outage, too
            if not number:
                _pause(step / 2)
                server.start()
        _pause(2 * step)
        (place / "end").touch()
        codes = [process.wait(timeout=60) for process in running.values()]
        ids, lost, late, acknowledged = anyio.run(_held, url)
        handed = _read(place, "handed")
        took = sorted(float(one[3]) * 1e3 for one in handed)
        missed = [
            (float(one[2]), f"{one[0]} {one[1]}/{part}")
            for one in handed
            for part in "hta"
            if f"{one[0]} {one[1]}/{part}" not in ids
        ]
        in_flight = [at for at, _ in missed if any(0 <= kill - at < 1 for kill in kills)]
        stops = Counter(" ".join(one[:3]) for one in _read(place, "stops"))
        twice = [key for key, count in stops.items() if count > 1]
        at_kills = [
            one
            for one in _read(place, "stops")
            if " ".join(one[:3]) in twice and any(abs(k - float(one[3])) < 8 for k in kills)
        ]
        left = list((place / "spill").glob("*.spill"))
        print(f"requests: {len(handed):,} of 3 events; exit codes {codes}")
        print(
            f"lost: {len(missed) - len(in_flight)} ({lost} marked); in memory at a kill: "
            f"{len(in_flight)}; late: {late}; spill files left: {len(left)}"
        )
        print(
            f"advice: {len(stops)} handled, {len(acknowledged)} acknowledged, {len(twice)} twice "
            f"({len(at_kills) // 2} of them around a kill)"
        )
        print(
            f"added to a request: p50 {quantile(took, 0.5):.3f} ms, p99 {quantile(took, 0.99):.3f} "
            f"ms, worst {took[-1]:.0f} ms"
        )
        for path in sorted(place.glob("errors-*")):
            if "Traceback" in (text := path.read_text()):
                print(f"{path.name}: {text[-2000:]}")
        unexplained = len(missed) - len(in_flight) > lost
        return not (unexplained or len(twice) > len(at_kills) // 2 or any(codes))


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
