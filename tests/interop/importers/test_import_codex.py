"""Rollouts of Codex: typed input, failures, tokens of a running total, files of a patch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from duolog.engine.events import (
    ActionResolved,
    MessageSent,
    ModelCalled,
    Origin,
    SessionOpened,
    SnapshotTaken,
    TurnYielded,
    Unknown,
)
from duolog.interop.importers.codex import CodexImporter
from duolog.interop.importers.protocol import Foreign, Reading
from duolog.interop.importers.registry import recognise
from duolog.testing import check_importer
from foreign_logs import read, trace_of, write_lines

Json = dict[str, Any]


def line(kind: str, **payload: object) -> Json:
    return {"timestamp": "2026-01-01T10:00:00.000Z", "type": kind, "payload": payload}


def said(role: str, text: str) -> Json:
    kind = "input_text" if role == "user" else "output_text"
    part = {"type": kind, "text": text}
    return line("response_item", type="message", role=role, content=[part])


def counted(prompt: int, completion: int) -> Json:
    total = {"input_tokens": prompt, "cached_input_tokens": 1, "output_tokens": completion}
    return line("event_msg", type="token_count", info={"total_token_usage": total})


def called(id: str, name: str, **arguments: object) -> Json:
    written = json.dumps(arguments)
    return line("response_item", type="function_call", call_id=id, name=name, arguments=written)


def returned(id: str, output: str, code: int) -> Json:
    text = json.dumps({"output": output, "metadata": {"exit_code": code}})
    return line("response_item", type="function_call_output", call_id=id, output=text)


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** Update File: b\n@@\n-x\n*** End"
    return write_lines(
        tmp_path / "rollout.jsonl",
        [
            line("session_meta", id="r-1", cwd="/w", cli_version="1"),
            said("user", "<environment_context>\n</environment_context>"),
            said("user", "# Context from my IDE setup:\n\n## My request for Codex:\nAdd it\n"),
            line("event_msg", type="user_message", message="Add it"),
            line("turn_context", model="m-1"),
            line("event_msg", type="token_count", info=None),
            called("c1", "shell", command=["ls"]),
            returned("c1", "no such file", 2),
            counted(10, 2),
            counted(10, 2),
            called("c2", "apply_patch", input=patch),
            returned("c2", "Success", 0),
            counted(30, 5),
            line("event_msg", type="turn_aborted", reason="interrupted"),
            line("event_msg", type="something_new", x=1),
            line("event_msg", type=["of", "no", "kind"]),
            counted(4, 1),
            said("assistant", "Done."),
            line("event_msg", type="agent_message", message="Done."),
        ],
    )


def test_a_rollout_is_a_session(rollout: Path) -> None:
    events, diagnostics = read(CodexImporter(), rollout)
    assert not diagnostics
    trace = trace_of(events)
    kept = [record.event for record in trace]
    assert {record.session for record in trace} == {"r-1"}
    texts = [
        (record.role, record.event.text)
        for record in trace
        if isinstance(record.event, MessageSent) and record.role != "environment"
    ]
    assert texts == [("human", "Add it"), ("agent", "Done.")]
    results = [(one.outcome, one.error) for one in kept if isinstance(one, ActionResolved)]
    assert results == [("failed", "no such file"), ("ok", None)]
    assert [one.reason for one in kept if isinstance(one, TurnYielded)] == [
        "interrupted: interrupted"
    ]
    assert [one.kind for one in kept if isinstance(one, Unknown)] == [
        "codex.something_new",
        "codex.['of', 'no', 'kind']",
    ]


def test_running_totals_are_counted_once_and_begin_again_when_resumed(rollout: Path) -> None:
    events, _ = read(CodexImporter(), rollout)
    used = [
        (event.model, event.tokens.prompt, event.tokens.completion)
        for event in (one.draft.event for one in events)
        if isinstance(event, ModelCalled)
    ]
    assert used == [("m-1", 10, 2), ("m-1", 20, 3), ("m-1", 4, 1)]


def test_a_file_that_a_patch_adds_is_a_snapshot(rollout: Path) -> None:
    events, _ = read(CodexImporter(), rollout)
    [added] = [one.draft.event for one in events if isinstance(one.draft.event, SnapshotTaken)]
    assert added.content == {"a.txt": "one\ntwo\n"}
    assert added.shown == {"a.txt": "@@ -0,0 +1,2 @@\n+one\n+two"}


def said_in(path: Path) -> list[tuple[str, str, str]]:
    events, diagnostics = read(CodexImporter(), path)
    assert not [one for one in diagnostics if one.kind == "problem"]
    return [
        (one.session, one.draft.role, one.draft.event.text)
        for one in events
        if isinstance(one.draft.event, MessageSent) and one.draft.role != "environment"
    ]


def test_turns_that_were_taken_back_are_a_fork(tmp_path: Path) -> None:
    lines = [line("session_meta", id="r")]
    for number in (1, 2, 3):
        lines += [said("user", f"q{number}"), said("assistant", f"a{number}")]
        if number == 2:
            lines.append(line("event_msg", type="thread_rolled_back", num_turns=1))
    path = write_lines(tmp_path / "r.jsonl", lines)
    told: dict[str, list[str]] = {}
    for session, _, text in said_in(path):
        told.setdefault(session, []).append(text)
    assert told == {"r": ["q1", "a1", "q3", "a3"], "r-branch-6": ["q1", "a1", "q2", "a2"]}
    events, _ = read(CodexImporter(), path)
    opened = [one.draft.event for one in events if isinstance(one.draft.event, SessionOpened)]
    assert [one.forked_from for one in opened] == [None, Origin(session="r", version=3)]


def test_more_turns_than_there_are_take_all_back(tmp_path: Path) -> None:
    back = line("event_msg", type="thread_rolled_back", num_turns=9)
    lines = [line("session_meta", id="r"), said("user", "q1"), said("assistant", "a1"), back]
    path = write_lines(tmp_path / "r.jsonl", [*lines, said("user", "q2")])
    told = [(session, text) for session, _, text in said_in(path)]
    assert told == [("r", "q2"), ("r-branch-4", "q1"), ("r-branch-4", "a1")]


def test_what_is_shown_again_or_says_nothing_is_left_out(tmp_path: Path) -> None:
    lines = [
        line("session_meta", id="r"),
        line("event_msg", type="task_started", turn_id="1"),
        said("user", "q"),
        line("event_msg", type="exec_command_end", aggregated_output="x" * 1000),
        line("compacted", message="so far", replacement_history=[{"x": "y" * 1000}]),
        line("of_tomorrow", x=1),
    ]
    events, diagnostics = read(CodexImporter(), write_lines(tmp_path / "r.jsonl", lines))
    kept = [one.draft.event for one in events if isinstance(one.draft.event, Unknown)]
    assert [one.kind for one in kept] == ["codex.of_tomorrow"]
    assert [one.what for one in diagnostics] == [
        "left out: task_started events",
        "left out: exec_command_end events",
        "left out: compacted lines",
    ]


def test_a_result_without_its_call_is_left_out_and_named(tmp_path: Path) -> None:
    lines = [line("session_meta", id="r"), said("user", "q"), returned("c0", "ok", 0)]
    events, diagnostics = read(CodexImporter(), write_lines(tmp_path / "r.jsonl", lines))
    assert len(events) == 2
    assert [one.kind for one in diagnostics] == ["difference"]


def test_nobody_typed_what_a_subagent_was_asked(tmp_path: Path) -> None:
    meta = line("session_meta", id="r", source={"subagent": "review"})
    lines = [meta, said("user", "Review it"), said("assistant", "Good.")]
    path = write_lines(tmp_path / "r.jsonl", lines)
    assert said_in(path) == [("r", "agent", "Good.")]


def test_rollouts_of_old_are_items_only(tmp_path: Path) -> None:
    def item(line: Json) -> Json:
        payload: Json = line["payload"]
        return payload

    head: Json = {"id": "r", "timestamp": "2025-06-01T09:00:00.000Z", "instructions": None}
    lines: list[Json] = [
        head,
        {"record_type": "state"},
        item(said("user", "Hi")),
        item(said("assistant", "Yes")),
    ]
    path = write_lines(tmp_path / "r.jsonl", lines)
    assert getattr(recognise(path), "name", None) == "codex"
    assert said_in(path) == [("r", "human", "Hi"), ("r", "agent", "Yes")]


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno", "failed"),
        ("Chunk ID: 7f\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\n", "failed"),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\n", "ok"),
        ("Process exited with code 1 is what I found", "ok"),
        ([{"type": "output_text", "text": "Done!"}], "ok"),
    ],
)
def test_exit_codes_stand_in_texts_too(tmp_path: Path, output: object, outcome: str) -> None:
    result = line("response_item", type="function_call_output", call_id="c", output=output)
    path = write_lines(tmp_path / "r.jsonl", [called("c", "exec_command", cmd="x"), result])
    events, _ = read(CodexImporter(), path)
    found = [one.draft.event for one in events if isinstance(one.draft.event, ActionResolved)]
    assert [one.outcome for one in found] == [outcome]


def test_only_what_was_typed_around_files_and_images_is_a_message(tmp_path: Path) -> None:
    image = [{"type": "input_text", "text": "<image name=[Image #1]>"}, {"type": "input_image"}]
    image += [
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "Like this"},
    ]
    lines = [
        said(
            "user",
            "# Files mentioned by the user:\n\n## a.py: /a.py\n\n## My request for Codex:\nFix\n",
        ),
        line("response_item", type="message", role="user", content=image),
        said("user", "<user_action>\n<context>review</context></user_action>"),
        said(
            "user", "Another language model started to solve this problem and produced a summary of"
        ),
        said("developer", "Be brief."),
    ]
    path = write_lines(tmp_path / "r.jsonl", lines)
    assert [text for _, _, text in said_in(path)] == ["Fix", "[input_image]\nLike this"]


def test_a_broken_line_is_named(rollout: Path) -> None:
    with rollout.open("a", encoding="utf-8") as file:
        file.write('{"type": "response_item"}\n{"type": \n')
    _, diagnostics = read(CodexImporter(), rollout)
    assert [diagnostic.where.rpartition(" ")[2] for diagnostic in diagnostics] == ["20", "21"]


@pytest.mark.asyncio
async def test_the_importer_keeps_the_contract(rollout: Path) -> None:
    await check_importer(CodexImporter(), rollout)


def test_what_is_added_while_a_file_is_read_waits_for_the_next_time(tmp_path: Path) -> None:
    """Else lines could go to a session that was named before its first line was there."""
    path = tmp_path / "rollout.jsonl"
    lines = [line("session_meta", id="r-1"), said("user", "x" * 20_000), said("user", "And?")]
    path.write_bytes(b"")
    nothing = CodexImporter().read(path, Reading(growing=True))
    assert not any(isinstance(one, Foreign) for one in nothing)
    write_lines(path, lines[:2])
    found = CodexImporter().read(path, Reading(growing=True))
    first = next(found)
    write_lines(path, lines)
    seen = [first, *found]
    assert [one.draft.event for one in seen if isinstance(one, Foreign)][1:] == [
        MessageSent(text="x" * 20_000)
    ]
