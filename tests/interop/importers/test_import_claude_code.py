"""Session files of Claude Code: what people typed, the main line, branches, subagents and edits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    MessageSent,
    ModelCalled,
    SessionOpened,
    SnapshotTaken,
    TurnYielded,
    Unknown,
)
from duolog.engine.log.open import MemoryLog
from duolog.engine.records import TRACE
from duolog.interop.importers.claude_code.entries import Envelope, envelopes_in
from duolog.interop.importers.claude_code.sessions import ClaudeCodeImporter, EntryTree
from duolog.interop.importers.protocol import Diagnostic, Foreign, Reading
from duolog.interop.importers.run import import_foreign
from duolog.testing import check_importer
from foreign_logs import read, trace_of, write_lines
from step_counter import count_lines

Json = dict[str, Any]


class Lines:
    """Writes the lines of a session, each after the one before it unless it says otherwise."""

    def __init__(self, session: str = "s1") -> None:
        self.lines: list[Json] = []
        self._session = session
        self._last: str | None = None

    def add(self, type: str, **more: object) -> str:
        uuid = f"u{len(self.lines)}"
        self.lines.append(
            {
                "parentUuid": more.pop("parent", self._last),
                "isSidechain": False,
                "sessionId": self._session,
                "type": type,
                "uuid": uuid,
                "timestamp": f"2026-01-01T10:00:{len(self.lines):02}.000Z",
                **more,
            }
        )
        self._last = uuid
        return uuid

    def user(self, content: object, **more: object) -> str:
        return self.add("user", message={"role": "user", "content": content}, **more)

    def agent(self, *blocks: Json, reply: str, tokens: int = 1, **more: object) -> str:
        usage = {"input_tokens": 10, "output_tokens": tokens}
        held = {"id": reply, "model": "m", "role": "assistant", "content": blocks, "usage": usage}
        return self.add("assistant", message=held, **more)

    def result(self, call: str, content: str, *, kept: object = None, **more: object) -> str:
        failed = more.pop("error", False)
        block = {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": failed}
        return self.user([block], toolUseResult=kept, **more)


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def call(id: str, tool: str = "Bash", **arguments: object) -> Json:
    return {"type": "tool_use", "id": id, "name": tool, "input": arguments}


def imported(path: Path) -> list[Foreign]:
    events, diagnostics = read(ClaudeCodeImporter(), path)
    assert not [diagnostic for diagnostic in diagnostics if diagnostic.kind == "problem"]
    return events


def events_in(path: Path, *kinds: type[Event | Unknown]) -> list[Any]:
    return [record.event for record in trace_of(imported(path)) if isinstance(record.event, kinds)]


def test_only_what_was_typed_is_a_message_of_the_human(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Caveat: ...", isMeta=True)
    lines.user("<command-name>/clear</command-name>")
    lines.user("<local-command-stdout>done</local-command-stdout>")
    lines.user([text("<system-reminder>Be\nquick.</system-reminder>"), text("Fix it")])
    lines.agent(text("I look."), reply="r1")
    lines.user([text("[Request interrupted by user]")])
    lines.user("Not that <system-reminder>x</system-reminder>one")
    lines.agent(text("API Error"), reply="r2", isApiErrorMessage=True)
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    assert said_in(path) == [("human", "Fix it"), ("agent", "I look."), ("human", "Not that one")]
    assert events_in(path, TurnYielded) == [TurnYielded(reason="interrupted by the user")]


def test_what_shows_progress_beside_a_call_changes_nothing_that_was_read(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Test it")
    lines.agent(text("I do."), reply="r1", tokens=1)
    asked = lines.agent(call("c1"), reply="r1", tokens=30)
    lines.add("progress", data={"type": "bash_progress"})
    lines.add("progress", data={"type": "bash_progress"})
    lines.result("c1", "passed", parent=asked)
    lines.agent(text("Passed."), reply="r2")
    lines.user("Thanks")
    whole, _ = read(ClaudeCodeImporter(), write_lines(tmp_path / "s.jsonl", lines.lines))
    for end in range(1, len(lines.lines)):
        path = write_lines(tmp_path / "s.jsonl", lines.lines[:end])
        begun, _ = read(ClaudeCodeImporter(), path, Reading(growing=True))
        assert [one.draft for one in begun[1:]] == [one.draft for one in whole[1 : len(begun)]]


def test_a_reply_that_goes_on_after_a_result_counts_its_tokens_once(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Hello")
    lines.agent(call("c1"), reply="r1", tokens=5)
    lines.result("c1", "ok")
    lines.agent(call("c2"), reply="r1", tokens=30)
    lines.result("c2", "ok")
    lines.agent(text("Done."), reply="r2", tokens=2)
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    used = [one.tokens for one in events_in(path, ModelCalled)]
    assert sum(one.completion or 0 for one in used) == 32
    assert sum(one.prompt or 0 for one in used) == 20


def test_a_file_may_begin_between_a_call_and_its_result(tmp_path: Path) -> None:
    lines = Lines()
    lines.result("c0", "ok", parent="gone")
    lines.agent(text("Done."), reply="r1")
    events, diagnostics = read(ClaudeCodeImporter(), write_lines(tmp_path / "s.jsonl", lines.lines))
    assert [type(one.draft.event) for one in events] == [SessionOpened, MessageSent, ModelCalled]
    assert [(one.kind, one.what) for one in diagnostics] == [
        ("difference", "left out: a result of a call that is not in the file")
    ]


def test_parts_of_a_reply_count_its_tokens_once(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Hello")
    lines.agent(text("One."), reply="r1", tokens=1)
    lines.agent(call("c1"), reply="r1", tokens=30)
    lines.result("c1", "ok")
    lines.agent(text("Two."), reply="r2", tokens=5)
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    used = [(one.tokens.prompt, one.tokens.completion) for one in events_in(path, ModelCalled)]
    assert used == [(10, 30), (10, 5)]


def test_calls_side_by_side_belong_to_the_main_line(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Both, please")
    first = lines.agent(call("c1"), reply="r1")
    second = lines.agent(call("c2"), reply="r1")
    lines.result("c1", "one", parent=first)
    lines.result("c2", "two", parent=second)
    lines.agent(text("Done."), reply="r2")
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    assert [one.observation for one in events_in(path, ActionResolved)] == ["one", "two"]


def test_a_branch_that_was_left_is_a_fork(tmp_path: Path) -> None:
    lines = Lines()
    start = lines.user("Write it")
    asked = lines.agent(text("In what?"), reply="r1", parent=start)
    lines.user("In C", parent=asked)
    lines.agent(text("C, then."), reply="r2")
    lines.user("In Rust", parent=asked)
    lines.agent(text("Rust, then."), reply="r3")
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    events = imported(path)
    by = {
        name: [one for one in events if one.session == name]
        for name in dict.fromkeys(one.session for one in events)
    }
    main, fork = by.values()
    said = [record.event.text for record in trace_of(main) if isinstance(record.event, MessageSent)]
    assert said == ["Write it", "In what?", "In Rust", "Rust, then."]
    said = [record.event.text for record in trace_of(fork) if isinstance(record.event, MessageSent)]
    assert said == ["Write it", "In what?", "In C", "C, then."]
    opened = fork[0].draft.event
    assert isinstance(opened, SessionOpened)
    assert opened.forked_from is not None
    shared = opened.forked_from.version
    assert opened.forked_from.session == "s1"
    assert [one.draft.event for one in fork[1:shared]] == [
        one.draft.event for one in main[1:shared]
    ]
    assert fork[shared].draft.event == MessageSent(text="In C")


def test_many_branches_take_time_in_proportion(tmp_path: Path) -> None:
    """A thousand answers to one message, of which one was kept."""

    def steps(branches: int) -> int:
        lines = Lines()
        asked = lines.user("Write it")
        for number in range(branches):
            lines.agent(text("C"), reply=f"r{number}", parent=asked)
        path = write_lines(tmp_path / f"{branches}.jsonl", lines.lines)
        entries = [one for one in envelopes_in(path) if isinstance(one, Envelope)]
        counted, found = count_lines(lambda: list(EntryTree(entries).branches()))
        assert len(found) == branches - 1
        return counted

    assert steps(1000) < 11 * steps(100)


def test_branches_that_repeat_ever_more_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session in which every second prompt was written anew: each branch repeats all before it."""
    monkeypatch.setattr("duolog.interop.importers.claude_code.sessions._LEAST", 100)
    lines = Lines()
    trunk = lines.user("Begin")
    for number in range(200):
        lines.user(f"left {number}", parent=trunk)
        trunk = lines.user(f"kept {number}", parent=trunk)
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    found = list(ClaudeCodeImporter().read(path, Reading()))
    diagnostics = [one.what for one in found if isinstance(one, Diagnostic)]
    assert diagnostics == ["further branches, each of which would repeat too much of the session"]
    assert sum(not isinstance(one, Diagnostic) for one in found) < 25 * len(lines.lines)


def test_the_line_goes_on_where_a_summary_took_the_place_of_what_was_before(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Begin")
    lines.agent(text("Begun."), reply="r1")
    lines.add("system", parent=None, subtype="compact_boundary", logicalParentUuid="gone")
    lines.user("This session is continued ...", isCompactSummary=True)
    lines.user("Go on")
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    humans = [text for role, text in said_in(path) if role == "human"]
    assert humans == ["Begin", "Go on"]
    assert [one.kind for one in events_in(path, Unknown)] == ["claude-code.system"]


def test_what_the_program_notes_for_itself_is_left_out_and_the_unknown_kept(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Begin")
    lines.add("system", subtype="turn_duration", durationMs=5)
    lines.add("attachment", attachment={"type": "file", "content": "x" * 1000})
    lines.add("ai-title", aiTitle="Beginning")
    lines.add("system", subtype="of_tomorrow")
    lines.add("attachment", attachment={"type": "of_tomorrow"})
    lines.agent(text("Begun."), reply="r1")
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    events, diagnostics = read(ClaudeCodeImporter(), path)
    kept = [one.draft.event for one in events if isinstance(one.draft.event, Unknown)]
    assert [one.kind for one in kept] == ["claude-code.system", "claude-code.attachment"]
    assert [one.what for one in diagnostics] == [
        "left out: turn_duration entries",
        "left out: file attachment entries",
        "left out: ai-title entries",
    ]


def said_in(path: Path) -> list[tuple[str, str]]:
    return [
        (record.role, record.event.text)
        for record in trace_of(imported(path))
        if isinstance(record.event, MessageSent) and record.role != "environment"
    ]


def test_a_command_for_the_agent_is_a_request_and_one_for_the_program_is_none(
    tmp_path: Path,
) -> None:
    lines = Lines()
    for name in ("/compact", "model", "/review"):
        lines.user(
            f"<command-message>{name} is running</command-message>\n"
            f"<command-name>{name}</command-name>\n<command-args>12 please</command-args>"
        )
    lines.user("Review the request ...", isMeta=True)
    lines.agent(text("It is fine."), reply="r1")
    lines.user(
        "This session is being continued from a previous conversation that ran out of context."
    )
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    assert said_in(path) == [("human", "/review 12 please"), ("agent", "It is fine.")]


def test_what_was_typed_while_the_agent_worked_is_a_message_and_what_tasks_report_is_none(
    tmp_path: Path,
) -> None:
    lines = Lines()
    lines.user("Begin", origin={"kind": "human"})
    lines.agent(call("c1"), reply="r1")
    lines.result("c1", "ok")
    queued = {"type": "queued_command", "prompt": "And the tests", "commandMode": "prompt"}
    lines.add("queue-operation", operation="enqueue", content="And the tests")
    lines.add("attachment", attachment=queued)
    note = {
        "type": "queued_command",
        "prompt": "Task 1 is done",
        "commandMode": "task-notification",
    }
    lines.add("attachment", attachment=note)
    lines.user("Task 2 is done", origin={"kind": "task-notification"})
    lines.add("attachment", attachment={"type": "todo_reminder", "content": []})
    lines.agent(text("Done."), reply="r2")
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    assert said_in(path) == [("human", "Begin"), ("human", "And the tests"), ("agent", "Done.")]


def test_what_was_kept_when_a_session_was_compacted_is_read_once_and_in_its_place(
    tmp_path: Path,
) -> None:
    """A message that is kept hangs on the summary from then on, which follows it in turn."""
    lines = Lines()
    lines.user("Begin")
    lines.agent(text("Begun."), reply="r1")
    boundary = lines.add("system", parent=None, subtype="compact_boundary", logicalParentUuid="u5")
    assert boundary == "u2"
    summary = lines.user("This is a summary", parent=boundary, isCompactSummary=True)
    lines.add("progress", data={})
    lines.agent(text("Kept."), reply="r2", parent=summary)
    lines.user("Go on")
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    said = [text for _, text in said_in(path)]
    assert said == ["Begin", "Begun.", "Kept.", "Go on"]


def test_lines_that_are_there_twice_and_empty_ones_count_once_and_not_at_all(
    tmp_path: Path,
) -> None:
    lines = Lines()
    lines.user("Begin")
    lines.agent(text("Begun."), {"type": "thinking", "thinking": ""}, reply="r1")
    lines.user(None)
    lines.user([{"type": "image", "source": {}}, text("Like this")])
    path = write_lines(tmp_path / "s.jsonl", [*lines.lines, *lines.lines[:2]])
    assert said_in(path) == [
        ("human", "Begin"),
        ("agent", "Begun."),
        ("human", "Like this\n[image]"),
    ]


def test_questions_and_refusals_are_answered_by_the_human(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Plan it")
    lines.agent(call("c1", "ExitPlanMode", plan="First this"), reply="r1")
    lines.result("c1", "User has approved your plan")
    lines.agent(call("c2", "Edit", file_path="a"), reply="r2")
    refusal = "The user doesn't want to proceed with this tool use. ... the user said:\nno, b"
    lines.result("c2", refusal, error=True)
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    asked = events_in(path, ApprovalAsked)
    given = events_in(path, ApprovalGiven)
    assert [one.question for one in asked] == ["First this", "Edit"]
    assert [(one.approved, one.comment) for one in given] == [(True, ""), (False, "no, b")]
    assert [one.outcome for one in events_in(path, ActionResolved)] == ["ok", "failed"]


def test_an_edited_file_is_a_snapshot_with_its_diff(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Rename it")
    lines.agent(call("c1", "Edit", file_path="/a.py"), reply="r1")
    kept = {
        "filePath": "/a.py",
        "oldString": "x",
        "newString": "y",
        "replaceAll": True,
        "originalFile": "x = x\n",
        "structuredPatch": [
            {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-x = x"]}
        ],
    }
    lines.result("c1", "edited", kept=kept)
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    [snapshot] = events_in(path, SnapshotTaken)
    assert snapshot.content == {"/a.py": "y = y\n"}
    assert snapshot.shown == {"/a.py": "@@ -1,1 +1,1 @@\n-x = x"}


def test_a_subagent_beside_its_session_is_an_actor_of_its_own(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Explore")
    lines.agent(call("c1", "Task"), reply="r1")
    lines.result("c1", "found", kept={"agentId": "a7"})
    helper = Lines()
    helper.user("Look around", isSidechain=True, agentId="a7")
    helper.agent(call("h1"), reply="h", isSidechain=True, agentId="a7")
    path = write_lines(tmp_path / "s1.jsonl", lines.lines)
    beside = write_lines(tmp_path / "agent-a7.jsonl", helper.lines)
    trace = trace_of(imported(path))
    acted = [record.actor for record in trace if isinstance(record.event, ActionTaken)]
    assert acted == ["assistant", "a7"]
    assert sum(record.role == "human" for record in trace) == 1
    events, [diagnostic] = read(ClaudeCodeImporter(), beside)
    assert (events, diagnostic.kind) == ([], "difference")


def test_a_broken_line_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Hello")
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"type": 5}\n{"type": "user", "uuid": "z", "message": {"content": [{}]}}\n')
    events, diagnostics = read(ClaudeCodeImporter(), path)
    assert [diagnostic.where.rpartition(" ")[2] for diagnostic in diagnostics] == ["2", "3"]
    assert [one.draft.event for one in events if one.stream == TRACE][1:] == [
        MessageSent(text="Hello")
    ]


def test_a_broken_line_of_a_subagent_is_named(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Explore")
    lines.agent(call("c1", "Task"), reply="r1")
    lines.result("c1", "found", kept={"agentId": "a7"})
    path = write_lines(tmp_path / "s1.jsonl", lines.lines)
    (tmp_path / "agent-a7.jsonl").write_text("{\n", encoding="utf-8")
    events, [diagnostic] = read(ClaudeCodeImporter(), path)
    assert (diagnostic.kind, diagnostic.where) == (
        "problem",
        f"{tmp_path / 'agent-a7.jsonl'}, line 1",
    )
    assert len(events) == 5


def test_a_line_with_a_field_of_another_type_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Hello", version=5)
    lines.agent(text("Hi."), reply="r1", version="2.0")
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    events, [diagnostic] = read(ClaudeCodeImporter(), path)
    assert (diagnostic.kind, diagnostic.where) == ("problem", f"{path}, line 1")
    opened = events[0].draft.event
    assert isinstance(opened, SessionOpened)
    assert opened.config["claude-code"] == {"version": "2.0"}


def test_a_later_count_of_a_reply_that_is_smaller_changes_nothing(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Hello")
    for number, tokens in enumerate((30, 1, 30)):
        lines.agent(call(f"c{number}"), reply="r1", tokens=tokens)
        lines.result(f"c{number}", "ok")
    used = events_in(write_lines(tmp_path / "s.jsonl", lines.lines), ModelCalled)
    assert sum(one.tokens.completion or 0 for one in used) == 30


def cut_in_a_reply() -> list[Json]:
    """A session whose first line says nothing of the program, and whose replies have several parts."""
    lines = Lines()
    lines.add("system", subtype="turn_duration")
    lines.user("Hello", cwd="/work")
    for number in (1, 2):
        lines.agent({"type": "thinking", "thinking": ""}, reply=f"r{number}", tokens=1)
        lines.agent(text("One."), reply=f"r{number}", tokens=1)
        lines.agent(call(f"c{number}"), reply=f"r{number}", tokens=7)
        lines.agent(text("More."), reply=f"r{number}", tokens=30)
        lines.result(f"c{number}", "ok")
    lines.agent(text("Done."), reply="r3", tokens=5)
    return lines.lines


async def counted(log: MemoryLog) -> tuple[list[str], int, int]:
    """What happened but for model calls, and their tokens."""
    events = [record.event async for record in log.read("s1")]
    used = [one.tokens for one in events if isinstance(one, ModelCalled)]
    kinds = [type(one).__name__ for one in events if not isinstance(one, ModelCalled)]
    prompt, completion = (one.prompt or 0 for one in used), (one.completion or 0 for one in used)
    return kinds, sum(prompt), sum(completion)


@pytest.mark.parametrize("cuts", [*([n] for n in range(1, 13)), [3, 4, 5, 9], list(range(1, 13))])
async def test_a_file_that_was_cut_off_in_a_reply_is_taken_on_and_counts_its_tokens_once(
    tmp_path: Path, cuts: list[int]
) -> None:
    lines, path = cut_in_a_reply(), tmp_path / "s.jsonl"
    async with MemoryLog() as whole, MemoryLog() as log:
        for length in (*cuts, len(lines)):
            await import_foreign(log, write_lines(path, lines[:length]), ClaudeCodeImporter())
        await import_foreign(whole, path, ClaudeCodeImporter())
        assert await counted(log) == await counted(whole)
        again = await import_foreign(log, path, ClaudeCodeImporter())
        assert again.records == 0
        assert again.known == len([record async for record in log.read("s1")])


@pytest.mark.asyncio
async def test_the_importer_keeps_the_contract(tmp_path: Path) -> None:
    lines = Lines()
    lines.user("Hello")
    lines.agent(text("Hi."), call("c1"), reply="r1")
    lines.result("c1", "ok")
    path = write_lines(tmp_path / "s.jsonl", lines.lines)
    await check_importer(ClaudeCodeImporter(), path)
