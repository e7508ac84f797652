"""Which format a file is taken for: never for another one, however it is cut or mixed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path

import pytest
from duolog.cli import main
from duolog.interop.importers.json_sniff import shape_of_text
from duolog.interop.importers.protocol import Importer
from duolog.interop.importers.registry import candidates_for, installed_importers

NOWHERE = Path("nowhere.json")

USER: dict[str, object] = {"role": "user", "content": "hi"}

LINES: dict[str, list[dict[str, object]]] = {
    "ag-ui": [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
    ],
    "chat": [USER, {"role": "assistant", "content": "hello"}],
    "claude-code": [
        {"type": "summary", "summary": "Earlier work", "leafUuid": "u"},
        {"parentUuid": None, "sessionId": "s", "type": "user", "uuid": "u", "message": USER},
    ],
    "codex": [
        {"timestamp": "2025-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s"}},
        {"timestamp": "2025-01-01T00:00:00Z", "type": "event_msg", "payload": {"type": "x"}},
    ],
    "cogym": [
        {
            "role": "user",
            "timestamp": "1",
            "action": "A()",
            "action_status": "succeeded",
            "action_type": "environment",
            "current_chat_history": [],
            "current_observation": {},
        }
    ],
    "lmsys": [{"conversation_id": "c", "model": "m", "conversation": [USER], "language": "en"}],
    "openhands": [
        {"kind": "MessageEvent", "id": "1", "source": "user", "timestamp": "2025-01-01T00:00:00"},
    ],
    "openinference": [
        {
            "name": "x",
            "span_kind": "LLM",
            "context": {"trace_id": "t", "span_id": "s"},
            "attributes": {"llm.model_name": "m"},
        }
    ],
    "otlp": [{"resourceSpans": [{"scopeSpans": []}]}],
    "sharegpt": [{"id": "1", "conversations": [{"from": "human", "value": "hi"}]}],
    "tau": [{"task_id": 1, "reward": 1.0, "info": {}, "traj": [USER], "trial": 0}],
}
"""By format, beginnings of its files with a value on each line."""

DOCUMENTS: dict[str, object] = {
    "atif": {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {}, "steps": []},
    "chat": {"model": "m", "messages": [USER]},
    "inspect": {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": []},
    "langfuse": {"trace": {"id": "t"}, "observations": []},
    "openhands": [{"id": 0, "source": "user", "action": "message", "args": {"content": "hi"}}],
    "swe-agent": {"environment": "e", "trajectory": [], "history": [USER]},
}
"""By format, beginnings of its files that are one document."""


@pytest.fixture(scope="module")
def importers() -> list[Importer]:
    return installed_importers()


def guesses(head: bytes, importers: list[Importer]) -> set[str]:
    shape = shape_of_text(head)
    return {one.name for one in importers if shape is not None and one.recognises(NOWHERE, shape)}


def in_lines(lines: list[dict[str, object]]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def heads() -> Iterator[tuple[str, bytes]]:
    for name, lines in LINES.items():
        yield name, in_lines(lines)
    for name, document in DOCUMENTS.items():
        yield name, json.dumps(document).encode()
        yield name, json.dumps(document, indent=2).encode()


def test_each_beginning_is_that_of_one_format_wherever_it_is_cut(
    importers: list[Importer],
) -> None:
    for name, head in heads():
        assert guesses(head, importers) == {name}
        for end in range(len(head)):
            assert guesses(head[:end], importers) <= {name}, (name, head[:end])


def test_of_lines_of_two_formats_the_first_decides(importers: list[Importer]) -> None:
    for one, other in permutations(LINES, 2):
        assert guesses(in_lines(LINES[one][:1] + LINES[other]), importers) == {one}


def test_samples_are_taken_for_nothing_else(
    test_data: Callable[[str], Path], importers: list[Importer]
) -> None:
    """Cut anywhere, and with lines of every other sample behind the first."""
    samples = [
        sample
        for sample in sorted(test_data("formats").glob("*/*"))
        if sample.with_name(f"{sample.name}.expected.json").exists() and sample.suffix != ".eval"
    ]
    lines: dict[str, tuple[bytes, set[str]]] = {}
    for sample in samples:
        data = sample.read_bytes()[:20_000]
        own = guesses(sample.read_bytes(), importers)
        assert len(own) == 1, sample
        for end in (*range(1, 400, 7), *range(400, len(data), 1501)):
            assert guesses(data[:end], importers) <= own, (sample.name, end)
        if sample.suffix == ".jsonl":
            lines[sample.name] = data.split(b"\n", 1)[0], own
    for (first, own), (second, _) in permutations(lines.values(), 2):
        assert guesses(first + b"\n" + second, importers) == own


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"history": [USER], "messages": [USER]}, "looks like chat and swe-agent: say which"),
        ({"conversation": [USER]}, "it can be read as lmsys: say which"),
        ([{"source": "user", "action": "message", "args": {"content": "x"}}], "as openhands: say"),
        ({"a": 1}, "if it is one of them, say which"),
        ([], "if it is one of them, say which"),
    ],
)
def test_a_file_that_could_be_several_is_refused_with_their_names(
    held: object, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, log = tmp_path / "x.json", tmp_path / "x.db"
    source.write_text(json.dumps(held), encoding="utf-8")
    assert main(["import", str(source), "--log", str(log)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line
    assert not log.exists()


def test_large_files_are_not_tried(tmp_path: Path, importers: list[Importer]) -> None:
    source = tmp_path / "x.json"
    source.write_text(json.dumps({"conversation": [USER]}) + " " * 70_000, encoding="utf-8")
    assert candidates_for(source, importers) == []
