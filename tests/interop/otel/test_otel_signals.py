"""What OpenTelemetry gets of a session: spans, events and metrics, their names, parents and times."""

from __future__ import annotations

import duolog
from duolog.engine.events import (
    ActionResolved,
    ActorFailed,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    Origin,
    ProgressRated,
    ScorerFailed,
    SessionClosed,
    StopAdvised,
    UtilityScored,
)
from duolog.engine.records import Draft
from duolog.interop.otel import names
from duolog.testing import by
from opentelemetry.trace import SpanKind, StatusCode
from otel_memory import Memory, ids, parent, seconds
from otel_story import (
    CALL,
    JUDGE,
    NOON,
    RUBRIC,
    SCORES,
    STORY,
    agent,
    attributes,
    engine,
    export,
    exported_from,
    human,
    opened,
    write,
)

# --- spans ----------------------------------------------------------------------------------------


async def test_spans_nest_as_session_round_turn_and_work() -> None:
    memory = await exported_from()
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
    memory = await exported_from()
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
        "gen_ai.usage.cache_creation.input_tokens": 30,
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
    memory = await exported_from(crashed)
    for span in (memory.span("invoke_agent v7", 1), memory.span("invoke_workflow support")):
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description is None
        assert attributes(span)["error.type"] == "KeyError"
    denied = ModelCalled(model="m", purpose="act", request="", error="ModelTimeout: secret")
    memory = await exported_from([STORY[0], agent(denied, 1)])
    assert memory.span("chat m").status.status_code is StatusCode.ERROR
    assert attributes(memory.span("chat m"))["error.type"] == "ModelTimeout"
    assert attributes(memory.span("chat m"))["gen_ai.provider.name"] == "_OTHER"
    memory = await exported_from()
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
    memory = await exported_from(content=True)
    assert attributes(memory.span("invoke_agent v7", 1))["gen_ai.output.messages"] == (
        '[{"role":"assistant","parts":[{"type":"text","content":"secret excuse"}]}]'
    )
    assert attributes(memory.span("chat gpt-4o"))["gen_ai.output.messages"] == (
        '[{"role":"assistant","parts":[{"type":"text","content":"secret reply"}],'
        '"finish_reason":"stop"}]'
    )


async def test_a_session_that_is_open_has_no_span_yet_and_what_is_over_in_it_has() -> None:
    memory = await exported_from(STORY[:7])
    assert [span.name for span in memory.spans()] == [
        "chat gpt-4o",
        "execute_tool look_up",
        "human_turn",
        "invoke_agent v7",
        "round",
    ]


async def test_what_is_in_flight_when_a_session_closes_ends_with_it() -> None:
    memory = await exported_from(
        [*STORY[:4], engine(SessionClosed(reason="limit", by="rounds"), 9)]
    )
    span = memory.span("execute_tool look_up")
    assert seconds(span) == (NOON + 5, NOON + 9)
    assert attributes(span)["error.type"] == "cancelled"


async def test_an_action_may_outlast_its_turn() -> None:
    late = engine(ActionResolved(action=4, outcome="ok"), 25)
    memory = await exported_from([*STORY[:4], STORY[6], late, STORY[10]])
    span = memory.span("execute_tool look_up")
    assert seconds(span) == (NOON + 5, NOON + 25)
    assert parent(span) == ids(memory.span("invoke_agent v7"))[1]


async def test_clocks_that_go_backwards_make_no_span_end_before_it_began() -> None:
    backwards = [
        Draft(draft.event, draft.actor, draft.role, NOON - number)
        for number, draft in enumerate(STORY)
    ]
    memory = await exported_from(backwards)
    assert len(memory.spans()) == 10
    for span in memory.spans():
        began, ended = seconds(span)
        assert began <= ended, span.name


async def test_virtual_time_begins_at_its_epoch() -> None:
    virtual = [
        by("environment", opened(clock="virtual", seed=1)),
        by("human", MessageSent(text="Hi"), actor="ann", time=2.0),
        by("agent", CALL, actor="bot", time=3.0),
        by("agent", CALL, actor="bot", time=3.0),
        by("agent", MessageSent(text="Hello"), actor="bot", time=6.0),
        by("environment", SessionClosed(reason="finished", by="ann"), time=7.0),
    ]
    memory = await exported_from(virtual, virtual_epoch=NOON)
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
    # The records that it took over belong to its origin, and are exported there.
    assert [span.name for span in memory.spans("f")] == [
        "human_turn",
        "invoke_agent v7",
        "round",
        "invoke_workflow support",
    ]
    assert sum(count for _, _, count in memory.metrics()["gen_ai.client.operation.duration"]) == 1
    effort = {
        labels["gen_ai.agent.name"]: n for labels, n, _ in memory.metrics()["duolog.effort.acts"]
    }
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


async def test_advice_to_stop_is_emitted_once_however_it_becomes_known() -> None:
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
        labels["duolog.stop.tau"]: n for labels, n, _ in memory.metrics()["duolog.stop.decisions"]
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
    directions = {
        labels["duolog.effort.direction"] for labels, _, _ in found["duolog.effort.tokens"]
    }
    assert directions == {"written", "read"}
    events = {labels["duolog.event.kind"]: n for labels, n, _ in found["duolog.events"]}
    assert events["MessageSent"] == 3
    assert sum(events.values()) == 12
    assert set(found) <= set(names.INSTRUMENTS)
    for points in found.values():
        for labels, _, _ in points:
            assert "gen_ai.conversation.id" not in labels


async def test_of_a_session_that_nobody_evaluated_no_utility_is_exported() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY)
        async with export(log, memory):
            pass
    assert "duolog.effort.rounds" in memory.metrics()
    assert not {names.FINAL_UTILITY, "duolog.score.value"} & set(memory.metrics())
    exported = {name for span in memory.spans() for name in span.attributes or {}}
    assert not {names.SESSION_UTILITY, names.ROUND_UTILITY} & exported
