"""Spans as a fold of the trace: whatever happens, they are well formed; and small parts of it."""

from __future__ import annotations

from collections.abc import Sequence

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
    Nudged,
    Participant,
    ProgressRated,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    Tokens,
    TurnYielded,
)
from duolog.engine.records import Draft, Record
from duolog.interop.otel import names
from duolog.interop.otel.gen_ai import ModelNamed, call_signals, error_kind, model_named
from duolog.interop.otel.scores import ScoreSignals
from duolog.interop.otel.session_export import SessionExporter
from duolog.interop.otel.signals import (
    SESSION,
    EventEmitted,
    MetricMeasured,
    Signal,
    SpanEnded,
    SpanNoted,
    SpanStarted,
    still_open,
)
from duolog.interop.otel.spans import SpanFold
from duolog.scoring.trajectory.options import Options
from duolog.testing import by
from duolog.testing.folds import records_of
from hypothesis import given
from hypothesis import strategies as st

ACTORS = (("ann", "human"), ("bob", "human"), ("bot", "agent"), ("tool", "agent"))

EVENTS = st.one_of(
    st.builds(MessageSent, text=st.sampled_from(["hi", ""])),
    st.builds(ActionTaken, name=st.sampled_from(["search", "submit"])),
    st.builds(
        ActionResolved,
        action=st.integers(1, 30),
        outcome=st.sampled_from(["ok", "failed", "cancelled"]),
        observation=st.sampled_from([None, "found"]),
    ),
    st.builds(SnapshotTaken, content=st.just("draft"), digest=st.sampled_from(["a", "b"])),
    st.builds(ApprovalAsked, question=st.just("may I?")),
    st.builds(ApprovalGiven, asked=st.integers(1, 9), approved=st.booleans()),
    st.builds(
        ModelCalled,
        model=st.sampled_from(["gpt-4o", "openai/gpt-4o", "a/b/c", ""]),
        purpose=st.just("act"),
        request=st.just(""),
        reply=st.sampled_from([None, "odd", 7, {"text": 3, "tool_calls": [1, {"id": 2}]}]),
        latency=st.floats(0, 100),
        tokens=st.builds(Tokens, prompt=st.none() | st.integers(0, 9)),
        error=st.sampled_from([None, "ModelTimeout: late", "???"]),
    ),
    st.just(NoteTaken(text="n")),
    st.just(TurnYielded()),
    st.just(Nudged(to="bot")),
    st.just(ProgressRated(round=1, rating=3)),
    st.just(FeedbackGiven(thumbs="up")),
    st.just(ActorFailed(error="e", type="KeyError")),
    st.just(SessionClosed(reason="finished", by="ann")),
)

OPENED = SessionOpened(
    task="t",
    instance="",
    participants=(Participant(name="ann", role="human"), Participant(name="bot", role="agent")),
    clock="utc",
)


@st.composite
def traces(draw: st.DrawFn) -> list[Record]:
    drafts: list[Draft] = []
    if draw(st.booleans()):
        drafts.append(by("environment", OPENED, time=draw(st.floats(0, 10))))
    for event in draw(st.lists(EVENTS, max_size=25)):
        actor, role = draw(st.sampled_from(ACTORS))
        drafts.append(Draft(event, actor, role, draw(st.floats(0, 100))))  # type: ignore[arg-type]
    return records_of(*drafts)


def facts_of(records: Sequence[Record], *, content: bool = True) -> list[Signal]:
    fold = SpanFold("session", content=content)
    return [fact for record in records for fact in fold.feed(record)]


@given(traces(), st.booleans())
def test_spans_are_well_formed(records: list[Record], content: bool) -> None:
    began: dict[str, SpanStarted] = {}
    ended: dict[str, SpanEnded] = {}
    for fact in facts_of(records, content=content):
        if isinstance(fact, SpanStarted):
            assert fact.key not in began
            assert (fact.parent is None) == (fact.key == SESSION)
            assert fact.parent is None or fact.parent in began
            began[fact.key] = fact
        elif isinstance(fact, SpanEnded):
            assert fact.key in began
            assert fact.key not in ended
            assert began[fact.key].start <= fact.end
            ended[fact.key] = fact
        elif isinstance(fact, EventEmitted):
            assert fact.about[-1] == SESSION
        elif isinstance(fact, MetricMeasured):
            assert fact.name in names.INSTRUMENTS
            assert fact.value >= 0
    closed = any(record.kind == "SessionClosed" for record in records)
    assert (SESSION in ended) == closed
    if closed:
        assert set(ended) == set(began)


class Kept:
    """Keeps what is emitted."""

    def __init__(self) -> None:
        self.facts: list[Signal] = []

    def emit(self, fact: Signal) -> None:
        self.facts.append(fact)


def never(what: str, session: str, error: BaseException) -> None:
    raise AssertionError(what) from error


@given(traces(), st.data())
def test_an_export_that_begins_again_exports_the_rest(
    records: list[Record], data: st.DataObject
) -> None:
    """It repeats the beginning of open spans, and nothing else."""
    if not records:
        return
    cut = data.draw(st.integers(0, len(records) - 1))
    again = Kept()
    exporter = SessionExporter("session", [SpanFold("session")], again, records[:cut], never)
    for record in records[cut:]:
        exporter.export(record)
    before = facts_of(records[:cut], content=False)
    rest = facts_of(records, content=False)[len(before) :]
    open_spans: dict[str, list[SpanStarted | SpanNoted]] = {}
    still_open(open_spans, before)
    resumed = [fact for held in open_spans.values() for fact in held]
    assert again.facts == resumed + rest


@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("openai/gpt-4o", ModelNamed("openai", "gpt-4o")),
        ("gpt-4o", ModelNamed("openai", "gpt-4o")),
        ("claude-sonnet-4-5", ModelNamed("anthropic", "claude-sonnet-4-5")),
        ("bedrock/anthropic.claude-v2", ModelNamed("aws.bedrock", "anthropic.claude-v2")),
        ("openrouter/meta/llama-3", ModelNamed("openrouter", "meta/llama-3")),
        ("llama-3", ModelNamed("_OTHER", "llama-3")),
        ("openai/", ModelNamed("_OTHER", "openai/")),
        ("", ModelNamed("_OTHER", "")),
    ],
)
def test_models_are_named_as_the_conventions_do(model: str, named: ModelNamed) -> None:
    assert model_named(model) == named


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("ModelTimeout: no answer", "ModelTimeout"),
        ("it did not work: no", "_OTHER"),
        ("broken", "_OTHER"),
        ("", "_OTHER"),
    ],
)
def test_the_kind_of_an_error_has_few_values(error: str, kind: str) -> None:
    assert error_kind(error) == kind


def test_tool_calls_of_a_reply_are_parts_of_its_message() -> None:
    reply: JSON = {
        "text": "Let me see.",
        "tool_calls": [{"id": "c1", "name": "look_up", "arguments": "{}"}],
        "finish": "tool_calls",
    }
    called = ModelCalled(model="m", purpose="act", request="", reply=reply)
    facts = list(call_signals(called, "call/1", "turn", 0.0, "s", {}, content=True))
    [ended] = [fact for fact in facts if isinstance(fact, SpanEnded)]
    assert ended.attributes[names.OUTPUT_MESSAGES] == (
        '[{"role":"assistant","parts":[{"type":"text","content":"Let me see."},'
        '{"type":"tool_call","id":"c1","name":"look_up","arguments":"{}"}],'
        '"finish_reason":"tool_calls"}]'
    )


def test_approvals_are_counted_by_who_decided_and_oversight_by_the_turn() -> None:
    opened = SessionOpened(task="deploy", instance="", participants=(), clock="utc")
    records = records_of(
        *[
            Draft(opened, "e", "environment", 0.0),
            Draft(ApprovalAsked(question="May I?"), "bot", "agent", 1.0),
            Draft(ApprovalGiven(asked=2, approved=True, source="person"), "ann", "human", 4.0),
            Draft(ApprovalAsked(question="And this?"), "bot", "agent", 5.0),
            Draft(ApprovalGiven(asked=4, approved=False, expired=True), "e", "environment", 9.0),
            Draft(ActionTaken(name="deploy"), "bot", "agent", 10.0),
            Draft(MessageSent(text="Stop"), "ann", "human", 11.0),
        ]
    )
    found = [fact for fact in facts_of(records) if isinstance(fact, MetricMeasured)]
    decided = [
        (one.attributes[names.APPROVAL_DECISION], one.attributes[names.APPROVAL_SOURCE])
        for one in found
        if one.name == names.APPROVALS
    ]
    assert decided == [("approved", "person"), ("expired", "unknown")]
    assert [one.value for one in found if one.name == names.APPROVAL_LATENCY] == [3.0]
    scores = ScoreSignals(records[0].session, Options())
    seen = [
        (fact.name, fact.value)
        for record in records
        for fact in scores.feed(record)
        if isinstance(fact, MetricMeasured)
    ]
    assert (names.INTERRUPTIONS, 1) in seen
    stretches = [value for name, value in seen if name == names.STRETCH_ACTS]
    seconds = [value for name, value in seen if name == names.STRETCH_DURATION]
    assert (stretches, seconds) == ([1, 2], [0.0, 5.0])  # the human's answer ends the first
