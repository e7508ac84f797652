"""Imports long files of three formats, stage by stage, against the least that it could cost.

python -P benchmarks/imports.py [--megabytes 20] [--only claude-code]

A session of Claude Code and one of Codex have as many messages as fit; a file of chats has six on each
line, a session each. The floor decodes each line once with msgspec into plain objects, and inserts it
into a table of SQLite, all in one transaction. Each stage holds the ones above it; the last one reads
the file through before it takes anything, as the command line does. Printed are megabytes and messages
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
from duolog.interop.importers.chat import ChatImporter
from duolog.interop.importers.claude_code.sessions import ClaudeCodeImporter
from duolog.interop.importers.codex import CodexImporter
from duolog.interop.importers.protocol import Importer, Reading
from duolog.interop.importers.run import import_foreign

RUNS = 5
STAMP = "2026-01-01T10:00:00.000Z"
NUMBERS = count()
TEXT = "Some words of a person, or of an agent, about the code at hand. " * 8
RESULT = "    12\tdef found(self) -> None:\n" * 60


def main() -> None:
    """Measures each format."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--only", choices=tuple(FORMATS))
    options = parser.parse_args()
    for name in [options.only] if options.only else FORMATS:
        with tempfile.TemporaryDirectory() as directory:
            measure(name, options.megabytes * 1_000_000, Path(directory))


def measure(name: str, size: int, directory: Path) -> None:
    """Writes a file, and times each part of the way over it."""
    importer, turn = FORMATS[name]
    source = directory / "session.jsonl"
    messages = write(source, size, turn)
    ways: dict[str, Callable[[], object]] = {
        "decode each line": lambda: decode(source),
        "decode and insert": lambda: insert(source, directory),
        "read by the importer": lambda: sum(1 for _ in importer.read(source, Reading())),
        "import into memory": lambda: anyio.run(take, importer, source, "memory://", False),
        "import into a file": lambda: anyio.run(take, importer, source, new_file(directory), False),
        "the same, looked at first": lambda: anyio.run(
            take, importer, source, new_file(directory), True
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(RUNS):
        for way, run in ways.items():
            began = time.process_time()
            run()
            seconds[way].append(time.process_time() - began)
    written = source.stat().st_size / 1e6
    floor = statistics.median(seconds["decode and insert"])
    print(f"{name}, {written:.0f} MB, {messages:,} messages")
    for way, taken in seconds.items():
        median = statistics.median(taken)
        print(
            f"  {way:26} {written / median:8.1f} MB/s {messages / median:10,.0f} messages/s"
            f"  {floor / median:5.2f} of the floor"
        )


def write(path: Path, size: int, turn: Callable[[int], Iterator[tuple[int, object]]]) -> int:
    """Writes a file of about this size in bytes; gives the number of its messages."""
    number = 0
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < size:
            for messages, line in turn(number):
                file.write(json.dumps(line) + "\n")
                number += messages
    return number


def claude_code(first: int) -> Iterator[tuple[int, object]]:
    """A turn of Claude Code; each line is a message."""
    for line in turn(first):
        yield 1, line


def chats(first: int) -> Iterator[tuple[int, object]]:
    """A conversation of six messages on a line, as data sets have them."""
    said = [{"role": role, "content": TEXT} for role in ("user", "assistant") * 3]
    yield 6, {"id": f"chat{first}", "model": "m", "messages": said}


def codex(first: int) -> Iterator[tuple[int, object]]:
    """A turn of Codex: a question, three calls with their results, and an answer."""

    def item(kind: str, **held: object) -> tuple[int, object]:
        payload = {"type": kind, **held}
        return 1, {"timestamp": STAMP, "type": "response_item", "payload": payload}

    def said(role: str, kind: str) -> tuple[int, object]:
        return item("message", role=role, content=[{"type": kind, "text": TEXT}])

    if not first:
        about = {"id": "s", "timestamp": STAMP, "cwd": "/work", "cli_version": "0.50.0"}
        yield 0, {"timestamp": STAMP, "type": "session_meta", "payload": about}
        yield 0, {"timestamp": STAMP, "type": "turn_context", "payload": {"model": "m"}}
    yield said("user", "input_text")
    for step in range(3):
        call = f"call{first}-{step}"
        yield item("function_call", name="shell", arguments='{"command":["cat"]}', call_id=call)
        yield item("function_call_output", call_id=call, output=RESULT)
    yield said("assistant", "output_text")


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
            "timestamp": STAMP,
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
        rows = ((n, decoder.decode(line).get("type"), line) for n, line in enumerate(lines))
        connection.executemany("INSERT INTO line VALUES (?, ?, ?)", rows)
        connection.commit()


def new_file(directory: Path) -> str:
    """The URL of a log that is not there yet."""
    return f"sqlite:///{directory}/{next(NUMBERS)}.db"


async def take(importer: Importer, source: Path, where: str, look_first: bool) -> None:
    """The whole import."""
    async with duolog.open(where) as log:
        await import_foreign(log, source, importer, look_first=look_first)


FORMATS: dict[str, tuple[Importer, Callable[[int], Iterator[tuple[int, object]]]]] = {
    "claude-code": (ClaudeCodeImporter(), claude_code),
    "codex": (CodexImporter(), codex),
    "chat": (ChatImporter(), chats),
}
"""By name: what reads it, and what gives the lines of a turn, each with its number of messages."""


if __name__ == "__main__":
    main()
