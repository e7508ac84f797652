"""Measures a report on tables of very many sessions, which a generator makes up.

python -P -m duolog.benchmarks.tables [--sessions 1000000] [--resamples 200] [--directory DIR]

The report runs in a process of its own, whose peak memory is read when it is over. Beside it stands the
least that reading the same columns can cost: DuckDB sums them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from duolog.scoring.metrics.process import PROCESS_MEASURES
from duolog.scoring.tables.layout import Manifest, Part, folder_of, save_manifest, view_of
from duolog.scoring.tables.rows import COLUMNS
from duolog.scoring.trajectory.effort import MEASURES
from duolog.scoring.trajectory.options import Options

_SESSIONS = """
SELECT range AS key, 's' || range AS session,
    ['finished', 'finished', 'finished', 'abandoned'][(1 + hash(range, 1) % 4)::BIGINT] AS state,
    MAP {{'agent': ['one-stage', 'two-stage', 'adaptive'][1 + range % 3], 'task': 'travel'}} AS labels,
    'i' || range % 1000 AS instance, 0::BIGINT AS seed, 'travel@1' AS scorer, ['rule-judge@1'] AS judges,
    false AS baseline, true AS evaluated, false AS silent, false AS estimated,
    (100 + hash(range, 2) % 20000)::BIGINT AS agent_tokens,
    (10 + hash(range, 3) % 5000)::BIGINT AS human_tokens,
    NULL::DOUBLE AS final, false AS final_missing, NULL::VARCHAR AS forked_from,
    NULL::BIGINT AS forked_at, MAP {{}}::MAP(VARCHAR, BIGINT) AS faults,
    (1 + hash(range, 4) % 11)::BIGINT AS rounds, {process}, {effort}
FROM range({sessions})
"""

_ROUNDS = """
SELECT key, session, number::INTEGER AS round,
    if(number = 1, 'initial', 'refinement') AS stage, false AS closing,
    hash(key, number, 1) % 10 < 6 AS updated,
    if(hash(key, number, 1) % 10 < 6, hash(key, number, 2) % 49 / 48, NULL) AS value,
    hash(key, number, 2) % 49 / 48 AS utility, false AS stale,
    if(hash(key, number, 3) % 10 = 0, NULL, 1 + hash(key, number, 3) % 5)::TINYINT AS rating,
    false AS pending, {effort}
FROM (SELECT key, session, rounds FROM sessions), unnest(range(1, rounds + 1)) AS _(number)
ORDER BY key, number
"""


def generate(directory: Path, sessions: int) -> None:
    """Writes a directory of tables: three agents, 1 to 11 rounds a session, 6 on average."""
    import duckdb

    connection = duckdb.connect()
    process = ", ".join(
        f"(hash(range, 5, {at}) % 7)::{'DOUBLE' if 'entropy' in name else 'BIGINT'} AS process_{name}"
        for at, name in enumerate(PROCESS_MEASURES)
    )
    ends = ", ".join(
        f"(hash(range, 6, {at}) % 900)::DOUBLE AS effort_{name}" for at, name in enumerate(MEASURES)
    )
    so_far = ", ".join(
        f"(number * (hash(key, 6, {at}) % 80))::DOUBLE AS effort_{name}"
        for at, name in enumerate(MEASURES)
    )
    view = view_of(Options())
    connection.execute(
        f"CREATE TABLE sessions AS {_SESSIONS.format(process=process, effort=ends, sessions=sessions)}"
    )
    parts = []
    for table, query in (
        ("sessions", "SELECT * FROM sessions"),
        ("rounds", _ROUNDS.format(effort=so_far)),
    ):
        path = f"{folder_of(view, table, 'travel@1')}/part-1.parquet"
        (directory / path).parent.mkdir(parents=True)
        connection.execute(
            f"COPY ({query}) TO '{directory / path}' (COMPRESSION zstd, ROW_GROUP_SIZE 65536)"
        )
        (found,) = connection.execute(f"SELECT count(*) FROM '{directory / path}'").fetchall()
        part = Part(path=path, rows=found[0], sessions=sessions, first=0, last=sessions - 1)
        parts.append(part)
    view = msgspec.structs.replace(view, columns=COLUMNS, position=1, parts=tuple(parts))
    save_manifest(directory, Manifest(log="made up", number=1, views=(view,)))


def _floor(directory: Path) -> tuple[float, float]:
    """Seconds by the wall and of the processor to read the columns that a table needs."""
    import duckdb

    wall, cpu = time.perf_counter(), time.process_time()
    duckdb.connect().execute(
        "SELECT sum(key), sum(utility), count(value), sum(rating), count_if(updated), count_if(stale), "
        f"count_if(pending), count_if(closing) FROM '{directory}/rounds/**/*.parquet'"
    ).fetchall()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_000_000)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--directory", type=Path, help="keep the tables here, and use them again")
    parser.add_argument("--json", action="store_true", help="all numbers, with all intervals")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = asked.directory or Path(temporary) / "tables"
        if not directory.exists():
            # In a process of its own: a child's peak memory begins with its parent's.
            maker = multiprocessing.get_context("spawn").Process(
                target=generate, args=(directory, asked.sessions)
            )
            maker.start()
            maker.join()
        size = sum(path.stat().st_size for path in directory.rglob("*.parquet")) / 1e6
        print(
            f"{asked.sessions:,} sessions, {size:.0f} MB of Parquet, load {os.getloadavg()[0]:.1f}"
        )
        wall, cpu = _floor(directory)
        print(f"reading the columns of rounds   {wall:6.2f} s, {cpu:6.2f} s of CPU")
        command = [sys.executable, "-P", "-m", "duolog", "report", str(directory)]
        command += ["--bootstrap", str(asked.resamples), *(["--json"] if asked.json else [])]
        begun = time.perf_counter()
        out = subprocess.DEVNULL if asked.json else None
        process = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        spent = time.perf_counter() - begun
        if status:
            sys.exit("the report failed")
        print(
            f"report, {asked.resamples} resamples       {spent:6.2f} s, "
            f"{used.ru_utime + used.ru_stime:6.2f} s of CPU, {used.ru_maxrss / 1024:.0f} MB at most"
        )


if __name__ == "__main__":
    main()
