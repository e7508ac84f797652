"""Imports a long session file of Claude Code, stage by stage, beside the least that it could cost.

python -P benchmarks/imports.py [--megabytes 20]

The floor decodes each line once with msgspec into plain objects, and inserts it into a table of
SQLite, all in one transaction. Each stage holds the ones above it. Printed are megabytes and messages
per CPU second, and the ratio to the floor, medians of five runs, alternately.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import anyio
import duolog
import msgspec
from duolog.interop.importers.claude_code.entries import Envelope, envelopes_in
from duolog.interop.importers.claude_code.importer import ClaudeCodeImporter
from duolog.interop.importers.claude_code.tree import EntryTree
from duolog.interop.importers.protocol import Reading
from duolog.interop.importers.run import import_foreign

RUNS = 5
NUMBERS = count()
TEXT = "Some words of a person, or of an agent, about the code at hand. " * 8
RESULT = "    12\tdef found(self) -> None:\n" * 60


def main() -> None:
    """Writes a file, and times each part of the way over it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=20)
    size = parser.parse_args().megabytes * 1_000_000
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "session.jsonl"
        messages = write(source, size)
        ways: dict[str, Callable[[], object]] = {
            "decode each line": lambda: decode(source),
            "decode and insert": lambda: insert(source, Path(directory)),
            "lines and their tree": lambda: len(EntryTree(entries_in(source)).main),
            "read by the importer": lambda: sum(
                1 for _ in ClaudeCodeImporter().read(source, Reading())
            ),
            "import into memory": lambda: anyio.run(take, source, "memory://"),
            "import into a file": lambda: anyio.run(take, source, new_file(Path(directory))),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(RUNS):
            for name, way in ways.items():
                began = time.process_time()
                way()
                seconds[name].append(time.process_time() - began)
        written = source.stat().st_size / 1e6
    floor = statistics.median(seconds["decode and insert"])
    for name, taken in seconds.items():
        median = statistics.median(taken)
        print(
            f"{name:22} {written / median:8.1f} MB/s {messages / median:10,.0f} messages/s"
            f"  {floor / median:5.2f} of the floor"
        )


def write(path: Path, size: int) -> int:
    """Writes a session of about this size in bytes; gives the number of its messages."""
    number = 0
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < size:
            for line in turn(number):
                file.write(json.dumps(line) + "\n")
                number += 1
    return number


def turn(first: int) -> Iterator[dict[str, object]]:
    """A question, three calls with their results, and an answer."""

    def line(number: int, kind: str, content: object, **more: object) -> dict[str, object]:
        message: dict[str, object] = {"role": kind, "content": content}
        if kind == "assistant":
            usage = {"input_tokens": 3, "output_tokens": 9, "cache_read_input_tokens": 900}
            message |= {"id": f"msg{number}", "model": "m", "usage": usage}
        return {
            "parentUuid": f"u{number - 1}" if number else None,
            "isSidechain": False,
            "cwd": "/work",
            "sessionId": "s",
            "version": "2.0.0",
            "type": kind,
            "message": message,
            "uuid": f"u{number}",
            "timestamp": "2026-01-01T10:00:00.000Z",
            **more,
        }

    yield line(first, "user", TEXT)
    for step in range(3):
        at, call = first + 1 + 2 * step, f"call{first}-{step}"
        used = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": "/a.py"}}
        yield line(at, "assistant", [{"type": "text", "text": "I look."}, used])
        found = {"type": "tool_result", "tool_use_id": call, "content": RESULT}
        yield line(at + 1, "user", [found], toolUseResult={"type": "text"})
    yield line(first + 7, "assistant", [{"type": "text", "text": TEXT}])


def decode(source: Path) -> int:
    """Every line, decoded once."""
    decoder = msgspec.json.Decoder()
    with source.open("rb") as file:
        return sum(1 for line in file if decoder.decode(line))


def insert(source: Path, directory: Path) -> None:
    """The floor: every line, decoded once, in a table."""
    decoder = msgspec.json.Decoder()
    file = new_file(directory).removeprefix("sqlite:///")
    with source.open("rb") as lines, closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE line (number INTEGER PRIMARY KEY, type TEXT, body BLOB)")
        rows = ((n, decoder.decode(line)["type"], line) for n, line in enumerate(lines))
        connection.executemany("INSERT INTO line VALUES (?, ?, ?)", rows)
        connection.commit()


def entries_in(source: Path) -> list[Envelope]:
    """What the importer keeps of every line."""
    return [one for one in envelopes_in(source) if isinstance(one, Envelope)]


def new_file(directory: Path) -> str:
    """The URL of a log that is not there yet."""
    return f"sqlite:///{directory}/{next(NUMBERS)}.db"


async def take(source: Path, where: str) -> None:
    """The whole import."""
    async with duolog.open(where) as log:
        await import_foreign(log, source, ClaudeCodeImporter(), look_first=False)


if __name__ == "__main__":
    main()
