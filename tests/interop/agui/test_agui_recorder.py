"""AG-UI into a log: what events come to, whole from pieces, once however often they come."""

from __future__ import annotations

import json
from typing import Any

import duolog
import pytest
from ag_ui.core import RunAgentInput
from ag_ui.encoder import EventEncoder
from agui_streams import CHAT, REQUEST, Json, hostile, models, streamed
from duolog.engine.errors import InvalidInput, SessionClosedError
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ActorFailed,
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    ModelCalled,
    NoteTaken,
    SnapshotTaken,
    Tokens,
    Unknown,
)
from duolog.engine.records import Record
from duolog.interop.agui import AguiRecorder
from duolog.interop.agui.thread_index import unwrap_event
from duolog.telemetry.log import Log
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples


async def recorder(log: Log, output: str = "") -> AguiRecorder:
    return AguiRecorder(log, await log.session("t1"), output=output)


async def trace(log: Log, session: str = "t1") -> list[Record]:
    """The log's records, once all events handed over are written."""
    await (await log.session(session)).flush()
    return [record async for record in log.read(session, after_version=1)]


async def told(log: Log) -> list[tuple[str, object]]:
    """Actors and events; for events kept unchanged, the type."""
    found: list[tuple[str, object]] = []
    for record in await trace(log):
        held = unwrap_event(record.event)
        found.append((record.actor, record.event if held is None else held[0]))
    return found


async def record(log: Log, *events: object, output: str = "") -> AguiRecorder:
    agui = await recorder(log, output)
    await agui.record(streamed(events))
    return agui


def text(ident: str, words: str, **start: object) -> list[Json]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": ident, "role": "assistant", **start},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": ident, "delta": words},
        {"type": "TEXT_MESSAGE_END", "messageId": ident},
    ]


def run(ident: str, *events: Json, **fields: object) -> list[Json]:
    about = {"threadId": "t1", "runId": ident}
    started = {"type": "RUN_STARTED", **about, **fields}
    return [started, *events, {"type": "RUN_FINISHED", **about}]


EXPECTED = [
    ("environment", "RUN_STARTED"),
    ("environment", "STATE_SNAPSHOT"),
    ("human", SnapshotTaken),
    ("system", MessageSent(text="Be brief.", to=("agent",))),
    ("human", MessageSent(text="Where is my parcel?")),
    ("environment", "STEP_STARTED"),
    ("environment", "REASONING_START"),
    ("agent", NoteTaken(text="I should look it up.")),
    ("environment", "REASONING_END"),
    ("agent", MessageSent(text="Let me look.")),
    ("environment", "fields"),
    ("agent", ActionTaken(name="track", arguments={"parcel": "7"}, raw='{"parcel": "7"}')),
    ("environment", ActionResolved(action=13, outcome="ok", observation="lost")),
    ("agent", SnapshotTaken),
    ("environment", "STATE_SNAPSHOT"),
    ("agent", SnapshotTaken),
    ("agent", MessageSent(text="It is lost, sorry.")),
    ("environment", "ACTIVITY_SNAPSHOT"),
    ("environment", "CUSTOM"),
    ("environment", "RAW"),
    ("agent", ActionTaken(name="send", arguments={})),
    ("environment", "STEP_FINISHED"),
    (
        "agent",
        ModelCalled(
            model="m",
            purpose="act (all calls)",
            request="",
            tokens=Tokens(prompt=9, completion=3),
        ),
    ),
    ("environment", "RUN_FINISHED"),
]


async def test_a_request_and_its_stream_become_a_session() -> None:
    async with duolog.open("memory://") as log:
        agui = await recorder(log, "/draft")
        await agui.take_input(REQUEST)
        await agui.record(streamed(CHAT))
        assert agui.diagnostics == []
        found = await told(log)
        assert [
            (who, type(what) if isinstance(what, SnapshotTaken) else what) for who, what in found
        ] == EXPECTED
        drafts = [r.event.content for r in await trace(log) if isinstance(r.event, SnapshotTaken)]
        assert drafts == ["", "We are sorry.", "We are sorry. We send another."]


@pytest.mark.parametrize("form", ["models", "json", "sse", "bytes", "lines"])
async def test_events_come_in_many_forms(form: str) -> None:
    async with duolog.open("memory://") as log:
        encoder = EventEncoder()
        forms: dict[str, Any] = {
            "models": lambda event: [models.validate_python(event)],
            "json": lambda event: [json.dumps(event)],
            "sse": lambda event: [encoder.encode(models.validate_python(event))],
            "bytes": lambda event: [f"event: x\nid: 1\ndata: {json.dumps(event)}\n\n".encode()],
            "lines": lambda event: [f"data: {json.dumps(event)}", "", ": a comment"],
        }
        agui = await recorder(log, "/draft")
        await agui.take_input(RunAgentInput.model_validate(REQUEST))
        await agui.record(streamed(one for event in CHAT for one in forms[form](event)))
        assert agui.diagnostics == []
        assert [
            (who, type(what) if isinstance(what, SnapshotTaken) else what)
            for who, what in await told(log)
        ] == EXPECTED


async def test_what_is_repeated_is_recorded_once() -> None:
    async with duolog.open("memory://") as log:
        for _ in range(2):
            agui = await recorder(log, "/draft")
            for _ in range(2):
                await agui.take_input(REQUEST)
                await agui.record(streamed(CHAT))
            assert agui.diagnostics == []
        assert len(await told(log)) == len(EXPECTED)
        assert log.recorder.statistics().refused == 0


async def test_a_stream_that_broke_off_goes_on_where_it_is_told_again() -> None:
    async with duolog.open("memory://") as log:
        for cut in (5, 10, 15, 19, 21, len(CHAT)):
            await record(log, *CHAT[:cut], output="/draft")
        said = [event.text for _, event in await told(log) if isinstance(event, MessageSent)]
        assert said == ["Let me ", "Let me look.", "It is lost, ", "It is lost, sorry."]
        taken = [event.name for _, event in await told(log) if isinstance(event, ActionTaken)]
        assert taken.count("send") == 1


@pytest.mark.parametrize("cut", range(len(CHAT) + 1))
async def test_who_is_killed_and_told_all_again_has_it_as_if_nothing_had_been(cut: int) -> None:
    async with duolog.open("memory://") as log, duolog.open("memory://") as whole:
        killed = await recorder(log, "/draft")
        await killed.take_input(REQUEST)
        for event in CHAT[:cut]:
            await killed.take(event)
        for one in (log, whole):
            agui = await recorder(one, "/draft")
            await agui.take_input(REQUEST)
            await agui.record(streamed(CHAT))
            assert agui.diagnostics == []
        first, second = await trace(log), await trace(whole)
        assert [(r.id, r.actor, r.body) for r in first] == [(r.id, r.actor, r.body) for r in second]


async def test_each_request_tells_the_history_again() -> None:
    async with duolog.open("memory://") as log:
        agui = await recorder(log)
        messages: list[Json] = []
        for number in range(1, 4):
            messages.append({"id": f"u{number}", "role": "user", "content": f"Question {number}"})
            request = {"threadId": "t1", "runId": f"r{number}", "messages": list(messages)}
            await agui.take_input(request)
            answer = f"Answer {number}"
            await agui.record(
                streamed(run(f"r{number}", *text(f"m{number}", answer), input=request))
            )
            messages.append({"id": f"m{number}", "role": "assistant", "content": answer})
        assert agui.diagnostics == []
        assert [(who, e.text) for who, e in await told(log) if isinstance(e, MessageSent)] == [
            (who, f"{what} {number}")
            for number in range(1, 4)
            for who, what in (("human", "Question"), ("agent", "Answer"))
        ]


async def test_all_messages_at_once() -> None:
    async with duolog.open("memory://") as log:
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        listed = [
            {"id": "1", "role": "developer", "content": "Be kind."},
            {"id": "2", "role": "user", "name": "Ann", "content": [{"type": "text", "text": "Hi"}]},
            {"id": "3", "role": "assistant", "toolCalls": [call]},
            {"id": "4", "role": "tool", "toolCallId": "c1", "content": "", "error": "no way"},
            {"id": "5", "role": "reasoning", "content": "Hm."},
            {"id": "6", "role": "activity", "activityType": "PLAN", "content": {}},
            {"id": "7", "role": "assistant", "content": "There is nothing."},
        ]
        snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": listed}
        agui = await record(log, *run("r1", snapshot, snapshot), *run("r2", snapshot))
        assert agui.diagnostics == []
        found = [one for one in await told(log) if one[1] != "fields"]
        assert found == [
            ("environment", "RUN_STARTED"),
            ("developer", MessageSent(text="Be kind.", to=("agent",))),
            ("Ann", MessageSent(text="Hi")),
            ("agent", ActionTaken(name="look", arguments={})),
            (
                "environment",
                ActionResolved(action=6, outcome="failed", observation="", error="no way"),
            ),
            ("agent", NoteTaken(text="Hm.")),
            ("environment", "ACTIVITY_SNAPSHOT"),
            ("agent", MessageSent(text="There is nothing.")),
            ("environment", "RUN_FINISHED"),
            ("environment", "RUN_STARTED"),
            ("environment", "RUN_FINISHED"),
        ]
        shorter = {"type": "MESSAGES_SNAPSHOT", "messages": listed[2:]}
        await record(log, *run("r3", shorter, shorter))
        kept = [held for r in await trace(log) if (held := unwrap_event(r.event))]
        gone = [body["without"] for kind, body in kept if kind == "MESSAGES_SNAPSHOT"]
        assert gone == [["message/1", "message/2"]]


async def test_people_change_the_state_too() -> None:
    async with duolog.open("memory://") as log:
        agui = await recorder(log, "/draft")
        await agui.record(
            streamed(run("r1", {"type": "STATE_SNAPSHOT", "snapshot": {"draft": "One."}}))
        )
        request: Json = {"threadId": "t1", "runId": "r2", "messages": []}
        await agui.take_input(request | {"state": {"draft": "One. Two."}})
        await agui.record(
            streamed(
                run(
                    "r2",
                    {"type": "STATE_SNAPSHOT", "snapshot": {"draft": "One. Two."}},
                    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/n", "value": 1}]},
                )
            )
        )
        await agui.take_input(request | {"runId": "r3", "state": {}})  # it shares no state
        found = [(who, getattr(e, "content", e)) for who, e in await told(log)]
        assert found == [
            ("environment", "RUN_STARTED"),
            ("agent", "One."),
            ("environment", "RUN_FINISHED"),
            ("environment", "RUN_STARTED"),
            ("human", "One. Two."),
            ("environment", "STATE_SNAPSHOT"),  # as it was
            ("environment", "STATE_SNAPSHOT"),  # the rest
            ("environment", "RUN_FINISHED"),
            ("environment", "RUN_STARTED"),
        ]


async def test_a_run_waits_for_an_answer() -> None:
    async with duolog.open("memory://") as log:
        agui = await recorder(log)
        waiting = {
            "type": "interrupt",
            "interrupts": [{"id": "i1", "reason": "x", "message": "Send?"}],
        }
        finished = {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "outcome": waiting}
        await agui.record(streamed([run("r1")[0], finished]))
        answers = [
            {
                "interruptId": "i1",
                "status": "resolved",
                "payload": {"approved": False, "comment": "No"},
            }
        ]
        request = {"threadId": "t1", "runId": "r2", "messages": [], "resume": answers}
        for _ in range(2):
            await agui.take_input(request)
        found = [what for _, what in await told(log) if not isinstance(what, str)]
        assert found == [
            ApprovalAsked(question="Send?"),
            ApprovalGiven(asked=3, approved=False, comment="No"),
        ]


@pytest.mark.parametrize(
    ("entry", "approved", "comment"),
    [
        ({"status": "resolved"}, True, ""),
        ({"status": "cancelled"}, False, ""),
        ({"status": "resolved", "payload": False}, False, ""),
        ({"status": "resolved", "payload": "go on"}, True, "go on"),
        ({"status": "resolved", "payload": {"to": "Ann"}}, True, '{"to":"Ann"}'),
    ],
)
async def test_answers_of_all_kinds(entry: Json, approved: bool, comment: str) -> None:
    async with duolog.open("memory://") as log:
        waiting = {"type": "interrupt", "interrupts": [{"id": "i", "reason": "why"}]}
        finished = {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "outcome": waiting}
        agui = await record(log, run("r1")[0], finished)
        answer = {"interruptId": "i", **entry}
        await agui.take_input({"threadId": "t1", "runId": "r2", "messages": [], "resume": [answer]})
        [given] = [what for _, what in await told(log) if isinstance(what, ApprovalGiven)]
        assert (given.approved, given.comment) == (approved, comment)


async def test_subagents_are_agents_of_their_own() -> None:
    async with duolog.open("memory://") as log:
        sub = {"subagentRunId": "s1"}
        started = {"type": "SUBAGENT_STARTED", "name": "scout", **sub}
        said = [event | sub for event in text("m1", "Found it.")]
        await record(log, *run("r1", started, *said))
        assert ("scout", MessageSent(text="Found it.")) in await told(log)


async def test_a_failed_run_is_a_failure_of_the_agent() -> None:
    async with duolog.open("memory://") as log:
        failed = {"type": "RUN_ERROR", "message": "out of quota", "code": "429"}
        agui = await record(log, run("r1")[0], *text("m1", "I am ab")[:2], failed)
        assert [diagnostic.what for diagnostic in agui.diagnostics] == [
            "message 'm1': it never ended"
        ]
        assert [what for _, what in await told(log)] == [
            "RUN_STARTED",
            MessageSent(text="I am ab"),
            ActorFailed(error="out of quota", type="429"),
        ]


async def test_reasoning_as_it_was_called_of_old() -> None:
    async with duolog.open("memory://") as log:
        stem = "THINKING_TEXT_MESSAGE_"
        pieces = [
            {"type": "THINKING_START"},
            {"type": f"{stem}START"},
            {"type": f"{stem}CONTENT", "delta": "Hm, "},
            {"type": f"{stem}CONTENT", "delta": "so."},
            {"type": f"{stem}END"},
            {"type": "THINKING_END"},
        ]
        for _ in range(2):
            agui = await record(log, *run("r1", *pieces))
            assert agui.diagnostics == []
        thoughts = [what for _, what in await told(log) if isinstance(what, NoteTaken)]
        assert thoughts == [NoteTaken(text="Hm, so.")]


# --- what is not as it should be --------------------------------------------------------------------

CONTENT: Json = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi"}
START: Json = {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
END: Json = {"type": "TEXT_MESSAGE_END", "messageId": "m"}
ARGS: Json = {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"a":'}


@pytest.mark.parametrize(
    ("events", "diagnostic", "event"),
    [
        ([CONTENT, END], "message 'm': it never began", MessageSent(text="Hi")),
        ([START, CONTENT], "message 'm': it never ended", MessageSent(text="Hi")),
        ([START, START, CONTENT, END], "message 'm': it began twice", MessageSent(text="Hi")),
        ([END], "TEXT_MESSAGE_END: the end of a message that never began", "TEXT_MESSAGE_END"),
        (
            [START | {"role": "pirate"}, CONTENT, END],
            "message 'm': a message of the role 'pirate'",
            MessageSent(text="Hi", to=("agent",)),
        ),
        (
            [{**CONTENT, "messageId": 7}],
            "TEXT_MESSAGE_CONTENT: its messageId is no text",
            "TEXT_MESSAGE_CONTENT",
        ),
        (
            [{"type": "TEXT_MESSAGE_CHUNK", "delta": "lost?"}],
            "TEXT_MESSAGE_CHUNK: it lacks a messageId",
            "TEXT_MESSAGE_CHUNK",
        ),
        (
            [ARGS],
            "tool call 'c': it never began",
            ActionTaken(name="tool", arguments={}, raw='{"a":'),
        ),
        (
            [{"type": "TOOL_CALL_RESULT", "toolCallId": "c", "messageId": "m", "content": "x"}],
            "a result of no call (id 'c')",
            "TOOL_CALL_RESULT",
        ),
        (
            [{"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/gone"}]}],
            "STATE_DELTA: operation 1 of the patch at '/gone': can't remove a non-existent object 'gone'",
            "STATE_DELTA",
        ),
        (
            [{"type": "STATE_DELTA", "delta": "nonsense"}],
            "STATE_DELTA: a patch is a list of operations",
            "STATE_DELTA",
        ),
        ([{"type": "STATE_SNAPSHOT"}], "STATE_SNAPSHOT: it lacks a snapshot", "STATE_SNAPSHOT"),
        (
            [{"type": "MESSAGES_SNAPSHOT", "messages": [7]}],
            "a message is no object",
            "message",
        ),
        (
            [{"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "1", "role": 7, "content": "x"}]}],
            "a message cannot be read: its role is 7, not a text",
            "message",
        ),
        ([{"type": "MESSAGES_SNAPSHOT", "messages": {}}], "its messages are no list", "messages"),
        ([{"type": 7}], "an event of the type 7", "7"),
        ([{"no": "type"}], "an event of the type None", "None"),
        (["{"], "something cannot be read: it is no JSON: Input data was truncated", "unreadable"),
        (["[1]"], "something cannot be read: it is no JSON object", "unreadable"),
        ([b"\xff"], "something cannot be read: it is not UTF-8: byte 0", "unreadable"),
        ([7], "something cannot be read: it is no JSON object, but int", "unreadable"),
        ([{"type": "RUN_STARTED"}], "a run begins without a runId", "RUN_STARTED"),
    ],
)
async def test_nothing_is_lost(events: list[Any], diagnostic: str, event: object) -> None:
    async with duolog.open("memory://") as log:
        agui = await record(log, *events)
        assert [one.what for one in agui.diagnostics] == [diagnostic]
        assert [what for _, what in await told(log)] == [event]


async def test_an_unknown_type_is_kept_without_a_word() -> None:
    async with duolog.open("memory://") as log:
        later = {"type": "HOLOGRAM_SHOWN", "light": {"blue": 1}}
        agui = await record(log, *run("r1", later, later))
        assert agui.diagnostics == []
        kept = [r.event for r in await trace(log) if isinstance(r.event, Unknown)]
        bodies = [json.loads(one.body) for one in kept if one.kind == "agui.HOLOGRAM_SHOWN"]
        assert bodies == [later, later]


async def test_other_contents_under_a_known_id_are_kept_too() -> None:
    async with duolog.open("memory://") as log:
        agui = await record(log, *text("m1", "One."), *text("m1", "Two."), *text("m1", "Two."))
        assert [one.what for one in agui.diagnostics] == [
            "message 'm1' came again with other contents"
        ]
        said = [what for _, what in await told(log)]
        assert said == [MessageSent(text="One."), MessageSent(text="Two.")]


async def test_a_result_that_comes_before_the_end_of_its_call() -> None:
    async with duolog.open("memory://") as log:
        start = {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look"}
        result = {"type": "TOOL_CALL_RESULT", "toolCallId": "c", "messageId": "m", "content": "x"}
        second = result | {"messageId": "n", "content": "y"}
        agui = await record(log, start, result, result, second)
        assert [one.what for one in agui.diagnostics] == [
            "tool call 'c': its result came before its end",
            "a second result of a call (id 'c')",
        ]
        assert [what for _, what in await told(log)] == [
            ActionTaken(name="look"),
            ActionResolved(action=2, outcome="ok", observation="x"),
            "TOOL_CALL_RESULT",
        ]


async def test_a_closed_session_takes_nothing_new() -> None:
    async with duolog.open("memory://") as log:
        agui = await record(log, *run("r1", *text("m1", "Bye.")))
        session = await log.session("t1")
        await session.close(durable=True)
        await agui.record(streamed(run("r1", *text("m1", "Bye."))))  # it has that already
        with pytest.raises(SessionClosedError):
            await agui.take({"type": "CUSTOM", "name": "late", "value": 1})


async def test_a_stream_is_recorded_as_it_passes() -> None:
    async with duolog.open("memory://") as log:
        agui = await recorder(log, "/draft")
        passed = [event async for event in agui.tap(streamed(CHAT), request=REQUEST)]
        assert passed == CHAT
        assert agui.problems == 0
        assert len(await told(log)) == len(EXPECTED)


async def test_a_stream_passes_through_unharmed() -> None:
    async with duolog.open("memory://") as log:
        session = await log.session("t1")
        agui = AguiRecorder(log, session)
        await session.close(durable=True)
        events: list[Any] = [*run("r1", *text("m1", "Hello.")), "{", {"type": 7}]
        passed = [event async for event in agui.tap(streamed(events), request=REQUEST)]
        assert passed == events
        assert agui.problems
        assert "is closed" in agui.diagnostics[0].what


async def test_a_state_that_nests_without_end_is_kept_as_it_came() -> None:
    async with duolog.open("memory://") as log:
        deeper = {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": {}}]}
        events = [
            deeper | {"delta": [{"op": "add", "path": "/a" * depth, "value": {}}]}
            for depth in (*range(1, 3), 4)
        ]
        deep: Json = {}
        for _ in range(400):
            deep = {"a": deep}
        events += [deeper | {"delta": [{"op": "add", "path": "/a" * 2, "value": deep}]}]
        events += [deeper | {"delta": [{"op": "copy", "from": "", "path": "/a" * 400}]}] * 5
        agui = await record(log, *events)
        assert len(await trace(log)) == len(events)
        assert agui.problems


async def test_a_long_stream_overflows_nothing() -> None:
    async with duolog.open("memory://", room=300) as log:
        events = [event for number in range(1000) for event in text(f"m{number}", "Hi")]
        await record(log, *events)
        assert len(await trace(log)) == 1000
        assert log.recorder.statistics().dropped == 0


async def test_who_leaves_early_leaves_what_was_said() -> None:
    async with duolog.open("memory://") as log:
        agui = await recorder(log)
        stream = agui.tap(streamed([run("r1")[0], *text("m1", "Hello, I am")]))
        async for event in stream:
            if event["type"] == "TEXT_MESSAGE_CONTENT":
                break
        await stream.aclose()
        assert ("agent", MessageSent(text="Hello, I am")) in await told(log)


async def test_the_output_is_a_pointer() -> None:
    async with duolog.open("memory://") as log:
        with pytest.raises(InvalidInput, match="not a JSON Pointer"):
            await recorder(log, "draft")


# --- however it is cut ------------------------------------------------------------------------------


@st.composite
def cut(draw: st.DrawFn, words: str) -> list[str]:
    """A text in pieces."""
    at = sorted(draw(st.lists(st.integers(0, len(words)), max_size=6)))
    return [words[i:j] for i, j in zip([0, *at], [*at, len(words)], strict=True)]


@st.composite
def fragmented(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str], list[Json]]:
    """Messages and calls whose pieces come between each other's."""
    texts = draw(st.dictionaries(st.sampled_from("abc"), st.text(min_size=1), max_size=3))
    calls = draw(st.dictionaries(st.sampled_from("xyz"), st.text(), max_size=3))
    queues: list[list[Json]] = []
    for stem, key, whole in (
        *(("TEXT_MESSAGE", "messageId", one) for one in texts.items()),
        *(("TOOL_CALL", "toolCallId", one) for one in calls.items()),
    ):
        ident, words = whole
        part = "ARGS" if stem == "TOOL_CALL" else "CONTENT"
        start: Json = {"type": f"{stem}_START", key: ident}
        start |= {"toolCallName": "do"} if stem == "TOOL_CALL" else {"role": "assistant"}
        pieces = [{"type": f"{stem}_{part}", key: ident, "delta": p} for p in draw(cut(words))]
        queues.append([start, *pieces, {"type": f"{stem}_END", key: ident}])
    events: list[Json] = []
    while queues := [queue for queue in queues if queue]:
        events.append(draw(st.sampled_from(queues)).pop(0))
    return texts, calls, events


@settings(max_examples=examples(60))
@given(fragmented())
async def test_pieces_come_together_however_they_are_cut(
    drawn: tuple[dict[str, str], dict[str, str], list[Json]],
) -> None:
    texts, calls, events = drawn
    async with duolog.open("memory://") as log:
        agui = await record(log, *events)
        assert agui.diagnostics == []
        found = await trace(log)
    said = {r.id: r.event.text for r in found if isinstance(r.event, MessageSent)}
    assert said == {f"message/{ident}": words for ident, words in texts.items()}
    done = {
        r.id: json.dumps(r.event.arguments) if r.event.raw is None else r.event.raw
        for r in found
        if isinstance(r.event, ActionTaken)
    }
    assert {ident: words or "{}" for ident, words in done.items()} == {
        f"call/{ident}": words or "{}" for ident, words in calls.items()
    }


@settings(max_examples=examples(80))
@given(st.lists(hostile, max_size=12))
async def test_nothing_that_comes_is_an_error_and_nothing_comes_twice(events: list[Json]) -> None:
    async with duolog.open("memory://") as log:
        await record(log, *events)
        before = len(await trace(log))
        assert log.recorder.statistics().refused == 0
        await record(log, *events)
        assert len(await trace(log)) == before
        assert log.recorder.statistics().refused == 0
