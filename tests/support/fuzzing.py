"""Throws inputs that are made up at every importer and endpoint, in a process with little memory.

``python fuzzing.py SEED RUNS`` is that process. An input passes if it is read, or refused with an
error of Duolog. Anything else ends the process, with the seed of the input that did it.
"""

from __future__ import annotations

import json
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

__all__ = ("HANGS", "MEMORY", "fuzz")

MEMORY: Final = 3 * 2**29
"""Bytes of addresses that the process may have. The inputs have at most a few hundred kB."""

HANGS: Final = 120
"""Seconds after which an input counts as one that never ends."""

KEYS: Final = (
    "id type role content text messages message uuid parentUuid sessionId timestamp name kind actor body "
    "events event payload item response_item session_meta steps trajectory history action observation "
    "thought query info model usage input output tool_calls function arguments tool_use tool_result "
    "resourceSpans scopeSpans spans traceId spanId attributes key value stringValue intValue arrayValue "
    "kvlistValue values startTimeUnixNano data observations metadata conversations from conversation_id "
    "eval samples epoch scores simulations tasks trajectory_id schema_version agent session stream version "
    "schema time source cause reward traj task_id user_id isSidechain toolUseResult patch diff"
).split()
WORDS: Final = (
    "user assistant system tool human gpt agent ann trace MessageSent SessionOpened SnapshotTaken "
    "2026-01-01T10:00:00Z 1767261600 s1 message text tool_use function_call reasoning env \ud800 \x00 ~~~ "
    "**a** | - > ``` Bearer sk-proj-abcdefgh123456 eyJhbGciOi.x.y"
).split(" ")
FORMATS: Final = (
    "ag-ui atif chat claude-code codex cogym inspect langfuse lmsys openinference otlp openhands sharegpt "
    "swe-agent tau"
).split()


def fuzz(seed: int, runs: int) -> None:
    """Makes up inputs one after the other, and reads each through one door."""
    doors = _doors()
    for number in range(seed, seed + runs):
        chance = random.Random(number)
        name = chance.choice(sorted(doors))
        data = _input(chance)
        signal.alarm(HANGS)
        try:
            doors[name](data, chance)
        except Exception as error:
            raise AssertionError(f"input {number} at {name}: {data[:300]!r}") from error
    signal.alarm(0)


def _input(chance: random.Random) -> bytes:
    """JSON of the shapes that formats have, often spoiled or blown up in some place."""
    value = _value(chance, 4)
    if chance.random() < 0.5:
        value = [value, *(_value(chance, 3) for _ in range(chance.randrange(4)))]
    lines = chance.random() < 0.4 and isinstance(value, list)
    text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
    if chance.random() < 0.5:
        text = _blown_up(chance, text)
    data = text.encode("utf-8", "surrogatepass")
    for _ in range(chance.choice((0, 0, 0, 1, 5))):
        at = chance.randrange(len(data) + 1)
        data = data[:at] + bytes([chance.randrange(256)]) + data[at + chance.randrange(3) :]
    return data[: chance.randrange(len(data) + 1)] if chance.random() < 0.1 else data


def _value(chance: random.Random, depth: int) -> Any:  # noqa: ANN401 (JSON of any shape)
    kind = chance.random()
    if not depth or kind < 0.35:
        return chance.choice(
            (
                chance.choice(WORDS),
                " ".join(chance.choices(WORDS, k=chance.randrange(20))),
                chance.randrange(-5, 10 ** chance.randrange(1, 25)),
                chance.random() * 10 ** chance.randrange(-9, 300),
                None,
                True,
                {},
                [],
                json.dumps({chance.choice(KEYS): chance.choice(WORDS)}),
            )
        )
    if kind < 0.6:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(5))]
    return {chance.choice(KEYS): _value(chance, depth - 1) for _ in range(chance.randrange(1, 9))}


def _blown_up(chance: random.Random, text: str) -> str:
    """The text with a stretch repeated, or something nested or long put into it."""
    at = chance.randrange(len(text) + 1)
    times: int = 10 ** chance.randrange(1, 6)
    piece = chance.choice(
        ("{},", "[", '{"a":', "*", "a", '"a":1,', "[],", "\\u0041", "| ", "\n", ", ")
    )
    if chance.random() < 0.5:
        stretch = text[at : at + chance.randrange(1, 200)]
        return text[:at] + stretch * min(times, 300_000 // max(len(stretch), 1)) + text[at:]
    return text[:at] + piece * min(times, 100_000) + text[at:]


def _doors() -> dict[str, Callable[[bytes, random.Random], None]]:  # noqa: C901  (one function for each door)
    """What reads an input, by name; each raises what is not an error of Duolog."""
    from duolog.engine.errors import DuologError
    from duolog.engine.log.exchange.jsonl_export import from_jsonl
    from duolog.engine.redaction import redact, redact_forms
    from duolog.interop.http.limits import HttpLimits
    from duolog.interop.http.requests import read_batch
    from duolog.interop.http.traces import read_spans
    from duolog.interop.importers.preview import preview_foreign
    from duolog.interop.importers.protocol import Reading
    from duolog.interop.importers.registry import find_importer, recognise
    from duolog.interop.workbench.markup.text import rich_text
    from duolog.scoring.display.diff import changes
    from starlette.exceptions import HTTPException

    place = Path(tempfile.mkdtemp()) / "x.jsonl"

    def importer(name: str) -> Callable[[bytes, random.Random], None]:
        found = find_importer(name)

        def read(data: bytes, chance: random.Random) -> None:
            place.write_bytes(data)
            try:
                preview_foreign(place, found, Reading(growing=chance.random() < 0.1))
            except DuologError:
                return

        return read

    def recognised(data: bytes, chance: random.Random) -> None:
        place.write_bytes(data)
        try:
            recognise(place)
        except DuologError:
            return

    def posted(data: bytes, chance: random.Random) -> None:
        read_batch(data[: 1 << 20], 0.0, 1000)

    def spans(data: bytes, chance: random.Random) -> None:
        media = chance.choice(("application/json", "application/x-protobuf"))
        try:
            read_spans(data, media, chance.random() < 0.05, HttpLimits().of_traces)
        except HTTPException:
            return

    def line(data: bytes, chance: random.Random) -> None:
        try:
            from_jsonl(data)
        except DuologError:
            return

    def shown(data: bytes, chance: random.Random) -> None:
        text = data.decode("utf-8", "replace")
        rich_text(text)
        half = len(text) // 2
        changes(text[:half].split(), text[half:].split())

    def cleaned(data: bytes, chance: random.Random) -> None:
        text = data.decode("utf-8", "replace")
        once = redact_forms(text)
        assert redact_forms(once) == once
        redact(text[:20_000])

    doors = {f"import {name}": importer(name) for name in FORMATS}
    return doors | {
        "recognise": recognised,
        "post": posted,
        "traces": spans,
        "line": line,
        "show": shown,
        "redact": cleaned,
    }


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    fuzz(int(sys.argv[1]), int(sys.argv[2]))
