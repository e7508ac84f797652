"""What parsers and validators cost at the limit of size: steps are counted, and grow with the input."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest
from duolog.engine.errors import DuplicateConflict
from duolog.engine.events import (
    ActionTaken,
    MessageSent,
    Participant,
    ProgressRated,
    SessionOpened,
)
from duolog.engine.log.append import prepare
from duolog.engine.log.exchange.jsonl_export import to_jsonl
from duolog.engine.log.exchange.jsonl_import import import_jsonl
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import TRACE, Draft, Record
from duolog.engine.session.commands import RateProgress, Sender, handle
from duolog.engine.session.state import TraceState
from duolog.interop.agui.assembler import Assembler
from duolog.interop.agui.decoder import AguiDecoder
from duolog.interop.agui.json_patch import apply_patch
from duolog.interop.agui.parse import parse_events
from duolog.interop.agui.thread_index import ThreadIndex
from duolog.interop.http.limits import HttpLimits
from duolog.interop.http.requests import (
    InvalidBatch,
    TooManyEvents,
    read_batch,
)
from duolog.interop.http.trace_writer import TraceWriter
from duolog.interop.http.validation import complaint
from duolog.interop.importers.chat import ChatImporter
from duolog.interop.importers.cogym.sessions import parse_call
from duolog.interop.importers.json_sniff import shape_of_text
from duolog.interop.importers.protocol import Reading
from duolog.interop.otel.spans import SpanFold
from duolog.testing import records_of
from duolog.testing.folds import by
from step_counter import Counted, count_lines

LIMITS = HttpLimits()
BODY = LIMITS.body


def filled(begin: str, unit: Callable[[int], str], end: str, most: int = BODY) -> tuple[bytes, int]:
    """As many units as a body may hold, and how many these are."""
    units: list[str] = []
    size = len(begin) + len(end)
    while size < most - 100:
        units.append(unit(len(units)))
        size += len(units[-1]) + 1
    return (begin + ",".join(units) + end).encode(), len(units)


def one_event(kind: str, body: str) -> str:
    return f'{{"events":[{{"kind":"{kind}","actor":"a","role":"human","body":{body}}}]}}'


def event(ident: int) -> str:
    posted = {"kind": "MessageSent", "actor": "a", "role": "human", "body": {"text": "x"}}
    return json.dumps(posted | {"id": str(ident)})


BODIES: dict[str, Callable[[], tuple[bytes, int]]] = {
    "participants": lambda: filled(
        '{"events":[{"kind":"SessionOpened","actor":"a","role":"human","body":{"task":"",'
        '"instance":"","clock":"utc","participants":[',
        lambda n: f'{{"name":"p{n}","role":"human"}}',
        "]}}]}",
    ),
    "a list of lists": lambda: filled(
        '{"events":[{"kind":"SnapshotTaken","actor":"a","role":"human","body":{"content":[',
        lambda n: "[]",
        "]}}]}",
    ),
    "an object": lambda: filled(
        '{"events":[{"kind":"SnapshotTaken","actor":"a","role":"human","body":{"content":{',
        lambda n: f'"{n}":{n}',
        "}}}]}",
    ),
    "unknown fields": lambda: filled(
        '{"events":[{"kind":"MessageSent","actor":"a","role":"human","body":{',
        lambda n: f'"{n}":{n}',
        "}}]}",
    ),
    "whom it is for": lambda: filled(
        '{"events":[{"kind":"MessageSent","actor":"a","role":"human","body":{"text":"","to":[',
        lambda n: '"a"',
        "]}}]}",
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_reading_a_body_costs_as_much_as_there_is_in_it(name: str) -> None:
    data, units = BODIES[name]()
    lines, _ = count_lines(read_batch, data, 0.0, LIMITS.events)
    assert lines <= 30 * units + 1000


def test_the_number_of_events_is_looked_at_before_the_events() -> None:
    data, units = filled('{"events":[', event, f",{event(0)}]}}")
    lines, found = count_lines(read_batch, data, 0.0, LIMITS.events)
    assert found == TooManyEvents(units + 1)
    assert lines < 1000


def test_a_name_of_a_megabyte_is_not_compared_or_sent_back() -> None:
    for data in (
        one_event("MessageSent", '{"' + "x" * BODY + '":1}'),
        one_event("x" * BODY, "{}"),
    ):
        lines, found = count_lines(read_batch, data.encode(), 0.0, LIMITS.events)
        assert isinstance(found, InvalidBatch)
        assert len(found.what) < 1000
        assert len(found.field) < 1000
        assert lines < 30_000


def test_names_are_compared_in_proportion_to_their_number() -> None:
    many = 31_000
    names = tuple(Participant(name=Counted(f"p{n}"), role="human") for n in range(many))
    Counted.steps = 0
    opened = SessionOpened(task="", instance="", participants=names, clock="utc")
    assert complaint(opened) is None
    assert Counted.steps < 4 * many


@pytest.mark.parametrize("twice", [False, True])
def test_ids_are_compared_in_proportion_to_their_number(twice: bool) -> None:
    many = 20_000
    drafts = [
        Draft(MessageSent(text=""), "a", "human", 0.0, Counted(n)) for n in range(many - twice)
    ]
    drafts += [drafts[-1]] * twice
    Counted.steps = 0
    try:
        prepare("s", drafts, TRACE, None, None, None)
    except DuplicateConflict:
        assert twice
    assert Counted.steps < 4 * many


def test_a_rating_costs_the_same_however_many_rounds_there_are() -> None:
    def steps(rounds: int) -> int:
        state = TraceState("s")
        for record in records_of(
            *[by(role, MessageSent(text="")) for _ in range(rounds) for role in ("human", "agent")]
        ):
            state.feed(record)
        rating = RateProgress(ProgressRated(round=0, rating=3), of=2)
        return count_lines(handle, rating, state, Sender("a", "human", 0.0))[0]

    assert steps(4000) < steps(40) + 50


class Reads:
    """A log that counts how often it is read."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self.count = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    async def read(
        self, session: str, *, stream: str = TRACE, after_version: int = 0
    ) -> AsyncIterator[Record]:
        self.count += 1
        async for record in self._log.read(session, stream=stream, after_version=after_version):
            yield record


async def test_a_batch_that_is_sent_again_is_read_once() -> None:
    async with MemoryLog() as log:
        reads = Reads(log)
        writer = TraceWriter(reads)  # type: ignore[arg-type]
        drafts = [
            Draft(ActionTaken(name="x"), "a", "agent", 0.0, str(n)) for n in range(LIMITS.events)
        ]
        first = await writer.write("s", drafts, None)
        reads.count = 0
        assert await writer.write("s", drafts, None) == first
        assert reads.count == 1


# --- AG-UI -----------------------------------------------------------------------------------------


def stream(unit: Callable[[int], dict[str, object]]) -> tuple[str, int]:
    data, units = filled("", lambda n: f"data: {json.dumps(unit(n))}\n\n", "", BODY // 4)
    return data.decode().replace("\n,", "\n"), units


def decoded(text: str) -> int:
    """How many entries a stream becomes."""
    pieces, decoder = Assembler(), AguiDecoder(ThreadIndex(""), ["agent"])
    count = 0
    for found in parse_events(text):
        assert isinstance(found, dict)
        for whole in pieces.take(found):
            count += len(list(decoder.decode(whole)))
    for whole in pieces.finish():
        count += len(list(decoder.decode(whole)))
    return count


STREAMS: dict[str, Callable[[int], dict[str, object]]] = {
    "messages that do not end": lambda n: {"type": "TEXT_MESSAGE_START", "messageId": str(n)},
    "chunks of many subagents": lambda n: {
        "type": "TEXT_MESSAGE_CHUNK",
        "messageId": str(n),
        "delta": "x",
        "subagentRunId": str(n),
    },
    "chunks that name nothing": lambda n: {
        "type": "TEXT_MESSAGE_CHUNK",
        **({"messageId": str(n), "subagentRunId": str(n)} if n % 2 else {}),
        "delta": "x",
    },
    "snapshots of no messages": lambda n: (
        {"type": "MESSAGES_SNAPSHOT", "messages": []}
        if n % 2
        else {"type": "TEXT_MESSAGE_CHUNK", "messageId": str(n), "delta": "x"}
    ),
    "changes of the state": lambda n: {
        "type": "STATE_DELTA",
        "delta": [{"op": "add", "path": "/a", "value": n}],
    },
}


@pytest.mark.parametrize("name", STREAMS)
def test_decoding_a_stream_costs_as_much_as_there_is_in_it(name: str) -> None:
    text, units = stream(STREAMS[name])
    lines, entries = count_lines(decoded, text)
    assert entries >= units // 2
    assert lines <= 300 * units


def test_a_patch_costs_what_it_changes_and_not_what_there_is() -> None:
    def steps(size: int) -> int:
        document = {"large": [[n] for n in range(size)], "small": {"a": 0}}
        patch = [{"op": "replace", "path": "/small/a", "value": n} for n in range(100)]
        patch += [{"op": "test", "path": "/small/a", "value": 99}]
        lines, changed = count_lines(apply_patch, document, patch)  # type: ignore[arg-type]
        assert isinstance(changed, dict)
        assert changed["large"] is document["large"]
        assert document["small"] == {"a": 0}
        return lines

    assert steps(10_000) < steps(10) + 500


# --- files -----------------------------------------------------------------------------------------


def steps_of_importing(path: Path, messages: Sequence[object]) -> int:
    path.write_text(json.dumps(messages), encoding="utf-8")
    return count_lines(lambda: list(ChatImporter().read(path, Reading())))[0]


def test_importing_a_chat_costs_as_much_as_there_is_in_it(tmp_path: Path) -> None:
    def said(count: int) -> Iterator[object]:
        for n in range(count):
            yield {"role": ("user", "assistant")[n % 2], "content": "x", "name": f"n{n // 2}"}

    few, many = (
        steps_of_importing(tmp_path / "chat.json", list(said(count))) for count in (200, 2000)
    )
    assert many < 11 * few


@pytest.mark.parametrize("unit", ["{", '"', '"a":', '{"a":1}', '"a', "\\"])
def test_a_look_at_a_file_costs_as_much_as_it_looks_at(unit: str) -> None:
    head = ("[" + unit * (BODY // 20 // len(unit))).encode()
    lines, _ = count_lines(shape_of_text, head)
    assert lines <= 40 * len(head)


@pytest.mark.parametrize("unit", ["(", '"', "a=", "f(", "a,", "\\x", "k=1,"])
def test_a_call_as_text_costs_as_much_as_its_text(unit: str) -> None:
    text = f"F(a={unit * (BODY // 20 // len(unit))})"
    lines, _ = count_lines(parse_call, text, {})
    assert lines <= 20 * len(text)


def test_json_lines_cost_as_much_as_there_are(tmp_path: Path) -> None:
    async def take() -> None:
        async with open_log("memory://") as log:
            await import_jsonl(log, tmp_path / "log.jsonl")

    def steps(count: int) -> int:
        records = records_of(*[by("human", MessageSent(text="x")) for _ in range(count)])
        (tmp_path / "log.jsonl").write_bytes(b"".join(to_jsonl(record) for record in records))
        return count_lines(asyncio.run, take())[0]

    assert steps(2000) < 11 * steps(200)


def test_exporting_a_record_costs_the_same_however_many_there_were() -> None:
    records = records_of(
        *[by(role, MessageSent(text="x")) for _ in range(1000) for role in ("human", "agent")]
    )
    fold = SpanFold("session")

    def steps(some: Sequence[Record]) -> int:
        return count_lines(lambda: [fold.feed(record) for record in some])[0]

    first, last = steps(records[:200]), steps(records[-200:])
    assert last < 2 * first
