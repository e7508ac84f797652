"""A log as a stream of AG-UI: valid by the protocol's models, in runs, recorded or live."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

import anyio
import duolog
import pytest
from agui_streams import CHAT, REQUEST, Front, Json, hostile, streamed
from duolog.engine.errors import SessionNotFound
from duolog.engine.events import ActionResolved, ActorFailed, MessageSent, Unknown
from duolog.interop.agui import AguiRecorder, encode_sse, stream_agui
from duolog.scoring.live import follow_updates
from duolog.scoring.scorers.progress import rule_judge
from duolog.scoring.scorers.retention import RetentionUtility
from duolog.telemetry.log import Log
from duolog.telemetry.receipt import Awaited
from duolog.telemetry.session import Recording
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples


async def tell(log: Log, session: str = "t1", after: int = 0) -> list[Json]:
    """The events that the log streams now."""
    await (await log.session(session)).flush()
    return [event async for event in stream_agui(log, session, after=after, live=False)]


async def record(log: Log, events: list[Json], request: Json | None = None) -> None:
    agui = AguiRecorder(log, await log.session("t1"), output="/draft")
    if request is not None:
        await agui.take_input(request)
    await agui.record(streamed(events))
    assert agui.diagnostics == []


async def done(log: Log) -> list[tuple[object, ...]]:
    """Messages and acts, with their actors and ids."""
    await (await log.session("t1")).flush()
    kinds = ("MessageSent", "ActionTaken", "ActionResolved", "NoteTaken", "ModelCalled")
    return [
        (r.kind, r.actor, r.role, r.caller_id, r.body)
        async for r in log.read("t1")
        if r.kind in kinds
    ]


async def test_a_recorded_stream_comes_out_as_it_went_in() -> None:
    async with duolog.open("memory://") as log:
        await record(log, CHAT)
        before, after = Front(CHAT_CLEAR), Front(await tell(log))
    assert after.runs == before.runs
    assert after.said == before.said
    assert after.calls == before.calls
    assert after.results == before.results
    assert after.state == before.state
    assert after.customs == before.customs
    assert after.rest == before.rest


async def test_what_came_out_goes_in_as_the_same() -> None:
    async with duolog.open("memory://") as log, duolog.open("memory://") as again:
        await record(log, CHAT, REQUEST)
        events = await tell(log)
        Front(events)
        await record(again, events)
        first, second = await done(log), await done(again)
    assert len(first) == 9
    assert [one[:4] for one in first] == [one[:4] for one in second]


CHAT_CLEAR = [event for event in CHAT if not str(event["type"]).endswith("CHUNK")]
"""The same, with chunks as full events."""
_AT = next(n for n, e in enumerate(CHAT_CLEAR) if e["type"] == "ACTIVITY_SNAPSHOT")
CHAT_CLEAR[_AT:_AT] = [
    {"type": "TEXT_MESSAGE_START", "messageId": "m3", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m3", "delta": "It is lost, sorry."},
    {"type": "TEXT_MESSAGE_END", "messageId": "m3"},
    {"type": "TOOL_CALL_START", "toolCallId": "c2", "toolCallName": "send"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c2", "delta": "{}"},
    {"type": "TOOL_CALL_END", "toolCallId": "c2"},
]


async def quarrel(s: Recording[Awaited]) -> None:
    """A session of a product's own, in which all kinds of things happen."""
    await s.human.says("Write a haiku.")
    await s.agent.notes("Easy.")
    await s.agent.acts("look", {"at": "logs"}, result={"lines": 3})
    await s.agent.acts("burn", error="not allowed")
    await s.agent.submits("Append, and append")
    await s.agent.says("There.")
    await s.human.edits("Append, append")
    await s.human.rates(2)
    asked = await s.agent.asks("Shall I publish it?")
    await s.human.approves(asked, approved=False, comment="No!")
    await s.agent.says("As you wish.")
    await s.agent.yields()
    await s.human.acts("publish", result="done")
    await s.human.feedback(thumbs="down")
    await s.actor("bea", role="agent").says("I am new.")
    await s.actor("system", role="environment").adds(MessageSent(text="Be nice."))
    await s.agent.adds(ActorFailed(error="no more words", type="Speechless"))
    await s.human.says("Well.")
    await s.close(by="human")


async def test_a_session_of_our_own_is_told_in_runs() -> None:
    async with duolog.open("memory://") as log:
        s = await log.session("t1", private={"human": "secret"}, request="Poems.")
        await quarrel(s)
        events = await tell(log)
    front = Front(events)
    ends = [end if isinstance(end, str) else end["type"] for _, end in front.runs]
    assert ends == ["success", "interrupt", "success", "no more words", "success"]
    assert [role for role, _, _ in front.said.values()] == [
        "user", "user", "assistant", "assistant", "assistant", "system", "user",
    ]  # fmt: skip
    assert [name for _, name, _ in front.said.values()].count("bea") == 1
    assert list(front.calls.values()) == [("look", '{"at":"logs"}'), ("burn", "{}")]
    assert list(front.results.values()) == ['{"lines":3}', "not allowed"]
    assert front.state == "Append, append"
    assert [name for name, _ in front.customs] == [
        "duolog.rated", "duolog.action", "duolog.outcome", "duolog.feedback", "duolog.closed",
    ]  # fmt: skip
    assert "secret" not in str(events)
    assert "Easy." not in str(events)


async def test_our_own_session_comes_back_through_agui() -> None:
    async with duolog.open("memory://") as log, duolog.open("memory://") as again:
        await quarrel(await log.session("t1"))
        events = await tell(log)
        agui = AguiRecorder(again, await again.session("t1"))
        await agui.record(streamed(events))
        assert agui.diagnostics == []
        await (await again.session("t1")).flush()
        kinds = ("MessageSent", "SnapshotTaken", "ActionResolved", "ApprovalAsked", "ApprovalGiven")

        async def acts(log: Log) -> list[object]:
            return [
                (r.kind, r.actor, getattr(r.event, "text", getattr(r.event, "content", None)))
                async for r in log.read("t1")
                if r.kind in kinds and (r.actor, r.kind) != ("environment", "ActionResolved")
            ]

        assert await acts(again) == await acts(log)


async def test_failures_of_tools_come_back() -> None:
    async with duolog.open("memory://") as log, duolog.open("memory://") as again:
        s = await log.session("t1")
        await s.agent.acts("burn", error="not allowed")
        await record(again, await tell(log))
        await (await again.session("t1")).flush()
        [outcome] = [r.event async for r in again.read("t1") if r.kind == "ActionResolved"]
    assert isinstance(outcome, ActionResolved)
    assert (outcome.outcome, outcome.error) == ("failed", "not allowed")


async def test_who_joins_later_is_told_what_there_is() -> None:
    async with duolog.open("memory://") as log:
        await quarrel(await log.session("t1"))
        whole = await tell(log)
        last = (await log.summary("t1")).position
        for after in range(1, last):
            events = await tell(log, after=after)
            front, all_of_it = Front(events), Front(whole)
            assert front.state == all_of_it.state
            assert {k: v for k, v in front.said.items() if v[0] != "reasoning"} == all_of_it.said
            assert front.calls == all_of_it.calls
            assert front.results == all_of_it.results


async def test_a_session_that_is_not_there() -> None:
    async with duolog.open("memory://") as log:
        with pytest.raises(SessionNotFound):
            await anext(stream_agui(log, "nobody", live=False))


async def test_advice_comes_with_the_stream() -> None:
    events: list[Json] = []
    missing = {"duolog.utility", "duolog.effort", "duolog.rating", "duolog.stop"}
    async with duolog.open("memory://") as log:
        log.watch(scorers=[rule_judge(), RetentionUtility()]).start()
        s = await log.session("t1")
        with anyio.fail_after(120):
            async with aclosing(stream_agui(log, "t1", follow=follow_updates)) as stream:
                await s.human.says("Please mend the parser.")
                await s.agent.submits("def parse(): ...")
                await s.human.edits("def parse(): return None")
                for number in range(3):
                    await s.agent.says(f"I have tried {number} times.")
                    await s.human.says("That is still wrong, as I said before.")
                async for event in stream:
                    events.append(event)
                    missing.discard(event.get("name"))
                    if not missing:
                        break
    front = Front([*events, {"type": "RUN_ERROR", "message": "left"}])
    stop = next(value for name, value in front.customs if name == "duolog.stop")
    assert (stop["tau"], stop["session"]) == (1, "t1")
    assert [rating < 3 for rating in stop["ratings"]] == [True]


async def test_advice_after_the_end_has_a_run_of_its_own() -> None:
    async with duolog.open("memory://") as log:
        s = await log.session("t1", judge="rule-judge")
        await s.human.says("Please mend the parser.")
        await s.agent.says("I have.")
        await s.close(durable=True)
        watching = log.watch(scorers=[rule_judge()], after_position=0).start()
        await watching.settle()
        events = [e async for e in stream_agui(log, "t1", live=False, follow=follow_updates)]
    front = Front(events)
    assert "duolog.rating" in [name for name, _ in front.customs]
    assert len(front.runs) > 1


async def test_a_live_stream_ends_with_the_log() -> None:
    events: list[Json] = []
    async with duolog.open("memory://") as log:
        stream = stream_agui(log, "t1")
        await (await log.session("t1")).agent.says("Hello.", durable=True)
        with anyio.fail_after(120):
            events += [await anext(stream) for _ in range(4)]
    with anyio.fail_after(120):
        assert [event async for event in stream] == []
    assert [event["type"] for event in events] == [
        "RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
    ]  # fmt: skip


def test_an_event_in_text() -> None:
    event = {"type": "STEP_STARTED", "stepName": "a\nb"}
    assert encode_sse(event, 7) == b'id: 7\ndata: {"type":"STEP_STARTED","stepName":"a\\nb"}\n\n'
    assert encode_sse(event) == b'data: {"type":"STEP_STARTED","stepName":"a\\nb"}\n\n'


# --- whatever happens ---------------------------------------------------------------------------------

Deed = Callable[[Recording[Awaited], str], Awaitable[object]]
DEEDS: list[Deed] = [
    lambda s, text: s.human.says(text),
    lambda s, text: s.agent.says(text),
    lambda s, text: s.actor("bea", role="agent").says(text),
    lambda s, text: s.agent.acts("do", {"it": text}, result=[text]),
    lambda s, text: s.agent.acts("do", {"it": text}),
    lambda s, text: s.human.acts("do", {"it": text}, error=text),
    lambda s, text: s.agent.submits(text),
    lambda s, text: s.human.edits({"text": text}),
    lambda s, text: s.agent.asks(text),
    lambda s, text: s.human.asks(text),
    lambda s, text: s.agent.yields(text),
    lambda s, text: s.human.rates(3, text),
    lambda s, text: s.agent.notes(text),
    lambda s, text: s.agent.adds(ActorFailed(error=text, type="E")),
    lambda s, text: s.agent.adds(Unknown("later", 9, b"{}")),
]


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from(DEEDS), st.text(max_size=5)), max_size=12), st.booleans())
async def test_whatever_happens_is_told_as_the_protocol_has_it(
    deeds: list[tuple[Deed, str]], closed: bool
) -> None:
    async with duolog.open("memory://") as log:
        s = await log.session("t1")
        for deed, text in deeds:
            await deed(s, text)
        if closed:
            await s.close()
        events = await tell(log)
    front = Front(events)
    said = sum(1 for deed, _ in deeds if DEEDS.index(deed) < 3)
    assert len(front.said) == said


@settings(max_examples=examples(80))
@given(st.lists(hostile, max_size=12))
async def test_whatever_was_recorded_is_told_as_the_protocol_has_it(events: list[Json]) -> None:
    async with duolog.open("memory://") as log:
        agui = AguiRecorder(log, await log.session("t1"))
        await agui.record(streamed(events))
        Front(await tell(log), known=False)
