"""Files that hold what no program writes: each is refused by its place, or read as far as it makes sense."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    ActionResolved,
    Event,
    MessageSent,
    ModelCalled,
    Origin,
    SessionOpened,
    SnapshotTaken,
    Tokens,
    Unknown,
)
from duolog.engine.log.open import MemoryLog
from duolog.engine.records import TRACE
from duolog.interop.importers.atif import AtifImporter
from duolog.interop.importers.chat import ChatImporter
from duolog.interop.importers.claude_code.entries import command_in, typed_part
from duolog.interop.importers.codex import CodexImporter
from duolog.interop.importers.conversation.numbers import RunningTotal
from duolog.interop.importers.directory import DirectoryImporter
from duolog.interop.importers.mapping import MappingImporter, load_mapping
from duolog.interop.importers.openhands import OpenHandsImporter
from duolog.interop.importers.preview import preview_foreign
from duolog.interop.importers.protocol import Diagnostic, Foreign, Found, Importer, Reading
from duolog.interop.importers.registry import recognise
from duolog.interop.importers.run import import_foreign
from duolog.interop.importers.tau import TauImporter
from duolog.interop.importers.traces.conversations import ConversationReader
from duolog.interop.importers.traces.live import LiveTraces
from duolog.interop.importers.traces.otlp import spans_of_request
from duolog.interop.importers.traces.spans import LEVELS, Span
from duolog.testing import by
from scripted_importer import Scripted

DEEP = "[" * 100_000


def read(path: Path, importer: Importer) -> list[Found]:
    return list(importer.read(path, Reading()))


def events(found: Sequence[Found]) -> list[Event | Unknown]:
    return [one.draft.event for one in found if isinstance(one, Foreign)]


def problems(found: Sequence[Found]) -> list[str]:
    return [one.where for one in found if isinstance(one, Diagnostic) and one.kind == "problem"]


def lines(path: Path, *held: object) -> Path:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in held), encoding="utf-8")
    return path


def rollout(path: Path, *payloads: dict[str, object]) -> Path:
    stamp = "2026-01-01T10:00:00Z"
    meta = {"type": "session_meta", "timestamp": stamp, "payload": {"id": "s"}}
    items = [{"type": "response_item", "timestamp": stamp, "payload": one} for one in payloads]
    return lines(path, meta, *items)


def called(output: str, **call: str) -> tuple[dict[str, object], dict[str, object]]:
    return (
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c", **call},
        {"type": "function_call_output", "call_id": "c", "output": output},
    )


@pytest.mark.parametrize("output", [f"Exit code: {'9' * 5000}\n", f'{{"a":{DEEP}'])
def test_a_result_of_codex_that_nobody_can_decode_is_a_text(tmp_path: Path, output: str) -> None:
    found = events(read(rollout(tmp_path / "r.jsonl", *called(output)), CodexImporter()))
    (resolved,) = (one for one in found if isinstance(one, ActionResolved))
    assert (resolved.outcome, resolved.observation) == ("ok", output)


def test_a_file_of_a_patch_is_whole_whatever_else_ends_lines_in_it(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+one\x0ctwo\u2028\n+three\n*** End Patch"
    call, result = called("Done", name="apply_patch", arguments=patch)
    found = events(read(rollout(tmp_path / "r.jsonl", call, result), CodexImporter()))
    (file,) = (one for one in found if isinstance(one, SnapshotTaken))
    assert file.content == {"a": "one\x0ctwo\u2028\nthree\n"}


def test_a_total_of_which_any_part_shrinks_begins_again() -> None:
    total = RunningTotal()
    total.since(Tokens(prompt=100, completion=300))
    assert total.since(Tokens(prompt=20_000, completion=10)) == Tokens(prompt=20_000, completion=10)
    assert total.since(Tokens(prompt=20_005, completion=12)) == Tokens(prompt=5, completion=2)


def test_an_event_that_nests_without_end_is_a_problem_of_its_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    first = {"id": 0, "source": "user", "action": "message", "args": {"content": "Hi"}}
    path.write_text(f'{json.dumps(first)}\n{{"id":1,"source":"agent","args":{DEEP}\n')
    found = read(path, OpenHandsImporter())
    assert problems(found) == [f"{path}, line 2"]
    assert any(isinstance(one, MessageSent) for one in events(found))


def test_a_cost_that_is_no_amount_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    run = (
        '{"task_id":1,"reward":1,"info":{"user_cost":1%s},"traj":[{"role":"user","content":"Hi"}]}'
    )
    path.write_text(f"[{run % ('0' * 400)}]")
    assert not any(isinstance(one, ModelCalled) for one in events(read(path, TauImporter())))


@pytest.mark.parametrize("count", [-5, 10**30, True, "7"])
def test_tokens_that_nobody_can_have_counted_are_left_out(tmp_path: Path, count: object) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": 3}
    said = {"role": "assistant", "content": "Yes", "usage": usage}
    found = events(
        read(lines(tmp_path / "c.jsonl", {"id": "c", "messages": [said]}), ChatImporter())
    )
    (call,) = (one for one in found if isinstance(one, ModelCalled))
    assert call.tokens == Tokens(completion=3)


def test_tokens_of_a_step_that_nobody_can_have_counted_are_left_out(tmp_path: Path) -> None:
    metrics = {"prompt_tokens": -5, "completion_tokens": 3, "cost_usd": -1.0}
    steps = [{"source": "agent", "message": "Hi", "metrics": metrics}]
    path = lines(tmp_path / "t.json", {"schema_version": "1", "steps": steps})
    (call,) = (one for one in events(read(path, AtifImporter())) if isinstance(one, ModelCalled))
    assert (call.tokens, call.cost) == (Tokens(completion=3), None)


@pytest.mark.parametrize("stamp", [1e300, 10**400, 1_767_261_600_000, -5])
def test_a_number_that_is_no_time_is_none(tmp_path: Path, stamp: float) -> None:
    said = {"role": "user", "content": "Hi", "timestamp": stamp}
    found = events(
        read(lines(tmp_path / "c.jsonl", {"id": "c", "messages": [said]}), ChatImporter())
    )
    assert isinstance(found[0], SessionOpened)
    assert found[0].clock == "virtual"


@pytest.mark.parametrize("wrong", [{"final_metrics": {"total_prompt_tokens": "x"}}, {"agent": 5}])
def test_a_part_of_a_document_of_another_type_is_named(tmp_path: Path, wrong: object) -> None:
    assert isinstance(wrong, dict)
    steps = [{"source": "user", "message": "Hi"}]
    path = lines(tmp_path / "t.json", {"schema_version": "1", "steps": steps, **wrong})
    (part,) = wrong
    try:
        said = [one.what for one in read(path, AtifImporter()) if isinstance(one, Diagnostic)]
    except InvalidInput as error:
        said = [str(error)]
    assert f"{path}, {part}: Expected" in said[0]


def test_a_path_that_cannot_be_followed_in_a_document_is_a_problem_of_it(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(
        '[session]\nid = "$..id"\n[message]\neach = "$.said[*]"\nrole = "$.role"\ntext = "$.text"\n'
        '[roles]\nuser = "human"\n'
    )
    deep = json.loads('{"a":' * 200 + "1" + "}" * 200)
    said = [{"role": "user", "text": "Hi"}]
    path = lines(tmp_path / "s.jsonl", {"said": said, "deep": deep}, {"said": said})
    found = read(path, MappingImporter(load_mapping(tmp_path / "m.toml")))
    assert problems(found) == [f"{path}, line 1"]
    assert any(isinstance(one, MessageSent) for one in events(found))


async def test_what_nests_too_deeply_for_an_importer_is_refused_in_one_line(tmp_path: Path) -> None:
    class Deep:
        name = "deep"
        about = "made up"
        recognises = Scripted([]).recognises

        def read(self, source: Path, reading: Reading) -> Iterator[Found]:
            yield Diagnostic("difference", "so far", "here")
            raise RecursionError

    with pytest.raises(InvalidInput, match="nests too deeply"):
        preview_foreign(tmp_path, Deep(), Reading())
    async with MemoryLog() as log:
        with pytest.raises(InvalidInput, match="nests too deeply"):
            await import_foreign(log, tmp_path, Deep())


async def test_a_file_that_goes_away_while_it_is_read_is_refused(tmp_path: Path) -> None:
    class Gone:
        name = "gone"
        about = "made up"
        recognises = Scripted([]).recognises

        def read(self, source: Path, reading: Reading) -> Iterator[Found]:
            yield from ()
            (source / "not there").read_bytes()

    async with MemoryLog() as log:
        with pytest.raises(InvalidInput, match="No such file"):
            await import_foreign(log, tmp_path, Gone())


async def test_branches_of_a_session_that_was_refused_are_not_taken() -> None:
    def said(session: str, instance: str, origin: Origin | None = None) -> list[Found]:
        opened = SessionOpened("t", instance, (), clock="virtual", forked_from=origin)
        drafts = (by("environment", opened), by("human", MessageSent(text="Hi")))
        return [Foreign(session, TRACE, draft) for draft in drafts]

    async with MemoryLog() as log:
        await import_foreign(log, Path(), Scripted(said("s", "one")))
        other = [*said("s", "two"), *said("s-branch", "two", Origin(session="s", version=2))]
        taken = await import_foreign(log, Path(), Scripted(other), keep_going=True)
        assert (taken.forks, taken.records) == (0, 0)
        assert [summary.session async for summary in log.sessions()] == ["s"]


def test_links_that_lead_back_and_pipes_are_not_followed(tmp_path: Path) -> None:
    inner = tmp_path / "a"
    inner.mkdir()
    lines(inner / "c.jsonl", {"id": "c", "messages": [{"role": "user", "content": "Hi"}]})
    (inner / "up").symlink_to("..")
    (tmp_path / "here").symlink_to(".")
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(InvalidInput, match="it is not a regular file"):
        recognise(tmp_path / "pipe.jsonl")
    for importer in (DirectoryImporter(), DirectoryImporter(ChatImporter())):
        assert importer.recognises(tmp_path, None)
        assert len(events(read(tmp_path, importer))) == 2


def test_what_the_program_put_around_a_message_is_found_in_linear_time() -> None:
    many = 100_000
    space = " " * many
    assert command_in(f"<command-name>{space}x<") is None
    assert command_in(f"<command-name>/review</command-name><command-args>{space}") == "/review"
    assert typed_part("<system-reminder>" * many) == "<system-reminder>" * many
    assert typed_part(f"<system-reminder {'<system-reminder ' * many}").endswith(" ")
    text = "a<system-reminder>x</system-reminder>b<ide_selection>c"
    assert typed_part(text) == "ab<ide_selection>c"


# --- spans ----------------------------------------------------------------------------------------


def spans(name: str, *attributes: tuple[str, object]) -> list[Span | Diagnostic]:
    held = [("gen_ai.operation.name", {"stringValue": "chat"}), *attributes]
    span = {
        "traceId": name,
        "spanId": name,
        "startTimeUnixNano": "1767261600000000000",
        "attributes": [{"key": key, "value": value} for key, value in held],
    }
    data = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    return list(spans_of_request(data.encode(), "the request"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gen_ai.usage.input_tokens", {"intValue": "9" * 5000}),
        ("gen_ai.usage.input_tokens", {"intValue": "--5"}),
        ("gen_ai.usage.input_tokens", {"intValue": "-5"}),
        ("gen_ai.usage.input_tokens", {"stringValue": "1e999"}),
        (f"gen_ai.prompt.{'9' * 5000}.role", {"stringValue": "user"}),
    ],
)
def test_a_number_in_a_span_that_makes_no_sense_is_passed_over(key: str, value: object) -> None:
    (span,) = spans("t", (key, value))
    assert isinstance(span, Span)
    assert span.tokens is None


def test_a_path_in_the_name_of_an_attribute_is_not_followed_without_end() -> None:
    (found,) = spans("t", ("gen_ai.prompt" + ".0" * 5000, {"stringValue": "x"}))
    assert isinstance(found, Diagnostic)
    assert "too deeply" in found.what


async def test_a_span_that_cannot_be_read_keeps_no_other_from_being_recorded() -> None:
    messages = '{"messages":[' * 480 + "]}" * 480
    deep = spans("deep", ("gen_ai.input.messages", {"stringValue": messages}))
    good = spans("good", ("gen_ai.output.messages", {"stringValue": "Yes"}))
    async with MemoryLog() as log:
        live = LiveTraces(log)
        await live.take([one for one in (*deep, *good) if isinstance(one, Span)], 100)
        await live.record(anyio.current_time(), everything=True)
        said = [record.event async for record in log.read("good")]
    assert any(isinstance(event, MessageSent) and event.text == "Yes" for event in said)


@pytest.mark.parametrize("circle", [False, True])
def test_spans_that_nest_without_end_are_looked_at_from_the_inside(
    monkeypatch: pytest.MonkeyPatch, circle: bool
) -> None:
    """Each span looks at a number of those around it, so that 3,000 take 3,000 times as long as one."""
    count, looks = 3_000, 0

    class Counted(dict[tuple[str, str], object]):
        def get(self, key: object, default: object = None) -> object:
            nonlocal looks
            looks += 1
            return super().get(key, default)  # type: ignore[call-overload]

    reader = ConversationReader()
    monkeypatch.setattr(reader, "_places", Counted())
    parents = [str(at - 1) for at in range(count)]
    spans = [
        Span(id=str(at), trace="t", where="", name="chat", kind="model", start=1.0, parent=parent)
        for at, parent in enumerate(parents)
    ]
    if circle:
        spans[0] = msgspec.structs.replace(spans[0], parent=str(count - 1))
    assert list(reader.read(spans)) is not None
    assert looks <= 3 * count * LEVELS
