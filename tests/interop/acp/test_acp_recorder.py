"""The recorder's events for the messages between an editor and a coding agent."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from duolog.engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ActorFailed,
    ApprovalAsked,
    ApprovalGiven,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    NoteTaken,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    TurnYielded,
    Unknown,
)
from duolog.engine.records import Record
from duolog.interop.acp.lines import Lines
from duolog.interop.acp.recorder import record_copies
from duolog.interop.acp.wire import AGENT, EDITOR, ENDED, LOST, Copy, pack
from duolog.telemetry.sync import SyncLog, open_sync
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

SESSION: Final = "s1"
OPTIONS: Final[JSON] = [
    {"optionId": "a", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "r", "name": "Reject", "kind": "reject_once"},
]


@pytest.fixture
def log() -> Iterator[SyncLog]:
    with open_sync("memory://") as opened:
        yield opened


class Talk:
    """The messages of an editor and an agent, as the proxy copies them."""

    def __init__(self, session: str = SESSION) -> None:
        self.session = session
        self.copies: list[bytes] = []
        self._id = 0

    def write(self, side: int, line: bytes, *, at: float | None = None) -> None:
        self.copies.append(pack(Copy(side, time.time() if at is None else at, line)))

    def send(self, side: int, **message: JSON) -> None:
        self.write(side, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, side: int, method: str, params: Mapping[str, JSON]) -> int:
        self._id += 1
        self.send(side, id=self._id, method=method, params=params)
        return self._id

    def call(
        self, side: int, method: str, params: Mapping[str, JSON], result: Mapping[str, JSON]
    ) -> None:
        """A request and its answer."""
        id = self.ask(side, method, params)
        self.send(AGENT if side == EDITOR else EDITOR, id=id, result=result)

    def begin(self, cwd: str = "/work", *, resumable: bool = False) -> None:
        info: JSON = {"name": "coder", "version": "2"}
        able: JSON = {"loadSession": resumable}
        self.call(EDITOR, "initialize", {}, {"agentInfo": info, "agentCapabilities": able})
        result: dict[str, JSON] = {
            "sessionId": self.session,
            "modes": {"currentModeId": "ask", "availableModes": []},
        }
        self.call(EDITOR, "session/new", {"cwd": cwd, "mcpServers": []}, result)

    def prompt(self, text: str) -> int:
        params: dict[str, JSON] = {
            "sessionId": self.session,
            "prompt": [{"type": "text", "text": text}],
        }
        return self.ask(EDITOR, "session/prompt", params)

    def update(self, kind: str, /, **fields: JSON) -> None:
        update: dict[str, JSON] = {"sessionUpdate": kind, **fields}
        params: JSON = {"sessionId": self.session, "update": update}
        self.send(AGENT, method="session/update", params=params)

    def says(self, *pieces: str, kind: str = "agent_message_chunk") -> None:
        for piece in pieces:
            self.update(kind, content={"type": "text", "text": piece})

    def edits(self, call: str, path: str, old: str | None, new: str) -> None:
        diff: JSON = {"type": "diff", "path": path, "oldText": old, "newText": new}
        self.update("tool_call", toolCallId=call, title="Edit", kind="edit", status="in_progress")
        self.update("tool_call_update", toolCallId=call, status="completed", content=[diff])

    def stop(self, prompt: int, reason: str = "end_turn", **fields: JSON) -> None:
        self.send(AGENT, id=prompt, result={"stopReason": reason, **fields})

    def end(self, status: int = 0) -> None:
        self.write(ENDED, str(status).encode())

    def record(self, log: SyncLog, *, retention: bool = False) -> list[Record]:
        stream = io.BytesIO(b"".join(self.copies))
        record_copies(stream.read, log, ["/bin/coder", "--acp"], retention=retention)
        return trace(log, f"acp/{self.session}")


def trace(log: SyncLog, session: str) -> list[Record]:
    log.session(session).flush()
    return log.read(session)


def events(records: list[Record]) -> list[object]:
    return [record.event for record in records]


def kinds(records: list[Record]) -> list[str]:
    return [f"{record.role}: {record.kind}" for record in records]


def test_a_turn_with_a_plan_a_question_and_an_edit(log: SyncLog) -> None:
    talk = Talk()
    talk.begin()
    prompt = talk.prompt("Fix the greeting")
    talk.says("A greeting ", "is missing.", kind="agent_thought_chunk")
    talk.update("plan", entries=[{"content": "greet", "priority": "high", "status": "pending"}])
    talk.says("I will ", "add ", "it.")
    call: dict[str, JSON] = {"toolCallId": "c", "title": "Edit a.py", "kind": "edit"}
    talk.update("tool_call", **call, status="pending")
    talk.update("tool_call_update", toolCallId="c", rawInput={"path": "/home/ann/a.py"})
    params: dict[str, JSON] = {"sessionId": SESSION, "toolCall": call, "options": OPTIONS}
    chosen: JSON = {"outcome": "selected", "optionId": "a"}
    talk.call(AGENT, "session/request_permission", params, {"outcome": chosen})
    diff: JSON = {"type": "diff", "path": "/home/ann/a.py", "oldText": None, "newText": "hi\n"}
    content: JSON = [{"type": "content", "content": {"type": "text", "text": "written"}}, diff]
    talk.update("tool_call_update", toolCallId="c", status="completed", content=content)
    talk.says("Done.")
    usage: JSON = {"totalTokens": 12, "inputTokens": 9, "outputTokens": 3}
    talk.update("usage_update", used=1, size=2, cost={"amount": 0.5, "currency": "USD"})
    talk.stop(prompt, usage=usage)
    talk.end()
    records = talk.record(log)
    assert kinds(records) == [
        "environment: SessionOpened",
        "human: MessageSent",
        "agent: NoteTaken",
        "agent: ActionTaken",
        "environment: ActionResolved",
        "agent: MessageSent",
        "agent: ActionTaken",
        "agent: ApprovalAsked",
        "human: ApprovalGiven",
        "environment: ActionResolved",
        "agent: SnapshotTaken",
        "agent: MessageSent",
        "agent: ModelCalled",
        "environment: SessionClosed",
    ]
    found = events(records)
    opened, said = found[0], found[1]
    assert isinstance(opened, SessionOpened)
    assert opened.task == "coding"
    assert opened.config["group"] == {"agent": "coder 2"}
    assert isinstance(said, MessageSent)
    assert said.text == "Fix the greeting"
    assert [one.text for one in found if isinstance(one, NoteTaken)] == ["A greeting is missing."]
    messages = [one.text for one in found if isinstance(one, MessageSent)]
    assert messages[1:] == ["I will add it.", "Done."]
    plan, edit = [one for one in found if isinstance(one, ActionTaken)]
    assert plan.name == "update_plan"
    assert edit.name == "edit"
    assert edit.arguments == {"title": "Edit a.py", "input": {"path": "/home/ann/a.py"}}
    given = next(one for one in found if isinstance(one, ApprovalGiven))
    assert (given.asked, given.approved, given.comment) == (8, True, "Always allow")
    done = [one for one in found if isinstance(one, ActionResolved)][1]
    assert (done.action, done.outcome, done.observation) == (7, "ok", "written")
    file = next(one for one in found if isinstance(one, SnapshotTaken))
    assert file.content == {"/home/ann/a.py": "hi\n"}
    assert file.shown == {"/home/ann/a.py": "@@ -0,0 +1 @@\n+hi"}
    used = next(one for one in found if isinstance(one, ModelCalled))
    assert (used.tokens.prompt, used.tokens.completion, used.cost) == (9, 3, 0.5)


@pytest.mark.parametrize(
    ("outcome", "comment"),
    [
        ({"outcome": "selected", "optionId": "r"}, "Reject"),
        ({"outcome": "cancelled"}, "cancelled"),
    ],
)
def test_a_permission_that_is_not_given(
    log: SyncLog, outcome: Mapping[str, JSON], comment: str
) -> None:
    talk = Talk()
    talk.begin()
    talk.prompt("Delete all")
    call: JSON = {"toolCallId": "c", "title": "rm", "kind": "delete"}
    params: dict[str, JSON] = {"sessionId": SESSION, "toolCall": call, "options": OPTIONS}
    talk.call(AGENT, "session/request_permission", params, {"outcome": outcome})
    talk.update("tool_call_update", toolCallId="c", status="failed")
    found = events(talk.record(log))
    asked = next(one for one in found if isinstance(one, ApprovalAsked))
    assert (asked.question, asked.action) == ("rm", "delete")
    given = next(one for one in found if isinstance(one, ApprovalGiven))
    assert (given.approved, given.comment) == (False, comment)
    assert [one.outcome for one in found if isinstance(one, ActionResolved)] == ["failed"]


def test_a_cancellation_ends_the_turn_and_what_is_in_flight(log: SyncLog) -> None:
    talk = Talk()
    talk.begin(resumable=True)
    prompt = talk.prompt("Go on for ever")
    talk.says("I beg")
    talk.update("tool_call", toolCallId="c", title="sleep", kind="execute", status="in_progress")
    talk.send(EDITOR, method="session/cancel", params={"sessionId": SESSION})
    talk.stop(prompt, "cancelled")
    records = talk.record(log)
    assert kinds(records)[2:] == [
        "agent: MessageSent",
        "agent: ActionTaken",
        "environment: ActionResolved",
        "agent: TurnYielded",
    ]
    assert isinstance(resolved := records[4].event, ActionResolved)
    assert (resolved.outcome, resolved.error) == ("failed", "interrupted by the user")
    assert records[5].event == TurnYielded(reason="interrupted by the user")


def test_modes_by_who_chose_them(log: SyncLog) -> None:
    talk = Talk()
    talk.begin()
    id = talk.ask(EDITOR, "session/set_mode", {"sessionId": SESSION, "modeId": "code"})
    talk.update("current_mode_update", currentModeId="code")
    talk.send(AGENT, id=id, result={})
    talk.update("current_mode_update", currentModeId="ask")
    option: dict[str, JSON] = {"sessionId": SESSION, "configId": "model", "value": "large"}
    talk.call(EDITOR, "session/set_config_option", option, {"configOptions": []})
    records = talk.record(log)
    kept = [record for record in records if isinstance(record.event, Unknown)]
    found = [
        (record.role, record.kind, json.loads(record.event.body)["entry"])
        for record in kept
        if isinstance(record.event, Unknown)
    ]
    assert found == [
        ("human", "acp.mode", {"mode": "code"}),
        ("agent", "acp.mode", {"mode": "ask"}),
        ("human", "acp.config_option", {"option": "model", "value": "large"}),
    ]


def test_sessions_of_one_connection_are_sessions_of_the_log(log: SyncLog) -> None:
    one, two, unannounced = Talk("one"), Talk("two"), Talk("subagent")
    one.begin()
    two.copies = unannounced.copies = one.copies
    two._id = 100
    two.begin()
    one.prompt("First")
    two.prompt("Second")
    two.says("2")
    one.says("1")
    two.says("2")
    unannounced.says("I work for somebody else")
    one.end()
    one.record(log)
    texts = {
        name: [e.text for e in events(trace(log, f"acp/{name}")) if isinstance(e, MessageSent)]
        for name in ("one", "two", "subagent")
    }
    assert texts == {
        "one": ["First", "1"],
        "two": ["Second", "22"],
        "subagent": ["I work for somebody else"],
    }


def load(talk: Talk) -> None:
    id = talk.ask(EDITOR, "session/load", {"sessionId": talk.session, "cwd": "/work"})
    talk.says("An old prompt", kind="user_message_chunk")
    talk.says("An old answer")
    talk.send(AGENT, id=id, result={})
    talk.prompt("A new prompt")


def test_a_loaded_session_goes_on_and_its_history_is_not_recorded_again(log: SyncLog) -> None:
    first = Talk()
    first.begin(resumable=True)
    first.prompt("An old prompt")
    first.says("An old answer")
    first.end()
    assert first.record(log)[-1].kind == "MessageSent"  # it stays open
    again = Talk()
    load(again)
    texts = [one.text for one in events(again.record(log)) if isinstance(one, MessageSent)]
    assert texts == ["An old prompt", "An old answer", "A new prompt"]


def test_the_history_of_a_session_that_was_not_recorded_is(log: SyncLog) -> None:
    talk = Talk()
    load(talk)
    records = [record for record in talk.record(log) if record.kind == "MessageSent"]
    assert [
        (one.role, one.event.text) for one in records if isinstance(one.event, MessageSent)
    ] == [
        ("human", "An old prompt"),
        ("agent", "An old answer"),
        ("human", "A new prompt"),
    ]


def test_an_id_that_an_agent_gives_out_again_is_another_session(log: SyncLog) -> None:
    for text in ("First", "Second"):
        talk = Talk()
        talk.begin()
        talk.prompt(text)
        talk.end()
        talk.record(log)
    assert isinstance(said := trace(log, "acp/s1/2")[1].event, MessageSent)
    assert said.text == "Second"


def test_files_are_whole_though_diffs_are_parts(log: SyncLog) -> None:
    talk = Talk()
    talk.begin()
    talk.prompt("Edit")
    talk.edits("1", "/home/ann/a.py", None, "one\ntwo\nthree\n")
    talk.edits("2", "/home/ann/a.py", "two", "2")
    write: dict[str, JSON] = {"sessionId": SESSION, "path": "/home/ann/b.py", "content": "b\n"}
    talk.call(AGENT, "fs/write_text_file", write, {})
    talk.edits("3", "/home/ann/b.py", None, "b\n")  # which was written already
    read: dict[str, JSON] = {"sessionId": SESSION, "path": "/home/ann/c.py"}
    talk.call(AGENT, "fs/read_text_file", read, {"content": "x = 1\ny = 2\n"})
    talk.edits("4", "/home/ann/c.py", "y = 2", "y = 3")
    found = [one.content for one in events(talk.record(log)) if isinstance(one, SnapshotTaken)]
    texts = [edit for one in found if isinstance(one, dict) for edit in one.items()]
    assert texts == [
        ("/home/ann/a.py", "one\ntwo\nthree\n"),
        ("/home/ann/a.py", "one\n2\nthree\n"),
        ("/home/ann/b.py", "b\n"),
        ("/home/ann/c.py", "x = 1\ny = 3\n"),
    ]


def test_what_is_kept_of_the_edits_is_measured_at_the_next_prompt(
    log: SyncLog, tmp_path: Path
) -> None:
    mine, other = tmp_path / "a.py", tmp_path.parent / "elsewhere.py"
    mine.write_text("one two three\nmy own\n", encoding="utf-8")  # as the person left it
    other.write_text("secret of others", encoding="utf-8")
    talk = Talk()
    talk.begin(str(tmp_path))
    talk.prompt("Edit")
    talk.edits("1", str(mine), None, "one two three\nfour five six\n")
    talk.edits("2", str(other), None, "all gone")
    talk.prompt("And now?")
    records = talk.record(log, retention=True)
    found = events(records)
    assert [one.edits_kept for one in found if isinstance(one, FeedbackGiven)] == [0.5, 0.5]
    revised = [one for one in records if one.kind == "SnapshotTaken" and one.role == "human"]
    assert [one.event.content for one in revised if isinstance(one.event, SnapshotTaken)] == [
        {str(mine): "one two three\nmy own\n"}
    ]
    assert "secret of others" not in str(found)


def test_a_path_that_is_none_keeps_no_prompt_from_being_recorded(
    log: SyncLog, tmp_path: Path
) -> None:
    talk = Talk()
    talk.begin(str(tmp_path))
    talk.prompt("Edit")
    talk.edits("1", f"{tmp_path}/a\0b", None, "text")
    talk.prompt("And now?")
    found = events(talk.record(log, retention=True))
    said = [one.text for one in found if isinstance(one, MessageSent)]
    assert said == ["Edit", "And now?"]


def test_files_are_not_looked_at_unless_that_is_wanted(log: SyncLog, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("mine", encoding="utf-8")
    talk = Talk()
    talk.begin(str(tmp_path))
    talk.prompt("Edit")
    talk.edits("1", str(file), None, "yours")
    talk.prompt("And now?")
    found = events(talk.record(log))
    assert not [one for one in found if isinstance(one, FeedbackGiven)]
    assert "mine" not in str(found)


def test_context_is_no_part_of_what_a_person_typed_and_secrets_are_removed(log: SyncLog) -> None:
    talk = Talk()
    talk.begin()
    resource: JSON = {"uri": "file:///home/ann/.env", "text": "API_KEY=sk-abcdef1234567890"}
    blocks: JSON = [
        {"type": "text", "text": "Use password=hunter2hunter2 from "},
        {"type": "resource", "resource": resource},
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
    ]
    talk.ask(EDITOR, "session/prompt", {"sessionId": SESSION, "prompt": blocks})
    talk.edits("1", "/home/ann/.env", None, "API_KEY=sk-abcdef1234567890\n")
    records = talk.record(log)
    said = [(one.role, one.event.text) for one in records if isinstance(one.event, MessageSent)]
    assert said == [
        ("environment", "file:///home/ann/.env\nAPI_KEY=[removed]"),
        ("human", "Use password=[removed] from [file:///home/ann/.env][image image/png]"),
    ]
    assert "sk-abcdef" not in str(events(records))


@pytest.mark.parametrize(
    ("status", "resumable", "last"),
    [
        (0, False, [SessionClosed(reason="ended", by="engine")]),
        (0, True, []),
        (3, True, [ActorFailed(error="the agent ended with exit code 3", type="exit")]),
        (
            -9,
            False,
            [
                ActorFailed(error="the agent was ended by signal 9", type="exit"),
                SessionClosed(reason="failed", by="engine"),
            ],
        ),
    ],
)
def test_the_end_of_the_agent(
    log: SyncLog, status: int, resumable: bool, last: list[object]
) -> None:
    talk = Talk()
    talk.begin(resumable=resumable)
    talk.prompt("Go")
    talk.says("I was about to")
    talk.end(status)
    records = talk.record(log)
    assert isinstance(said := records[2].event, MessageSent)
    assert said.text == "I was about to"
    assert events(records)[3:] == last


def story() -> list[tuple[int, bytes]]:
    """The lines of a session, by who wrote them."""
    talk = Talk()
    talk.begin()
    prompt = talk.prompt("Fix it")
    talk.edits("1", "/home/ann/a.py", None, "hi\n")
    call: JSON = {"toolCallId": "2", "title": "rm"}
    params: dict[str, JSON] = {"sessionId": SESSION, "toolCall": call, "options": OPTIONS}
    talk.call(AGENT, "session/request_permission", params, {"outcome": {"outcome": "cancelled"}})
    talk.update("plan", entries=[])
    talk.stop(prompt)
    return [(copy[0], copy[13:]) for copy in talk.copies]


STORY: Final = story()
ODD: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@settings(max_examples=examples(50))
@given(data=st.data())
def test_hostile_messages_do_not_end_the_recording(data: st.DataObject) -> None:
    lines = []
    for side, line in STORY:
        how = data.draw(st.sampled_from(("keep", "keep", "field", "bytes", "drop")))
        if how == "field":
            message = json.loads(line)
            of = data.draw(st.sampled_from([message, *inner(message)]))
            of[data.draw(st.sampled_from(sorted(of)))] = data.draw(ODD)
            line = json.dumps(message).encode() + b"\n"
        elif how == "bytes":
            line = data.draw(st.binary(max_size=20)) + line[data.draw(st.integers(0, len(line))) :]
        if how != "drop":
            lines.append((side, line))
    talk, after = Talk(), Talk("after")
    for side, line in lines:
        talk.write(side, line)
    talk.write(EDITOR, b"\n")  # which ends all unfinished lines
    talk.write(AGENT, b"\n")
    after.copies = talk.copies
    after.prompt("Are you there?")
    after.end()
    with open_sync("memory://") as log:
        records = after.record(log)
    assert isinstance(said := records[1].event, MessageSent)
    assert said.text == "Are you there?"


def inner(value: JSON) -> list[dict[str, JSON]]:
    """The objects in a value that hold something."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [part for part in parts if isinstance(part, dict) and part]
    return [*found, *(one for part in parts for one in inner(part))]


def test_deep_and_long_messages_are_left_out_and_the_rest_is_read(log: SyncLog) -> None:
    talk = Talk()
    talk.begin(resumable=True)
    talk.write(AGENT, b"[" * 200_000 + b"\n")
    talk.write(AGENT, b'{"jsonrpc":"2.0","method":"session/upd')
    talk.write(LOST, bytes([AGENT]))
    talk.write(AGENT, b'ate","params":{}}\n')
    talk.prompt("Are you there?")
    assert kinds(talk.record(log)) == ["environment: SessionOpened", "human: MessageSent"]


@given(st.lists(st.binary(max_size=9), max_size=5), st.integers(1, 4))
def test_lines_come_out_the_same_wherever_they_are_cut(lines: list[bytes], size: int) -> None:
    data = b"".join(line.replace(b"\n", b"-") + b"\n" for line in lines)
    reader = Lines(longest=6)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    found = [line for piece in pieces for line in reader.feed(piece)]
    wanted = [line.replace(b"\n", b"-") for line in lines]
    assert found == [line for line in wanted if len(line) <= 6 and line.strip()]
    assert reader.skipped == len([line for line in wanted if len(line) > 6])
