"""Logs of Inspect: documents and archives, attachments, scores, and calls of scorers left out."""

from __future__ import annotations

import json
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from duolog.engine.errors import InvalidInput, MissingExtra
from duolog.engine.events import (
    ActionResolved,
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    ModelCalled,
    NoteTaken,
    SessionClosed,
    UtilityScored,
)
from duolog.interop.importers.directory import DirectoryImporter
from duolog.interop.importers.inspect_logs import InspectImporter
from duolog.interop.importers.registry import recognise
from duolog.testing import check_importer
from foreign_logs import events_of, read

Json = dict[str, Any]

EVAL: Json = {"task": "browse", "model": "p/m", "run_id": "r", "created": "2026-01-01T10:00:00Z"}


def asked(at: str, tokens: int, message: str) -> Json:
    usage = {"input_tokens": tokens, "output_tokens": 1}
    reply = {"choices": [{"message": {"id": message}}], "usage": usage}
    return {"event": "model", "timestamp": at, "model": "p/m", "output": reply}


def sample(id: str, epoch: int = 1) -> Json:
    return {
        "id": id,
        "epoch": epoch,
        "messages": [
            {"id": "m1", "role": "user", "content": "attachment://a"},
            {
                "id": "m2",
                "role": "assistant",
                "content": [{"type": "reasoning", "reasoning": "Hm."}],
                "tool_calls": [{"id": "c1", "function": "go", "arguments": {"to": "x"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "", "error": {"message": "gone"}},
            {"id": "m3", "role": "assistant", "content": "There."},
        ],
        "attachments": {"a": "Where is it?"},
        "scores": {"match": {"value": "C"}, "long": {"value": {"a": 1}}},
        "events": [
            asked("2026-01-01T10:00:01Z", 5, "m2"),
            asked("2026-01-01T10:00:09Z", 6, "m3"),
            {"event": "span_begin", "type": "scorers", "timestamp": "2026-01-01T10:00:10Z"},
            asked("2026-01-01T10:00:11Z", 99, "judge"),
        ],
        "model_usage": {"p/m": {"input_tokens": 110, "output_tokens": 3}},
    }


def archive(path: Path, *samples: Json) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": EVAL}))
        for one in samples:
            file.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
    return path


def with_zstandard(path: Path) -> Path:
    """The archive with its members compressed as Inspect does on request."""
    zstandard = pytest.importorskip("zstandard")
    packed = path.with_name(f"packed-{path.name}")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(packed, "w") as file:
        members = [(source.read(name), name) for name in source.namelist()]
        for data, name in members:
            file.writestr(name, zstandard.ZstdCompressor().compress(data))
        places = [info.header_offset for info in file.infolist()]
    held = bytearray(packed.read_bytes())
    central = held.index(b"PK\x01\x02")
    for (data, name), local in zip(members, places, strict=True):
        for at, method, rest in ((local, 8, 14), (central, 10, 16)):
            struct.pack_into("<H", held, at + method, 93)
            struct.pack_into("<L", held, at + rest, zlib.crc32(data))
            struct.pack_into("<L", held, at + rest + 8, len(data))
        central += 46 + len(name)
    packed.write_bytes(held)
    return packed


def test_a_sample_is_a_session_with_its_scores(tmp_path: Path) -> None:
    events, diagnostics = read(InspectImporter(), archive(tmp_path / "x.eval", sample("s")))
    assert not diagnostics
    found = [event for _, event in events_of(events)]
    texts = [event.text for event in found if isinstance(event, MessageSent | NoteTaken)]
    assert texts == ["Where is it?", "Hm.", "There."]
    assert [one.error for one in found if isinstance(one, ActionResolved)] == ["gone"]
    assert [one.tokens.prompt for one in found if isinstance(one, ModelCalled)] == [5, 6]
    scores = [one.draft.event for one in events if isinstance(one.draft.event, UtilityScored)]
    assert [(one.scorer.name, one.value) for one in scores] == [("match", 1.0), ("long", None)]
    assert events[-3].draft.time - events[0].draft.time == 8.0


def test_a_sample_is_over_however_it_ended(tmp_path: Path) -> None:
    broken: Json = {"id": "b", "epoch": 1, "messages": [], "input": "Where is it?"}
    samples = [
        sample("a"),
        {**broken, "error": {"message": "no model"}},
        {**sample("c"), "limit": {"type": "message", "limit": 4}},
    ]
    events, diagnostics = read(InspectImporter(), archive(tmp_path / "x.eval", *samples))
    assert not diagnostics
    closed = [one.draft.event for one in events if isinstance(one.draft.event, SessionClosed)]
    assert [(one.reason, one.detail) for one in closed] == [
        ("ended", ""),
        ("failed", "no model"),
        ("limit", "message"),
    ]
    said = [one.draft.event.text for one in events if isinstance(one.draft.event, MessageSent)]
    assert said == ["Where is it?", "There."] + ["Where is it?"] * 2 + ["There."]


def test_scores_may_be_words_and_numbers_in_texts(tmp_path: Path) -> None:
    values = {"a": "yes", "b": "0.25", "c": "True", "d": False, "e": "who knows"}
    scored = {**sample("s"), "scores": {name: {"value": value} for name, value in values.items()}}
    events, _ = read(InspectImporter(), archive(tmp_path / "x.eval", scored))
    found = [one.draft.event for one in events if isinstance(one.draft.event, UtilityScored)]
    assert [one.value for one in found] == [1.0, 0.25, 1.0, 0.0, None]


def test_what_is_null_is_not_there_and_an_old_log_has_one_score(tmp_path: Path) -> None:
    bare = {"events": None, "attachments": None, "scores": None, "model_usage": None}
    samples: list[Json] = [
        {**sample("a"), **bare, "score": {"value": "C"}},
        {"id": "b", "epoch": 1, "input": "Where is it?", "messages": None, **bare},
    ]
    events, diagnostics = read(InspectImporter(), archive(tmp_path / "x.eval", *samples))
    assert not diagnostics
    found = [one.draft.event for one in events]
    scores = [one for one in found if isinstance(one, UtilityScored)]
    assert [(one.scorer.name, one.value) for one in scores] == [("score", 1.0)]
    assert [one.text for one in found if isinstance(one, MessageSent)][-1] == "Where is it?"


def test_a_document_gives_the_same_as_an_archive(tmp_path: Path) -> None:
    document = tmp_path / "x.json"
    samples = [sample("b"), sample("a", 2), sample("a", 1)]
    log = {"version": 2, "status": "success", "eval": EVAL, "samples": samples}
    document.write_text(json.dumps(log), encoding="utf-8")
    events, _ = read(InspectImporter(), document)
    assert list(dict.fromkeys(one.session for one in events)) == ["r-a-1", "r-a-2", "r-b-1"]
    assert events == read(InspectImporter(), archive(tmp_path / "x.eval", *samples))[0]


def test_what_is_no_log_is_refused_and_a_broken_sample_named(tmp_path: Path) -> None:
    other = tmp_path / "other.eval"
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("x", "y")
    with pytest.raises(InvalidInput, match=r"not an Inspect log: it lacks header\.json"):
        read(InspectImporter(), other)
    broken = archive(tmp_path / "x.eval", {"id": "s", "epoch": 1, "messages": 5})
    _, [diagnostic] = read(InspectImporter(), broken)
    assert diagnostic.where.endswith("samples/s_epoch_1.json")


def test_an_archive_may_be_compressed_with_zstandard(tmp_path: Path) -> None:
    plain = archive(tmp_path / "x.eval", sample("a"), sample("b"))
    packed = with_zstandard(plain)
    assert recognise(packed, [InspectImporter()]) is not None
    assert read(InspectImporter(), packed)[0] == read(InspectImporter(), plain)[0]


def test_without_what_reads_zstandard_one_line_says_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = with_zstandard(archive(tmp_path / "x.eval", sample("a")))
    monkeypatch.delattr(zipfile, "ZIP_ZSTANDARD", raising=False)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(
        MissingExtra, match=r"packed-x\.eval, .*Zstandard, needs an extra: .*inspect"
    ):
        read(InspectImporter(), packed)
    _, diagnostics = read(DirectoryImporter(InspectImporter()), tmp_path)
    (problem,) = (one for one in diagnostics if one.kind == "problem")
    assert problem.where == str(packed)


@pytest.mark.parametrize("packs", [False, True])
def test_a_damaged_archive_is_refused(packs: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", json.dumps({"version": 2, "eval": EVAL, "more": "x" * 99}))
    path = with_zstandard(path) if packs else path
    held = bytearray(path.read_bytes())
    held[50:60] = b"\xff" * 10
    path.write_bytes(held)
    with pytest.raises(InvalidInput, match=r"x\.eval, header\.json: "):
        read(InspectImporter(), path)


@pytest.mark.asyncio
async def test_the_importer_keeps_the_contract(tmp_path: Path) -> None:
    await check_importer(InspectImporter(), archive(tmp_path / "x.eval", sample("s")))


def test_approvals_say_who_decided(tmp_path: Path) -> None:
    calls = [{"id": f"c{n}", "function": "bash", "arguments": {"n": n}} for n in range(4)]
    messages: list[Json] = [
        {"id": "m1", "role": "user", "content": "Tidy up."},
        {"id": "m2", "role": "assistant", "content": "", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": one["id"], "content": "done"} for one in calls),
    ]

    def decided(call: Json, approver: str, decision: str, second: int) -> Json:
        at = f"2026-01-01T10:00:{second:02}Z"
        return {
            "event": "approval",
            "timestamp": at,
            "call": call,
            "approver": approver,
            "decision": decision,
            "explanation": "since",
        }

    events = [
        asked("2026-01-01T10:00:01Z", 5, "m2"),
        decided(calls[0], "safe_commands", "escalate", 2),
        decided(calls[0], "human", "approve", 5),
        decided(calls[1], "auto", "approve", 6),
        decided(calls[2], "safe_commands", "reject", 7),
    ]
    one = {**sample("s"), "messages": messages, "events": events}
    found, diagnostics = read(InspectImporter(), archive(tmp_path / "x.eval", one))
    assert not diagnostics
    answers = [
        (found.draft.role, found.draft.event.approved, found.draft.event.source)
        for found in found
        if isinstance(found.draft.event, ApprovalGiven)
    ]
    assert answers == [
        ("human", True, "person"),
        ("environment", True, "setting"),
        ("environment", False, "rule"),
    ]
    approvals = {
        kind.__name__: [one.draft.time for one in found if isinstance(one.draft.event, kind)]
        for kind in (ApprovalAsked, ApprovalGiven)
    }
    assert len(approvals["ApprovalAsked"]) == 3  # the fourth call was never put to anybody
    assert approvals["ApprovalGiven"][0] - approvals["ApprovalAsked"][0] == 4.0
