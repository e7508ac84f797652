"""``duolog score --follow``: its workers, how it shows them, and workers that are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import anyio
import msgspec
import pytest
from duolog.cli.following.metrics import metrics_text, parse_address
from duolog.cli.scoring import ScoreOptions
from duolog.engine.errors import InvalidInput
from duolog.engine.log.exchange.copying import copy_log
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE
from duolog.engine.scorers.driver import ScorerStatistics
from forked import run_forked

SCORERS = ("--scorers", "retention,rule-judge")

LOUD = """
from duolog import Score, SnapshotUtility

print("loud")

def made():
    return SnapshotUtility("loud", "1", lambda snapshot, opened: Score(0.5))
"""

Measured = dict[tuple[str, str], list[tuple[str, bytes | None]]]


def measured(where: str) -> Measured:
    """All records in a log outside traces, by session and stream."""

    async def read() -> Measured:
        found: Measured = {}
        async with open_log(where, create=False) as log:
            async for record in log.read_all():
                if record.stream != TRACE:
                    stream = found.setdefault((record.session, record.stream), [])
                    stream.append((record.id, record.body))
                    assert record.version == len(stream)
        return found

    return anyio.run(read)


def duolog(*arguments: str) -> None:
    done = run_forked(["-P", "-m", "duolog", *arguments], Path.cwd(), os.environ)
    assert done.returncode == 0, done.stderr


@contextmanager
def following(log: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-P", "-m", "duolog", "score", log, *SCORERS, "--follow", *arguments]
    process = subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)


def wait_until_measured(process: subprocess.Popen[str], workers: int) -> None:
    """Waits until so many workers see each other, and nothing waits."""
    assert process.stdout is not None
    for line in process.stdout:
        stand: dict[str, int] = json.loads(line)
        together = stand["workers"] == stand["processes"] == workers
        if together and stand["position"] and not stand["lag"]:
            return
    raise AssertionError("it has ended")


def in_one_go(log: str, tmp_path: Path) -> Measured:
    """What ``duolog score`` measures of the same sessions, undisturbed."""
    alone = f"{tmp_path}/alone.db"

    async def copy() -> None:
        async with open_log(log, create=False) as source, open_log(alone) as target:
            await copy_log(source, target)

    anyio.run(copy)
    duolog("score", alone, *SCORERS)
    return measured(alone)


@pytest.mark.slow
def test_workers_measure_what_comes_as_one_run_over_it_would(tmp_path: Path) -> None:
    log = f"{tmp_path}/log.db"
    duolog("run", "travel", "--agents", "auto", "--sessions", "2", "--log", log)
    with following(log, "--workers", "2", "--metrics", "0") as process:
        wait_until_measured(process, workers=2)
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(2)]
        assert "as it grows" in said[0]
        with urlopen(said[1].split()[-1], timeout=300) as answer:
            text = answer.read().decode()
        assert 'duolog_score_lag{worker="1"} 0\n' in text
    assert process.returncode == 0
    assert measured(log) == in_one_go(log, tmp_path)


@pytest.mark.slow
def test_what_a_scorer_prints_is_no_report_of_its_worker(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD, encoding="utf-8")
    log = f"{tmp_path}/log.db"
    anyio.run(_empty, log)
    options = ScoreOptions(log=log, scorers=(f"{tmp_path}/loud.py:made",))
    command = [sys.executable, "-P", "-m", "duolog.cli.following.worker"]
    ended = subprocess.run(
        [*command, msgspec.json.encode(options).decode()],
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )
    assert msgspec.json.Decoder(ScorerStatistics).decode_lines(ended.stdout)
    assert b"loud" in ended.stderr


async def _empty(log: str) -> None:
    async with open_log(log):
        pass


@pytest.mark.slow
def test_workers_end_quietly_where_who_started_them_is_killed(tmp_path: Path) -> None:
    log = f"{tmp_path}/log.db"
    duolog("run", "travel", "--agents", "auto", "--sessions", "1", "--log", log)
    with following(log, "--workers", "2") as process:
        wait_until_measured(process, workers=2)
        process.kill()
        _, errors = process.communicate(timeout=300)  # until the workers are gone, too
    assert "Traceback" not in errors


@pytest.mark.soak
@pytest.mark.timeout(3 * 3600)
def test_workers_of_two_machines_are_killed_and_nothing_is_lost_or_doubled(
    postgres: object, tmp_path: Path
) -> None:
    """Half-way one of the machines is lost as a whole, and another joins."""
    log: str = postgres.url(durability="normal")  # type: ignore[attr-defined]
    chance = random.Random(7)
    run = [sys.executable, "-P", "-m", "duolog", "run", "travel", "--sessions", "60", "--log", log]
    kills = 0
    joined: subprocess.Popen[str] | None = None
    with (
        subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running,
        ExitStack() as stack,
    ):
        one, other = [stack.enter_context(following(log, "--workers", "2")) for _ in range(2)]
        begun = time.monotonic()
        while (elapsed := time.monotonic() - begun) < 60:
            time.sleep(2)
            if elapsed > 30 and not joined:
                other.kill()
                other = joined = stack.enter_context(following(log, "--workers", "2"))
            found = subprocess.run(
                ["pgrep", "-P", str(chance.choice((one, other)).pid)],
                check=False,
                capture_output=True,
                text=True,
            ).stdout.split()
            if found:
                os.kill(int(chance.choice(found)), signal.SIGKILL)
                kills += 1
        assert running.wait(3600) == 0
        for process in (one, other):
            stand = {"lag": 1, "workers": 0}
            assert process.stdout is not None
            for line in process.stdout:
                stand = json.loads(line)
                if not stand["lag"] and stand["workers"] == 2 and stand["processes"] == 4:
                    break
    assert kills
    assert joined
    assert measured(log) == in_one_go(log, tmp_path)


def test_metrics_are_in_the_format_of_prometheus() -> None:
    stand = ScorerStatistics(
        position=90, lag=10, waiting=2, working=1, measured=500, held=16, processes=2
    )
    text = metrics_text({0: stand, 1: stand})
    assert "# TYPE duolog_score_measured_total counter\n" in text
    assert 'duolog_score_measured_total{worker="0"} 500\n' in text
    assert 'duolog_score_lag{worker="1"} 10\n' in text
    assert text.endswith("\n")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9100", ("127.0.0.1", 9100)),
        ("0.0.0.0:9100", ("0.0.0.0", 9100)),
        ("[::1]:0", ("::1", 0)),
    ],
)
def test_an_address_is_a_port_or_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "host", "1:99999"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="HOST:PORT"):
        parse_address(text)
