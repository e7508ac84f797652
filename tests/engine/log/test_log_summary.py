"""The fold behind the session list, against the folds that it abbreviates."""

from __future__ import annotations

from pathlib import Path

from duolog.engine.codec import digest
from duolog.engine.events import (
    ACTS,
    EVENTS,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    MessageSent,
    NoteTaken,
    Role,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    TurnYielded,
    UtilityScored,
)
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Draft
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

JUDGE = ScorerRef(name="judge", version="1", config="-")
EVENTS_OF_A_SESSION: tuple[Event, ...] = (
    MessageSent(text="x"),
    ActionTaken(name="search"),
    SnapshotTaken(content="x", digest=digest("x")),
    ApprovalAsked(question="?"),
    ApprovalGiven(asked=1, approved=True),
    NoteTaken(text="x"),
    TurnYielded(),
    SessionOpened(task="t", instance="i", participants=(), clock="utc", request="please"),
    UtilityScored(scorer=JUDGE, value=0.25),
    UtilityScored(scorer=JUDGE, value=None, missing="no judge"),
    UtilityScored(scorer=JUDGE, value=0.75),
)
roles: st.SearchStrategy[Role] = st.sampled_from(["human", "agent", "environment", "scorer"])
steps = st.lists(
    st.lists(st.tuples(st.sampled_from(EVENTS_OF_A_SESSION), roles), min_size=1, max_size=4),
    min_size=1,
    max_size=12,
)


async def test_only_the_trace_opens_and_closes_a_session(tmp_path: Path) -> None:
    closed = Draft(SessionClosed(reason="ended", by="engine"), "engine", "environment", 2.0)
    async with open_log(f"{tmp_path}/a.db") as log:
        await log.append("s", [Draft(MessageSent(text="x"), "ann", "human", 1.0)])
        await log.append("s", [closed], stream="review")
        assert (await log.summary("s")).state == "open"
        assert (await log.verify()).problems == ()


@settings(max_examples=examples(150))
@given(appends=steps, streams=st.lists(st.sampled_from([TRACE, TRACE, "judge@1"]), min_size=12))
async def test_the_list_says_what_the_records_say(
    appends: list[list[tuple[Event, Role]]], streams: list[str]
) -> None:
    async with open_log("memory://") as log:
        for append, stream in zip(appends, streams, strict=False):
            drafts = [Draft(event, "somebody", role, 1.0) for event, role in append]
            await log.append("s", drafts, stream=stream)
        records = [record async for record in log.read_all()]
        trace = [record for record in records if record.stream == TRACE]
        opened = any(isinstance(record.event, SessionOpened) for record in trace)
        summary = await log.summary("s")
        assert (summary.events, summary.version) == (len(records), len(trace))
        assert (summary.task, summary.instance) == (("t", "i") if opened else ("", ""))
        assert summary.position == records[-1].position


async def test_sqlite_says_the_same_after_it_was_closed(tmp_path: Path) -> None:
    lines = []
    for url in ("memory://", f"sqlite:///{tmp_path}/a.db"):
        log = open_log(url)
        async with log:
            for number, event in enumerate(EVENTS_OF_A_SESSION * 3):
                role: Role = "human" if number % 3 == 1 else "agent"
                await log.append(f"s{number % 2}", [Draft(event, role, role, number * 1.0)])
            lines.append([line async for line in log.sessions()])
    async with open_log(f"sqlite:///{tmp_path}/a.db", create=False) as log:
        lines.append([line async for line in log.sessions()])
    assert lines[0] == lines[1] == lines[2]


def test_all_acts_are_events() -> None:
    assert set(EVENTS) >= ACTS
