"""Documents longer than memory: their pieces, and importers that hold one session at a time."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.log.open import MemoryLog
from duolog.interop.importers import json_files, json_stream
from duolog.interop.importers.atif import AtifImporter
from duolog.interop.importers.chat import ChatImporter
from duolog.interop.importers.inspect_logs import InspectImporter
from duolog.interop.importers.json_stream import elements_of, members_of, places_of, read_at
from duolog.interop.importers.protocol import Importer, Reading
from duolog.interop.importers.run import import_foreign
from duolog.interop.importers.swe_agent import SweAgentImporter
from duolog.interop.importers.traces import langfuse, openinference, otlp
from duolog.interop.importers.traces.langfuse import LangfuseImporter
from duolog.interop.importers.traces.openinference import OpenInferenceImporter
from duolog.interop.importers.traces.otlp import OtlpImporter
from hypothesis import given
from hypothesis import strategies as st
from otlp_story import request

Json = dict[str, Any]

LONG = "some words " * 1000

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(VALUES, max_size=5), st.integers(1, 40), st.booleans())
def test_the_pieces_of_a_document_are_what_it_holds(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], chunk: int, wide: bool
) -> None:
    path = tmp_path_factory.mktemp("json") / "x.json"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_stream, "_CHUNK", chunk)
        path.write_text(json.dumps(values, indent=2 if wide else None), encoding="utf-8")
        found = list(elements_of(path))
        assert [json.loads(data) for _, data in found] == values
        assert list(places_of(path)) == [place for place, _ in found]
        held = {f'"{number}': value for number, value in enumerate(values)}
        path.write_text(json.dumps(held, ensure_ascii=wide), encoding="utf-8")
        members = {name: read_at(path, place) for name, place in members_of(path).items()}
        assert {name: json.loads(data) for name, data in members.items()} == held


@pytest.mark.parametrize(
    "text",
    ["", "[", "[1", "[1,]", "[,1]", "[1 2]", "[1]]", "[}", "{}", "[{]", "x", '["a]', '[{"a": [}]'],
)
def test_a_document_that_is_broken_is_refused_by_its_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"x\.json, byte \d+: "):
        list(elements_of(path))


def conversations(count: int, words: str = LONG) -> object:
    return [{"messages": [{"role": "user", "content": f"{n} {words}"}]} for n in range(count)]


def samples(count: int, words: str = LONG) -> object:
    messages = [{"role": "user", "content": words}, {"role": "assistant", "content": "yes"}]
    held = [{"id": n, "epoch": 1, "messages": messages} for n in range(count)]
    return {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": held}


def exports(count: int, words: str = LONG) -> object:
    call = {"id": "o", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z", "name": "m"}
    said = {"input": [{"role": "user", "content": words}], "output": "yes"}
    held = [{**call, **said}]
    return [{"trace": {"id": f"t{n}"}, "observations": held} for n in range(count)]


def traced(count: int, words: str = LONG) -> object:
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": words}]}])
    spans = [
        {
            "traceId": f"t{n % (count // 2)}",  # each conversation has its spans far apart
            "spanId": f"s{n}",
            "startTimeUnixNano": str(n * 10**9),
            "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                {"key": "gen_ai.input.messages", "value": {"stringValue": said}},
            ],
        }
        for n in range(count)
    ]
    return request(*spans)


def phoenix(count: int, words: str = LONG) -> object:
    return [
        {
            "name": "m",
            "span_kind": "LLM",
            "context": {"trace_id": f"t{n % (count // 2)}", "span_id": str(n)},
            "start_time": "2026-01-01T10:00:00Z",
            "attributes": {"input.value": words, "output.value": "yes"},
        }
        for n in range(count)
    ]


def trajectory(count: int, words: str = LONG) -> object:
    steps = [{"source": "agent", "message": words} for _ in range(count)]
    return {"schema_version": "ATIF-v1.7", "steps": steps, "session_id": "s"}


def history(count: int, words: str = LONG) -> object:
    return {"history": [{"role": "assistant", "content": words} for _ in range(count)]}


SOURCES: dict[str, tuple[Importer, Callable[..., object]]] = {
    "chat": (ChatImporter(), conversations),
    "inspect": (InspectImporter(), samples),
    "langfuse": (LangfuseImporter(), exports),
    "otlp": (OtlpImporter(), traced),
    "openinference": (OpenInferenceImporter(), phoenix),
    "atif": (AtifImporter(), trajectory),
    "swe-agent": (SweAgentImporter(), history),
}


async def test_of_a_long_document_that_is_cut_off_nothing_is_taken_or_what_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "AT_ONCE", 100)
    source = tmp_path / "x.json"
    text = json.dumps(conversations(9, "words"))
    source.write_text(text[: len(text) - 20], encoding="utf-8")
    async with MemoryLog() as log:
        with pytest.raises(InvalidInput, match="cut off"):
            await import_foreign(log, source, ChatImporter())
        assert log.statistics().position == 0
        taken = await import_foreign(log, source, ChatImporter(), keep_going=True)
        assert taken.sessions == 8
        assert "cut off" in taken.diagnostics[-1].what


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_what_is_held_does_not_grow_with_a_document(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    importer, write = SOURCES[name]
    source = tmp_path / "x.json"
    source.write_text(json.dumps(write(20, "some words ")), encoding="utf-8")
    at_once = list(importer.read(source, Reading()))
    for module in (json_files, langfuse, otlp, openinference):
        monkeypatch.setattr(module, "AT_ONCE", 1000)
    in_pieces = list(importer.read(source, Reading()))
    assert [str(one) for one in in_pieces] == [str(one) for one in at_once]
    (size, most), (larger, then) = (held_at_most(importer, source, write(n)) for n in (100, 300))
    assert larger - size > 2_000_000
    assert then - most < (larger - size) / 5


def held_at_most(importer: Importer, source: Path, document: object) -> tuple[int, int]:
    """Bytes of a source, and the most that was held while it was read."""
    source.write_text(json.dumps(document), encoding="utf-8")
    in_tests = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # Python's default
    tracemalloc.start()
    try:
        assert sum(1 for _ in importer.read(source, Reading())) >= 100
        return source.stat().st_size, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.set_threshold(*in_tests)
