"""Outputs of several files: their snapshots, and the checks of a log."""

from __future__ import annotations

import msgspec
import pytest
from duolog.engine.codec import digest
from duolog.engine.errors import CodecError, InvalidInput
from duolog.engine.events import Event, SnapshotTaken
from duolog.engine.files import Contents, changed_files, output_text, with_digests
from duolog.engine.log.open import MemoryLog
from duolog.engine.records import Draft
from duolog.engine.redacting import redact_secrets
from duolog.engine.rounds import is_blank
from duolog.engine.session.commands import Command, Sender, command_of, edit_files, handle, repeated
from duolog.engine.session.state import TraceState
from duolog.engine.session.view import View
from duolog.engine.validation import written
from duolog.telemetry.recorder import Recorder
from duolog.testing.records import RecordWriter

KEY = "AKIA" + "A" * 16


def trace(*commands: Command) -> list[Event]:
    state = TraceState("s")
    found: list[Event] = []
    for command in commands:
        for draft in handle(command, state, Sender("bot", "agent", 1.0)).drafts:
            state.feed_draft(draft)
            assert isinstance(draft.event, Event)
            found.append(draft.event)
    return found


def snapshot(event: object) -> SnapshotTaken:
    assert isinstance(event, SnapshotTaken)
    return event


def test_a_snapshot_maps_all_files_and_carries_those_that_changed() -> None:
    events = trace(
        edit_files({"a": "one", "b": "two"}),
        edit_files({"b": "three", "a": "one"}, shown={"b": "@@ -1 +1 @@\n-two\n+three"}),
        edit_files({"a": None}),
    )
    first, second, third = map(snapshot, events)
    assert second.content == {"b": "three"}
    assert second.files == {"a": digest("one"), "b": digest("three")}
    assert second.digest == digest(second.files) != first.digest
    assert (third.content, third.files) == ({}, {"b": digest("three")})
    contents = Contents()
    wholes = [contents.whole(one) for one in (first, second, third)]
    assert [one.content for one in wholes] == [
        {"a": "one", "b": "two"},
        {"a": "one", "b": "three"},
        {"b": "three"},
    ]
    assert output_text(wholes[1]) == "=== a ===\none\n=== b ===\nthree"
    assert not is_blank(third)
    assert is_blank(snapshot(trace(edit_files({"a": None}))[0]))


def test_the_view_has_the_texts_of_all_files() -> None:
    state = TraceState("s")
    view = View("bot", "agent")
    for command in (edit_files({"a": "one", "b": "two"}), edit_files({"a": "three"})):
        (draft,) = handle(command, state, Sender("bot", "agent", 1.0)).drafts
        state.feed_draft(draft)
        view.feed(RecordWriter().agent(snapshot(draft.event)))
    assert view.snapshot is not None
    assert view.snapshot.content == {"a": "three", "b": "two"}


@pytest.mark.parametrize(
    "change",
    [
        {"digest": digest("x")},
        {"files": {"a": digest("x")}},
        {"content": {"a": "x"}},
        {"content": {"a": 1}},
        {"content": {"c": "one"}},
        {"content": "one"},
    ],
)
def test_a_log_refuses_digests_that_are_not_those_of_the_texts(change: dict[str, object]) -> None:
    event = msgspec.structs.replace(changed_files({}, {"a": "one"}), **change)
    with pytest.raises(CodecError, match="snapshot"):
        written(event, "SnapshotTaken", 1)


def test_a_text_that_neither_this_snapshot_nor_the_one_before_has_is_refused() -> None:
    before = edit_files({"a": "one"})
    with pytest.raises(InvalidInput, match="no text of 'b'"):
        trace(before, command_of(changed_files({"b": digest("two")}, {"a": "three"})))


def test_an_edit_that_is_sent_again_is_the_same_event() -> None:
    command = edit_files({"a": "one", "b": "two"})
    first, second = trace(edit_files({"a": "one"}), command)
    assert repeated(command, second) == second
    assert repeated(edit_files({"a": "one", "b": "else"}), second) != second
    assert snapshot(first).files is not None


def test_an_event_without_files_is_written_as_before() -> None:
    event = SnapshotTaken(content="x", digest=digest("x"))
    body, back = written(event, "SnapshotTaken", 1)
    assert back == event
    assert with_digests(event) == event
    assert b'"content":"x"' in body


async def test_what_is_redacted_gets_new_digests() -> None:
    draft = Draft(changed_files({}, {"a": f"key {KEY}", "b": "b"}), "bot", "agent", 1.0)
    async with MemoryLog(redact=redact_secrets) as log:
        (record,) = await log.append("s", [draft])
    event = record.event
    assert isinstance(event, SnapshotTaken)
    assert KEY not in str(event)
    assert isinstance(event.content, dict)
    assert event.files == {path: digest(text) for path, text in event.content.items()}


async def test_a_product_records_edits_of_files() -> None:
    async with MemoryLog() as log, Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.human.says("Fix it")
        await s.agent.submits_files({"a": "one", "b": "two"})
        await s.agent.submits_files({"a": "three"}, id="edit", durable=True)
        again = await s.agent.submits_files({"a": "three"}, id="edit", durable=True)
        with pytest.raises(InvalidInput, match="a file must be a text"):
            await s.agent.submits_files({"a": 3})  # type: ignore[dict-item]
        await s.close(durable=True)
        records = [one async for one in log.read_all()]
    found = [one.event for one in records if isinstance(one.event, SnapshotTaken)]
    assert [one.content for one in found] == [{"a": "one", "b": "two"}, {"a": "three"}]
    assert again.version == 4
