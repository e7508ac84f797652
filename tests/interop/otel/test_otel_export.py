"""A log as OpenTelemetry sees it: names, parents, times, attributes; restarts; and what fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import anyio
import anyio.to_thread
import duolog
import pytest
from duolog.engine.errors import LogUnavailable, MissingExtra
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ActorFailed,
    Event,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    Origin,
    Participant,
    ProgressRated,
    ScorerFailed,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    StopAdvised,
    Tokens,
    Unknown,
    UtilityScored,
)
from duolog.engine.log.contract import Subscription
from duolog.engine.log.open import MemoryLog
from duolog.engine.records import Draft, Record
from duolog.interop.otel import names
from duolog.interop.otel import scores as otel
from duolog.interop.otel import sdk as emitting
from duolog.interop.otel.exporter import OtelExport
from duolog.interop.otel.signals import SignalFold
from duolog.testing import by
from gated_log import Gate
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode
from otel_memory import Memory, ids, parent, seconds

NOON = 1_793_534_400.0  # 2026-11-01 12:00 UTC
JUDGE = ScorerRef(name="judge", version="2", config="abc")
RUBRIC = ScorerRef(name="rubric", version="1", config="")


def opened(**more: object) -> SessionOpened:
    about = {
        "task": "support",
        "instance": "i-1",
        "participants": (
            Participant(name="ann", role="human"),
            Participant(name="bot", role="agent", policy="v7"),
        ),
        "clock": "utc",
    }
    return SessionOpened(**(about | more))  # type: ignore[arg-type]


def human(event: Event, time: float) -> Draft:
    return by("human", event, actor="ann", time=NOON + time)


def agent(event: Event, time: float) -> Draft:
    return by("agent", event, actor="bot", time=NOON + time)


def engine(event: Event, time: float) -> Draft:
    return by("environment", event, time=NOON + time)


CALL = ModelCalled(
    model="openai/gpt-4o",
    purpose="reply",
    request="d1",
    reply={"text": "secret reply", "finish": "stop", "model": "gpt-4o-2024-08-06"},
    tokens=Tokens(prompt=100, completion=20, cached=60, reasoning=8),
    latency=1.5,
    cost=0.002,
)

STORY = [
    engine(opened(), 0),
    human(MessageSent(text="secret question"), 1),  # 2
    agent(CALL, 4),  # 3
    agent(ActionTaken(name="look_up", arguments={"order": "secret"}), 5),  # 4
    engine(ActionResolved(action=4, outcome="ok", observation="secret found"), 7),  # 5
    agent(SnapshotTaken(content="secret draft", digest="a"), 8),  # 6
    human(MessageSent(text="secret complaint"), 20),  # 7: round 2
    agent(ActionTaken(name="look_up"), 21),  # 8
    engine(ActionResolved(action=8, outcome="failed", error="secret trouble"), 22),  # 9
    agent(MessageSent(text="secret excuse"), 23),  # 10
    human(SessionClosed(reason="finished", by="ann"), 30),  # 11
]

SCORES = [
    Draft(
        UtilityScored(scorer=RUBRIC, snapshot=6, value=0.75, parts={"tone": 0.5}), "r", "scorer", 0
    ),
    Draft(
        ProgressRated(round=1, rating=2, until=6, explanation="secret reason", scorer=JUDGE),
        "judge",
        "scorer",
        NOON + 20,
    ),
]


async def write(log: duolog.Log, drafts: Sequence[Draft], session: str = "s") -> list[Record]:
    return await log.append(session, drafts)


def export(log: duolog.Log, memory: Memory, **more: object) -> OtelExport:
    return duolog.otel_export(
        log,
        tracer_provider=memory.tracers,
        meter_provider=memory.meters,
        logger_provider=memory.loggers,
        **({"deadline": 60.0} | more),  # type: ignore[arg-type]
    )


async def told(drafts: Sequence[Draft] = STORY, **more: object) -> Memory:
    """What is told of a session."""
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, drafts)
        async with export(log, memory, **more) as exported:
            pass
        assert exported.statistics().failed == 0
        assert exported.statistics().lag == 0
    return memory


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


# --- spans ----------------------------------------------------------------------------------------


async def test_spans_nest_as_session_round_turn_and_work() -> None:
    memory = await told()
    session = memory.span("invoke_workflow support")
    first, second = memory.span("round"), memory.span("round", 1)
    asked, complained = memory.span("human_turn"), memory.span("human_turn", 1)
    turn, excuse = memory.span("invoke_agent v7"), memory.span("invoke_agent v7", 1)
    chat = memory.span("chat gpt-4o")
    found, failed = memory.span("execute_tool look_up"), memory.span("execute_tool look_up", 1)
    assert len(memory.spans()) == 10
    assert len({ids(span)[0] for span in memory.spans()}) == 1
    assert parent(session) is None
    for inner, outer in (
        (first, session),
        (second, session),
        (asked, first),
        (turn, first),
        (chat, turn),
        (found, turn),
        (complained, second),
        (excuse, second),
        (failed, excuse),
    ):
        assert parent(inner) == ids(outer)[1], inner.name
    for span, began, ended in (
        (session, 0, 30),
        (first, 0, 8),
        (asked, 1, 1),
        (turn, 2.5, 8),
        (chat, 2.5, 4),
        (found, 5, 7),
        (second, 20, 30),
        (complained, 20, 20),
        (excuse, 21, 23),
        (failed, 21, 22),
    ):
        assert seconds(span) == (NOON + began, NOON + ended), span.name


async def test_attributes_are_those_of_the_conventions() -> None:
    memory = await told()
    session = memory.span("invoke_workflow support")
    assert session.kind is SpanKind.INTERNAL
    assert session.instrumentation_scope is not None
    assert session.instrumentation_scope.name == "duolog"
    assert session.instrumentation_scope.schema_url == names.SCHEMA_URL
    said = attributes(session)
    assert {name: said[name] for name in said if not name.startswith("duolog.effort.")} == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.conversation.id": "s",
        "session.id": "s",
        "gen_ai.workflow.name": "support",
        "gen_ai.agent.name": "v7",
        "duolog.session.clock": "utc",
        "duolog.session.instance": "i-1",
        "duolog.session.close_reason": "finished",
        "duolog.session.rounds": 2,
    }
    assert said["duolog.effort.acts"] == 2
    assert said["duolog.effort.seconds"] == 12.0
    assert attributes(memory.span("invoke_agent v7")) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "v7",
        "gen_ai.conversation.id": "s",
        "duolog.actor.name": "bot",
        "duolog.actor.kind": "agent",
        "duolog.round.index": 1,
        "duolog.turn.acts": 2,
        "duolog.turn.snapshots": 1,
    }
    chat = memory.span("chat gpt-4o")
    assert chat.kind is SpanKind.CLIENT
    assert attributes(chat) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": "gpt-4o-2024-08-06",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.reasoning.output_tokens": 8,
        "gen_ai.conversation.id": "s",
        "duolog.model.purpose": "reply",
        "duolog.model.attempt": 1,
        "duolog.model.cost": 0.002,
    }
    assert attributes(memory.span("execute_tool look_up")) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look_up",
        "gen_ai.tool.call.id": "s/trace/4",
        "gen_ai.conversation.id": "s",
        "duolog.actor.kind": "agent",
    }
    first = attributes(memory.span("round"))
    assert first["duolog.round.index"] == 1
    assert first["duolog.round.stage"] == "initial"
    assert first["duolog.round.updated"] is True
    assert first["duolog.effort.acts"] == 1


async def test_failures_are_errors_of_their_spans() -> None:
    crashed = [
        *STORY[:7],
        agent(ActorFailed(error="secret trouble", type="KeyError"), 21),
        engine(SessionClosed(reason="failed", by="engine"), 22),
    ]
    memory = await told(crashed)
    for span in (memory.span("invoke_agent v7", 1), memory.span("invoke_workflow support")):
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description is None
        assert attributes(span)["error.type"] == "KeyError"
    denied = ModelCalled(model="m", purpose="act", request="", error="ModelTimeout: secret")
    memory = await told([STORY[0], agent(denied, 1)])
    assert memory.span("chat m").status.status_code is StatusCode.ERROR
    assert attributes(memory.span("chat m"))["error.type"] == "ModelTimeout"
    assert attributes(memory.span("chat m"))["gen_ai.provider.name"] == "_OTHER"
    memory = await told()
    failed = memory.span("execute_tool look_up", 1)
    assert failed.status.status_code is StatusCode.ERROR
    assert attributes(failed)["error.type"] == "failed"


async def test_contents_stay_at_home_unless_asked_for() -> None:
    async def everything(*, content: bool) -> str:
        memory = Memory()
        async with duolog.open("memory://") as log:
            await write(log, STORY)
            for score in SCORES:
                await log.append("s", [score], stream=f"{score.actor}@1")
            thanks = FeedbackGiven(thumbs="up", comment="secret thanks")
            await write(log, [human(thanks, 40)])
            async with export(log, memory, content=content):
                pass
        return "\n".join([*(span.to_json() for span in memory.spans()), str(memory.events())])

    assert "secret" not in await everything(content=False)
    said = await everything(content=True)
    for what in (
        "question",
        "reply",
        "found",
        "complaint",
        "trouble",
        "excuse",
        "reason",
        "thanks",
    ):
        assert f"secret {what}" in said
    memory = await told(content=True)
    assert attributes(memory.span("invoke_agent v7", 1))["gen_ai.output.messages"] == (
        '[{"role":"assistant","parts":[{"type":"text","content":"secret excuse"}]}]'
    )
    assert attributes(memory.span("chat gpt-4o"))["gen_ai.output.messages"] == (
        '[{"role":"assistant","parts":[{"type":"text","content":"secret reply"}],'
        '"finish_reason":"stop"}]'
    )


async def test_a_session_that_is_open_has_no_span_yet_and_what_is_over_in_it_has() -> None:
    memory = await told(STORY[:7])
    assert [span.name for span in memory.spans()] == [
        "chat gpt-4o",
        "execute_tool look_up",
        "human_turn",
        "invoke_agent v7",
        "round",
    ]


async def test_what_is_in_flight_when_a_session_closes_ends_with_it() -> None:
    memory = await told([*STORY[:4], engine(SessionClosed(reason="limit", by="rounds"), 9)])
    span = memory.span("execute_tool look_up")
    assert seconds(span) == (NOON + 5, NOON + 9)
    assert attributes(span)["error.type"] == "cancelled"


async def test_an_action_may_outlast_its_turn() -> None:
    late = engine(ActionResolved(action=4, outcome="ok"), 25)
    memory = await told([*STORY[:4], STORY[6], late, STORY[10]])
    span = memory.span("execute_tool look_up")
    assert seconds(span) == (NOON + 5, NOON + 25)
    assert parent(span) == ids(memory.span("invoke_agent v7"))[1]


async def test_clocks_that_go_backwards_make_no_span_end_before_it_began() -> None:
    backwards = [
        Draft(draft.event, draft.actor, draft.role, NOON - number)
        for number, draft in enumerate(STORY)
    ]
    memory = await told(backwards)
    assert len(memory.spans()) == 10
    for span in memory.spans():
        began, ended = seconds(span)
        assert began <= ended, span.name


async def test_virtual_time_begins_where_it_is_told_to() -> None:
    virtual = [
        by("environment", opened(clock="virtual", seed=1)),
        by("human", MessageSent(text="Hi"), actor="ann", time=2.0),
        by("agent", CALL, actor="bot", time=3.0),
        by("agent", CALL, actor="bot", time=3.0),
        by("agent", MessageSent(text="Hello"), actor="bot", time=6.0),
        by("environment", SessionClosed(reason="finished", by="ann"), time=7.0),
    ]
    memory = await told(virtual, virtual_epoch=NOON)
    assert seconds(memory.span("invoke_workflow support")) == (NOON, NOON + 7)
    # On virtual time a call is recorded before its seconds pass, and one follows the other.
    assert seconds(memory.span("chat gpt-4o")) == (NOON + 3, NOON + 4.5)
    assert seconds(memory.span("chat gpt-4o", 1)) == (NOON + 4.5, NOON + 6)


async def test_a_fork_is_a_trace_of_its_own_with_a_link_to_its_origin() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY)
        fork = engine(opened(forked_from=Origin(session="s", version=7)), 100)
        await write(log, [fork, *STORY[1:7], *STORY[9:]], "f")
        async with export(log, memory):
            pass
    [origin] = [span for span in memory.spans("s") if span.name == "invoke_workflow support"]
    [session] = [span for span in memory.spans("f") if span.name == "invoke_workflow support"]
    [link] = session.links
    assert (link.context.trace_id, link.context.span_id) == ids(origin)
    assert ids(session)[0] != ids(origin)[0]
    # What it took over is its origin's, and told there.
    assert [span.name for span in memory.spans("f")] == [
        "human_turn",
        "invoke_agent v7",
        "round",
        "invoke_workflow support",
    ]
    assert sum(count for _, _, count in memory.metrics()["gen_ai.client.operation.duration"]) == 1
    effort = {told["gen_ai.agent.name"]: n for told, n, _ in memory.metrics()["duolog.effort.acts"]}
    assert effort == {"v7": 2}


# --- events ---------------------------------------------------------------------------------------


async def test_scores_ratings_and_feedback_are_evaluation_events() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY)
        for score in SCORES:
            await log.append("s", [score], stream=f"{score.actor}@1")
        missing = UtilityScored(scorer=RUBRIC, snapshot=6, missing="no model")
        broken = ScorerFailed(scorer=JUDGE, error="secret", type="ValueError")
        for event in (missing, broken):
            await log.append("s", [Draft(event, "r", "scorer", NOON)], stream="r@1")
        await write(log, [human(FeedbackGiven(thumbs="down", edits_kept=0.25, of=6), 40)])
        async with export(log, memory):
            pass
    turn, first = ids(memory.span("invoke_agent v7"))[1], ids(memory.span("round"))[1]
    session = ids(memory.span("invoke_workflow support"))[1]
    who = {"gen_ai.conversation.id": "s"}
    rubric = {"duolog.scorer.name": "rubric", "duolog.scorer.version": "1"}
    judge = {
        "duolog.scorer.name": "judge",
        "duolog.scorer.version": "2",
        "duolog.scorer.config": "abc",
    }
    evaluations = [event for event in memory.events() if event[0] == "gen_ai.evaluation.result"]
    assert [(span, attributes) for _, span, attributes in evaluations] == [
        (
            turn,
            {
                **who,
                **rubric,
                "duolog.log.position": 12,
                "gen_ai.evaluation.name": "utility",
                "gen_ai.evaluation.score.value": 0.75,
                "duolog.score.part.tone": 0.5,
            },
        ),
        (
            first,
            {
                **who,
                **judge,
                "duolog.log.position": 13,
                "gen_ai.evaluation.name": "progress",
                "gen_ai.evaluation.score.value": 2,
                "duolog.round.index": 1,
            },
        ),
        (
            turn,
            {
                **who,
                **rubric,
                "duolog.log.position": 14,
                "gen_ai.evaluation.name": "utility",
                "error.type": "missing",
            },
        ),
        (
            session,
            {
                **who,
                **judge,
                "duolog.log.position": 15,
                "gen_ai.evaluation.name": "judge",
                "error.type": "ValueError",
            },
        ),
        (
            turn,
            {
                **who,
                "duolog.log.position": 16,
                "duolog.scorer.name": "human",
                "gen_ai.evaluation.name": "feedback",
                "gen_ai.evaluation.score.label": "down",
                "gen_ai.evaluation.score.value": 0.25,
            },
        ),
    ]


async def test_advice_to_stop_is_told_once_however_it_becomes_known() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY[:7])
        rated = ProgressRated(round=1, rating=2, until=6, scorer=JUDGE)
        await log.append("s", [Draft(rated, "judge", "scorer", NOON + 21)], stream="judge@2")
        advised = StopAdvised(round=1, tau=1)
        unheard = StopAdvised(round=1, tau=7, enforced=True)
        for event in (advised, unheard):
            draft = Draft(event, "tolerance", "scorer", NOON + 21)
            await log.append("s", [draft], stream="tolerance@1")
        async with export(log, memory):
            pass
        first = ids(memory.span("round"))[1]
    stops = [event for event in memory.events() if event[0] == "duolog.stop.decision"]
    assert [
        (span, said["duolog.stop.tau"], said["duolog.stop.enforced"]) for _, span, said in stops
    ] == [
        (first, 1, False),
        (first, 7, True),
    ]
    assert stops[0][2]["duolog.round.index"] == 1
    counted = {
        told["duolog.stop.tau"]: n for told, n, _ in memory.metrics()["duolog.stop.decisions"]
    }
    assert counted == {1: 1, 7: 1}


# --- metrics --------------------------------------------------------------------------------------


async def test_metrics() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY[:6])
        await log.append("s", SCORES[:1], stream="rubric@1")
        await write(log, STORY[6:])
        async with export(log, memory):
            pass
    found = memory.metrics()
    who = {"gen_ai.workflow.name": "support", "gen_ai.agent.name": "v7"}
    model = {
        **who,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
    }
    assert found["gen_ai.client.operation.duration"] == [(model, 1.5, 1)]
    assert found["gen_ai.client.token.usage"] == [
        ({**model, "gen_ai.token.type": "input"}, 100, 1),
        ({**model, "gen_ai.token.type": "output"}, 20, 1),
    ]
    assert [cost for _, cost, _ in found["duolog.model.cost"]] == [0.002]
    tool = {**who, "gen_ai.tool.name": "look_up"}
    assert found["gen_ai.execute_tool.duration"] == [
        (tool, 2.0, 1),
        ({**tool, "error.type": "failed"}, 1.0, 1),
    ]
    assert found["gen_ai.invoke_agent.duration"] == [(who, 7.5, 2)]
    finished = {**who, "duolog.session.close_reason": "finished"}
    assert found["gen_ai.workflow.duration"] == [(finished, 30.0, 1)]
    assert found["duolog.round.duration"] == [
        ({**who, "duolog.round.stage": "initial"}, 8.0, 1),
        ({**who, "duolog.round.stage": "refinement"}, 10.0, 1),
    ]
    assert found["duolog.score.value"] == [({**who, "duolog.scorer.name": "rubric"}, 0.75, 1)]
    assert found["duolog.session.utility"] == [(who, 0.75, 1)]
    assert found["duolog.effort.acts"] == [(who, 2, 1)]
    assert found["duolog.effort.rounds"] == [(who, 2, 1)]
    assert found["duolog.effort.time"] == [(who, 12.0, 1)]
    directions = {told["duolog.effort.direction"] for told, _, _ in found["duolog.effort.tokens"]}
    assert directions == {"written", "read"}
    events = {told["duolog.event.kind"]: n for told, n, _ in found["duolog.events"]}
    assert events["MessageSent"] == 3
    assert sum(events.values()) == 12
    assert set(found) <= set(names.INSTRUMENTS)
    for points in found.values():
        for told, _, _ in points:
            assert "gen_ai.conversation.id" not in told


# --- restarts -------------------------------------------------------------------------------------


async def test_a_restart_doubles_nothing_and_goes_on_in_the_same_trace(tmp_path: Path) -> None:
    whole = await told()
    expected = sorted((ids(span), seconds(span), span.name) for span in whole.spans())
    for cut in range(1, len(STORY)):
        memory = Memory()
        url = f"sqlite:///{tmp_path}/{cut}.db"
        async with duolog.open(url) as log:
            await write(log, STORY[:cut])
            async with export(log, memory):
                pass
        async with duolog.open(url) as log:
            await write(log, STORY[cut:])
            async with export(log, memory) as exported:
                pass
            assert exported.statistics().exported == len(STORY) - cut
        found = sorted((ids(span), seconds(span), span.name) for span in memory.spans())
        assert found == expected, cut
        counted = memory.metrics()
        assert [count for _, _, count in counted["duolog.round.duration"]] == [1, 1], cut
        assert [value for _, value, _ in counted["duolog.effort.acts"]] == [2], cut


async def test_without_a_name_nothing_is_kept() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY)
        for _ in range(2):
            async with export(log, memory, name=None):
                pass
    assert len(memory.spans()) == 20
    assert len({ids(span) for span in memory.spans()}) == 10


async def test_it_can_begin_late() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        records = await write(log, STORY)
        async with export(log, memory, after_position=records[-2].position) as exported:
            pass
        assert exported.statistics().exported == 1
    assert sorted(span.name for span in memory.spans()) == [
        "human_turn",
        "invoke_agent v7",
        "invoke_workflow support",
        "round",
    ]


async def test_one_session_of_several() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY, "a")
        await write(log, STORY, "b")
        async with export(log, memory, session="a"):
            await write(log, STORY, "c")
        assert {
            span.attributes["gen_ai.conversation.id"] for span in memory.spans() if span.attributes
        } == {"a"}
        async with export(log, memory, session="nowhere"):
            pass


async def test_a_score_that_comes_when_all_is_over_is_told_about_its_span(tmp_path: Path) -> None:
    memory = Memory()
    async with duolog.open(f"sqlite:///{tmp_path}/log.db") as log:
        await write(log, STORY)
        async with export(log, memory):
            pass
    async with duolog.open(f"sqlite:///{tmp_path}/log.db") as log, export(log, memory):
        await log.append("s", SCORES[:1], stream="rubric@1")
    [(_, span, _)] = memory.events()
    assert span == ids(memory.span("invoke_agent v7"))[1]
    assert len(memory.spans()) == 10


async def test_what_could_not_be_noted_is_told_again_as_the_same() -> None:
    memory = Memory()
    gate = Gate(MemoryLog())
    async with duolog.Log(gate.log) as log:
        await write(log, STORY)
        gate.fail(lambda session, drafts, stream: LogUnavailable("the disk is full"))
        async with export(log, memory) as exported:
            pass
        assert exported.statistics().failed == 1
        gate.heal()
        async with export(log, memory):
            pass
    assert len(memory.spans()) == 20
    assert len({(ids(span), seconds(span), span.name) for span in memory.spans()}) == 10


async def test_a_log_that_another_writes_is_told_as_it_grows(tmp_path: Path) -> None:
    memory = Memory()
    url = f"sqlite:///{tmp_path}/log.db"

    def work() -> None:
        with duolog.open_sync(url) as log:
            s = log.session("s", task="support")
            s.human.says("Hello")
            s.agent.says("Hello!")
            s.close()

    async with duolog.open(url) as log, export(log, memory) as exported:
        await anyio.to_thread.run_sync(work)
        with anyio.fail_after(60):
            while exported.statistics().exported < 4:  # noqa: ASYNC110  (nobody tells)
                await anyio.sleep(0.01)
    assert memory.spans("s")[-1].name == "invoke_workflow support"


# --- live -----------------------------------------------------------------------------------------


async def test_live_with_the_recorder_all_is_told_by_the_time_that_it_is_left() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log, export(log, memory):
        for number in range(3):
            s = await log.session(f"s{number}", task="support", agent="v7")
            await s.human.says("Hello")
            await s.agent.says("Hello!")
            await s.close()
    assert [span.name for span in memory.spans()].count("invoke_workflow support") == 3


async def test_spans_of_the_product_are_no_parents() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        with memory.tracers.get_tracer("product").start_as_current_span("request"):
            async with export(log, memory):
                await write(log, STORY)
                await log.append("s", SCORES[:1], stream="rubric@1")
    assert parent(memory.span("invoke_workflow support")) is None


@pytest.mark.parametrize("rate", [0.0, 0.5])
async def test_sampling_takes_whole_sessions(rate: float) -> None:
    memory = Memory(ParentBased(TraceIdRatioBased(rate)) if rate else ALWAYS_OFF)
    async with duolog.open("memory://") as log:
        for number in range(40):
            await write(log, STORY, f"s{number}")
        async with export(log, memory):
            pass
    spans = [len(memory.spans(f"s{number}")) for number in range(40)]
    assert set(spans) == ({0, 10} if rate else {0})


# --- what fails -----------------------------------------------------------------------------------


class Broken(SpanProcessor):
    """Raises whenever a span ends."""

    def __init__(self, kind: type[BaseException]) -> None:
        self._kind = kind

    def on_end(self, span: ReadableSpan) -> None:
        raise self._kind(f"cannot take {span.name}")


@pytest.mark.parametrize("kind", [RuntimeError, asyncio.CancelledError])
async def test_an_exporter_that_fails_is_logged_and_the_rest_goes_on(
    caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    memory = Memory()
    memory.tracers.add_span_processor(Broken(kind))
    async with duolog.open("memory://") as log:
        async with export(log, memory) as exported:
            await write(log, STORY)
        assert exported.statistics().failed == 10
        assert exported.statistics().lag == 0
        assert await log.checkpoint("otel", "1") == len(STORY)
    assert "cannot take chat gpt-4o" in caplog.text
    assert len(memory.metrics()) > 5


class Stuck(SpanProcessor):
    """Holds up whoever ends a span, until it is let go."""

    def __init__(self) -> None:
        self.holding = threading.Event()
        self.let_go = threading.Event()

    def on_end(self, span: ReadableSpan) -> None:
        self.holding.set()
        self.let_go.wait(60)


async def test_an_exporter_that_hangs_holds_nobody_up() -> None:
    memory, stuck = Memory(), Stuck()
    memory.tracers.add_span_processor(stuck)
    try:
        async with duolog.open("memory://") as log:
            async with export(log, memory, deadline=0.1) as exported:
                await write(log, STORY)
                while not stuck.holding.is_set():  # noqa: ASYNC110  (set in a thread)
                    await anyio.sleep(0.001)
                await write(log, STORY, "t")  # recording goes on
            assert exported.statistics().lag > 0
            assert await log.checkpoint("otel", "1") == 0  # so that it is told next time
    finally:
        stuck.let_go.set()


async def test_the_error_of_the_block_is_what_is_raised() -> None:
    memory = Memory()

    async def use(log: duolog.Log) -> None:
        async with export(log, memory):
            await write(log, STORY)
            raise KeyError("the product's own")

    async with duolog.open("memory://") as log:
        with pytest.raises(KeyError):
            await use(log)
    assert len(memory.spans()) == 10


async def test_a_log_that_is_closed_first_ends_it() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log, export(log, memory) as exported:
        await write(log, STORY)
        await exported.settle()
        await log.aclose()
    assert len(memory.spans()) == 10


async def test_two_that_go_by_one_name_are_told_so(caplog: pytest.LogCaptureFixture) -> None:
    memory = Memory()
    async with (
        duolog.open("memory://") as log,
        export(log, memory) as one,
        export(log, memory) as other,
    ):
        await write(log, STORY)
        await one.settle()
        await other.settle()
    assert "another export goes by the same name" in caplog.text


class Away:
    """A log that cannot be read now and then."""

    def __init__(self, log: duolog.Log, times: int) -> None:
        self._log = log
        self._left = {"read_all": times, "subscribe": times}

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def _fail(self, what: str) -> None:
        if self._left[what]:
            self._left[what] -= 1
            raise LogUnavailable("the disk is away")

    async def read_all(self, *, session: str, after_position: int = 0) -> AsyncIterator[Record]:
        self._fail("read_all")
        async for record in self._log.read_all(session=session, after_position=after_position):
            yield record

    def subscribe(self, *, session: str | None, after_position: int) -> Subscription:
        self._fail("subscribe")
        return self._log.subscribe(session=session, after_position=after_position)


async def test_a_log_that_cannot_be_read_now_is_read_later() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY)
        away = cast(duolog.Log, Away(log, 2))
        async with export(away, memory, after_position=3, retry=0.0) as exported:
            pass
        assert exported.statistics().failed == 4
    assert "invoke_workflow support" in [span.name for span in memory.spans()]


async def test_what_cannot_be_expected_ends_the_export_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = Memory()

    def never(name: str, origin: object) -> list[SignalFold]:
        raise ZeroDivisionError("a mistake of ours")

    async with duolog.open("memory://") as log:
        emitter = emitting.Emitter(memory.tracers, memory.meters, memory.loggers)
        more = {"session": None, "name": None, "after_position": 0, "deadline": 60.0}
        async with OtelExport(log, emitter, never, **more):  # type: ignore[arg-type]
            await write(log, STORY)
    assert "a mistake of ours" in caplog.text


async def test_an_opening_that_is_damaged_costs_what_it_said() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        unreadable = Unknown("SessionOpened", 1, b'{"kind":"SessionOpened"}')
        await write(log, [Draft(unreadable, "engine", "environment", NOON), *STORY[1:]])
        async with export(log, memory) as exported:
            pass
        assert exported.statistics().failed == 1
    assert [span.name for span in memory.spans()].count("round") == 2


async def test_a_body_that_is_damaged_is_left_out() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        unreadable = Unknown("MessageSent", 1, b'{"kind":"MessageSent"}')
        await write(log, [*STORY[:6], Draft(unreadable, "ann", "human", NOON + 20), *STORY[7:]])
        async with export(log, memory, content=True) as exported:
            pass
        assert exported.statistics().failed == 1
    assert len([span for span in memory.spans() if span.name.startswith("invoke_workflow")]) == 1


async def test_a_forgotten_session_is_told_without_its_contents() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY)
        await log.forget("s")
        async with export(log, memory, content=True) as exported:
            pass
        assert exported.statistics().failed == 0
    assert "secret" not in "".join(span.to_json() for span in memory.spans())
    assert [span.name for span in memory.spans()][-1] == "invoke_workflow"


async def test_without_opentelemetry_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find(name: str) -> object:
        return None if name.startswith("opentelemetry") else find_spec(name)

    monkeypatch.setattr(otel, "find_spec", find)
    async with duolog.open("memory://") as log:
        with pytest.raises(MissingExtra, match=r"pip install 'duolog\[otel\]'"):
            duolog.otel_export(log)


def test_every_name_is_in_its_namespace() -> None:
    for name, (kind, unit, about, _) in names.INSTRUMENTS.items():
        assert name.startswith(("gen_ai.", "duolog."))
        assert unit
        assert about.endswith(".")
        assert kind in ("counter", "histogram")
