"""Events of OpenHands, of both generations, and the output of evaluations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    ModelCalled,
    NoteTaken,
    SessionClosed,
    SnapshotTaken,
    UtilityScored,
)
from duolog.interop.importers.directory import DirectoryImporter
from duolog.interop.importers.openhands import OpenHandsImporter
from duolog.testing import check_importer
from foreign_logs import events_of, read, write_lines

Json = dict[str, Any]

OLD: list[Json] = [
    {"id": 0, "source": "user", "action": "message", "args": {"content": "Write it"}},
    {"id": 1, "source": "user", "action": "recall", "args": {}},
    {"id": 2, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "I look."}},
    {
        "id": 3,
        "source": "agent",
        "observation": "run",
        "cause": 2,
        "content": "none",
        "extras": {"metadata": {"exit_code": 2}},
    },
    {"id": 4, "source": "agent", "action": "edit", "args": {"path": "a"}},
    {
        "id": 5,
        "source": "agent",
        "observation": "edit",
        "cause": 4,
        "content": "+x",
        "extras": {"path": "a", "new_content": "x\n"},
    },
    {"id": 6, "source": "agent", "observation": "null", "cause": 1, "content": ""},
    {"id": 7, "source": "agent", "action": "finish", "message": "Done.", "args": {}},
]


def stats(prompt: int) -> Json:
    usage = {"prompt_tokens": prompt, "completion_tokens": prompt // 10}
    metrics = {"default": {"model_name": "m", "accumulated_token_usage": usage}}
    return {
        "kind": "ConversationStateUpdateEvent",
        "id": f"s{prompt}",
        "source": "environment",
        "key": "stats",
        "value": {"usage_to_metrics": metrics},
    }


def observed(call: str, text: str, *, failed: bool = False) -> Json:
    content = [{"type": "text", "text": text}]
    return {
        "kind": "ObservationEvent",
        "id": f"o{call}",
        "source": "environment",
        "tool_name": "terminal",
        "tool_call_id": call,
        "observation": {"content": content, "is_error": failed},
    }


NEW: list[Json] = [
    observed("lost", "early"),
    stats(100),
    {
        "kind": "ActionEvent",
        "id": "a1",
        "source": "agent",
        "thought": [],
        "tool_name": "terminal",
        "tool_call_id": "c1",
        "action": {"kind": "TerminalAction", "command": "ls"},
    },
    observed("c1", "no", failed=True),
    stats(250),
]


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_observations_are_outcomes_of_the_actions_that_they_name(tmp_path: Path) -> None:
    events, _ = read(OpenHandsImporter(), write(tmp_path / "log.json", OLD))
    found = [event for _, event in events_of(events)]
    said = [(who, event.text) for who, event in events_of(events) if isinstance(event, MessageSent)]
    assert said == [("user", "Write it"), ("assistant", "I look."), ("assistant", "Done.")]
    outcomes = [(one.outcome, one.error) for one in found if isinstance(one, ActionResolved)]
    assert outcomes == [("failed", "none"), ("ok", None)]
    [edit] = [one for one in found if isinstance(one, SnapshotTaken)]
    assert (edit.content, edit.shown) == ({"a": "x\n"}, {"a": "@@ -0,0 +1 @@\n+x"})


def test_a_result_whose_call_is_not_in_the_file_is_kept(tmp_path: Path) -> None:
    events, diagnostics = read(OpenHandsImporter(), write_lines(tmp_path / "log.jsonl", NEW))
    assert not [diagnostic for diagnostic in diagnostics if diagnostic.kind == "problem"]
    calls = [
        (who, event.name) for who, event in events_of(events) if isinstance(event, ActionTaken)
    ]
    assert calls == [("environment", "terminal"), ("assistant", "terminal")]
    used = [e.tokens.prompt for _, e in events_of(events) if isinstance(e, ModelCalled)]
    assert used == [100, 150]


def test_a_result_of_an_evaluation_is_a_session_with_its_score(tmp_path: Path) -> None:
    line = {
        "instance_id": "i-1",
        "history": OLD,
        "metadata": {"llm_config": {"model": "m"}},
        "test_result": {"report": {"resolved": True}},
    }
    events, _ = read(OpenHandsImporter(), write_lines(tmp_path / "output.jsonl", [line, line]))
    [score, _] = [one.draft.event for one in events if isinstance(one.draft.event, UtilityScored)]
    assert score.value == 1.0
    assert {one.session.startswith("i-1-") for one in events} == {True}


def test_pairs_of_old_give_the_same_as_a_list(tmp_path: Path) -> None:
    action: Json = {"source": "agent", "action": "run", "args": {"command": "ls"}}
    told = {"source": "user", "action": "message", "args": {"content": "Do it"}}
    result = {"source": "agent", "observation": "run", "content": "a.py", "extras": {}}
    line = {"instance_id": "i", "history": [[told, {}], [action, result]], "error": "no more"}
    events, diagnostics = read(OpenHandsImporter(), write_lines(tmp_path / "output.jsonl", [line]))
    assert not [diagnostic for diagnostic in diagnostics if diagnostic.kind == "problem"]
    found = [event for _, event in events_of(events)]
    assert [one.observation for one in found if isinstance(one, ActionResolved)] == ["a.py"]
    assert [one.reason for one in found if isinstance(one, SessionClosed)] == ["failed"]


def test_a_directory_with_a_file_for_each_event_is_one_conversation(tmp_path: Path) -> None:
    folder = tmp_path / "all" / "conversation" / "events"
    folder.mkdir(parents=True)
    (folder.parent / "base_state.json").write_text("{}", encoding="utf-8")
    for number, event in enumerate(OLD):
        write(folder / f"event-{number:05}-x{number}.json", event)
    events, diagnostics = read(DirectoryImporter(), tmp_path / "all")
    assert not [diagnostic for diagnostic in diagnostics if diagnostic.kind == "problem"]
    assert len({one.session for one in events}) == 1
    whole, _ = read(OpenHandsImporter(), write(tmp_path / "log.json", OLD))
    assert [one.draft.event for one in events[1:]] == [one.draft.event for one in whole[1:]]


@pytest.mark.parametrize("events", [OLD, NEW])
def test_a_conversation_that_goes_on_is_the_same_session(
    events: list[Json], tmp_path: Path
) -> None:
    whole, _ = read(OpenHandsImporter(), write_lines(tmp_path / "log.jsonl", events))
    for end in range(1, len(events)):
        source = write_lines(tmp_path / "log.jsonl", events[:end])
        begun, _ = read(OpenHandsImporter(), source)
        assert [one.session for one in begun] == [one.session for one in whole[: len(begun)]]
        assert [one.draft for one in begun[1:]] == [one.draft for one in whole[1 : len(begun)]]


def test_thoughts_in_a_message_are_none_and_only_edits_that_change_a_file_are_snapshots(
    tmp_path: Path,
) -> None:
    thought = [{"type": "text", "text": "<think>Hm.</think>\n\nI edit."}]
    action = {**NEW[2], "thought": thought}
    edit = {"path": "/a", "old_content": "one\n", "new_content": "two\n", "content": []}
    edited = {**observed("c1", ""), "observation": edit}
    again = {**action, "id": "a2", "tool_call_id": "c2", "thought": []}
    same = {**observed("c2", ""), "observation": {**edit, "old_content": "two\n"}}
    source = write_lines(tmp_path / "log.jsonl", [action, edited, again, same])
    events, _ = read(OpenHandsImporter(), source)
    found = [event for _, event in events_of(events)]
    assert [one.text for one in found if isinstance(one, NoteTaken | MessageSent)] == [
        "Hm.",
        "I edit.",
    ]
    [snapshot] = [one for one in found if isinstance(one, SnapshotTaken)]
    assert snapshot.content == {"/a": "two\n"}
    assert snapshot.shown == {"/a": "@@ -1 +1 @@\n-one\n+two"}


@pytest.mark.asyncio
async def test_the_importer_keeps_the_contract(tmp_path: Path) -> None:
    await check_importer(OpenHandsImporter(), write(tmp_path / "log.json", OLD))
    await check_importer(OpenHandsImporter(), write_lines(tmp_path / "log.jsonl", NEW))


def decisions(tmp_path: Path, events: list[Json]) -> list[tuple[bool, str | None]]:
    found, diagnostics = read(OpenHandsImporter(), write_lines(tmp_path / "x.jsonl", events))
    assert not diagnostics
    held = [event for _, event in events_of(found)]
    given = [event for event in held if isinstance(event, ApprovalGiven)]
    assert sum(isinstance(event, ApprovalAsked) for event in held) == len(given)
    return [(event.approved, event.source) for event in given]


def test_a_confirmation_says_who_decided_if_the_trace_does(tmp_path: Path) -> None:
    def acts(call: str) -> Json:
        return {
            "kind": "ActionEvent", "id": f"a{call}", "source": "agent", "tool_name": "terminal",
            "tool_call_id": call, "action": {"kind": "T", "command": "ls"}, "thought": [],
        }  # fmt: skip

    def rejects(call: str, **more: str) -> Json:
        return {
            "kind": "UserRejectObservation", "id": f"r{call}", "source": "environment",
            "tool_name": "terminal", "tool_call_id": call, "rejection_reason": "no", **more,
        }  # fmt: skip

    waits = {
        "kind": "ConversationStateUpdateEvent", "source": "environment",
        "key": "execution_status", "value": "waiting_for_confirmation",
    }  # fmt: skip
    events: list[Json] = [
        acts("free"), observed("free", "fine"),
        acts("one"), acts("two"), waits, observed("one", "done"), rejects("two"),
        acts("three"), waits | {"id": "w2"}, rejects("three", rejection_source="hook"),
    ]  # fmt: skip
    found = decisions(tmp_path, events)
    assert found == [(True, None), (False, "person"), (False, "rule")]


def test_an_old_confirmation_is_by_whoever_changed_the_state(tmp_path: Path) -> None:
    def runs(number: int) -> Json:
        args = {"command": "ls", "confirmation_state": "awaiting_confirmation"}
        return {"id": number, "source": "agent", "action": "run", "args": args}

    def state(number: int, text: str) -> Json:
        args = {"agent_state": text}
        return {"id": number, "source": "user", "action": "change_agent_state", "args": args}

    def saw(number: int, cause: int, kind: str = "run") -> Json:
        return {"id": number, "source": "agent", "observation": kind, "cause": cause, "content": ""}

    start = {"id": 0, "source": "user", "action": "message", "args": {"content": "Tidy up"}}
    events = [
        start, runs(1), state(2, "user_confirmed"), saw(3, 1),
        runs(4), state(5, "user_rejected"), saw(6, 4, "user_rejected"),
        runs(7), saw(8, 7, "user_rejected"),
    ]  # fmt: skip
    found = decisions(tmp_path, events)
    assert found == [(True, "person"), (False, "person"), (False, "person")]
