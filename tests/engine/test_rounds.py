"""Rounds: the stretches between handoffs, in both conventions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from duolog.engine.events import (
    ACTS,
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    FeedbackGiven,
    MessageSent,
    NoteTaken,
    ProgressRated,
    Role,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    TurnYielded,
    UtilityScored,
)
from duolog.engine.records import Draft, Record
from duolog.engine.rounds import Round, RoundProjector, Rounds, is_act, is_blank
from duolog.engine.session.state import TraceState
from duolog.testing import by, given, records_of
from hypothesis import given as given_any
from hypothesis import strategies as st

CONVENTIONS: tuple[Rounds, ...] = ("handoff", "human-turn")


def opened(request: str | None = None) -> Draft:
    event = SessionOpened(task="t", instance="1", participants=(), clock="virtual", request=request)
    return by("environment", event)


def closed() -> Draft:
    return by("human", SessionClosed(reason="finished", by="human"))


def says(role: Role, text: str = "x") -> Draft:
    return by(role, MessageSent(text=text))


def does(role: Role, name: str = "search") -> Draft:
    return by(role, ActionTaken(name=name))


def writes(role: Role, content: str) -> Draft:
    return by(role, SnapshotTaken(content=content, digest=content))


def all_rounds(facts: Sequence[Draft], convention: Rounds = "handoff") -> list[Round]:
    """Every round of a trace, the open one at its end included."""
    return rounds_of(records_of(*facts), convention)


def rounds_of(records: Sequence[Record], convention: Rounds) -> list[Round]:
    projector = RoundProjector(convention)
    found = [over for record in records if (over := projector.feed(record)) is not None]
    if not projector.current.closed:
        found.append(projector.current)
    return found


def spans(facts: Sequence[Draft], convention: Rounds = "handoff") -> list[tuple[int, int]]:
    return [(r.first, r.last) for r in all_rounds(facts, convention)]


# --- the paper's definition --------------------------------------------------------------------------


def test_a_human_act_after_an_agents_opens_a_round() -> None:
    facts = [opened(), says("human"), does("agent"), says("agent"), says("human"), does("agent")]
    assert spans(facts) == [(1, 4), (5, 6)]


def test_consecutive_human_acts_share_a_round() -> None:
    facts = [opened(), says("human"), says("human"), does("human"), does("agent"), says("human")]
    assert spans([*facts, does("human"), says("human")]) == [(1, 5), (6, 8)]


def test_an_agent_that_starts_unprompted_begins_round_one_alone() -> None:
    facts = [opened(), says("agent"), does("agent"), says("human"), closed()]
    first, second = all_rounds(facts)
    assert (first.human_acts, first.agent_acts) == (0, 2)
    assert (second.human_acts, second.agent_acts) == (1, 0)


def test_a_greeting_belongs_to_round_one_which_the_first_request_does_not_end() -> None:
    greeting = [opened(), says("agent"), says("agent")]
    facts = [*greeting, says("human"), says("human"), does("agent"), says("human")]
    assert spans(facts) == [(1, 6), (7, 7)]
    first = all_rounds(facts)[0]
    assert (first.human_acts, first.agent_acts) == (2, 3)
    assert spans([*greeting, says("human"), closed()]) == [(1, 5)]


def test_where_there_is_a_request_a_message_of_the_agent_is_no_greeting() -> None:
    assert spans([opened("Plan."), says("agent"), says("human")]) == [(1, 2), (3, 3)]


def test_an_output_or_action_that_nobody_asked_for_is_no_greeting() -> None:
    for act in (does("agent"), writes("agent", "a")):
        facts = [opened(), says("agent"), act, says("agent"), says("human")]
        assert spans(facts) == [(1, 4), (5, 5)]


def test_a_greeting_can_be_rated() -> None:
    state = TraceState("session")
    for record in records_of(opened(), says("agent"), says("human")):
        state.feed(record)
    assert state.rated_round() == (1, 3)


def test_what_is_no_act_lies_in_the_round_where_it_falls_and_opens_none() -> None:
    facts = [
        opened(),
        says("human"),
        does("agent"),
        by("environment", ActionResolved(action=3, outcome="ok")),
        by("human", NoteTaken(text="n")),
        by("human", ProgressRated(round=1, rating=3)),
        by("human", TurnYielded()),
        says("human"),
        by("environment", ActionResolved(action=3, outcome="ok")),
        closed(),
    ]
    assert spans(facts) == [(1, 7), (8, 10)]


def test_the_environment_never_acts() -> None:
    facts = [opened(), says("human"), writes("environment", "x"), says("human"), says("human")]
    [only] = all_rounds(facts)
    assert (only.human_acts, only.agent_acts, only.snapshot) == (3, 0, None)


def test_failed_and_refused_acts_are_acts() -> None:
    refused = [
        does("agent", "submit"),
        by("environment", ActionResolved(action=3, outcome="failed", error="stale")),
    ]
    facts = [opened(), says("human"), *refused, says("human")]
    assert spans(facts) == [(1, 4), (5, 5)]


def test_an_enforced_stop_closes_the_round_as_it_stands() -> None:
    stop = by("environment", SessionClosed(reason="tolerance", by="engine"))
    facts = [opened(), says("human"), does("agent"), says("human"), stop]
    last = all_rounds(facts)[-1]
    assert (last.number, last.first, last.last, last.closed) == (2, 4, 5, True)


def test_a_round_says_what_a_scorer_needs() -> None:
    given(opened("Plan."), says("agent"), writes("agent", "a"), does("human")).when(
        RoundProjector(), writes("human", "b"), by("human", NoteTaken(text="n")), does("agent"),
        says("human"),
    ).then(
        Round(
            number=2,
            first=4,
            last=7,
            last_act=7,
            human_acts=2,
            agent_acts=1,
            snapshot=5,
            stage="refinement",
            closed=True,
        )
    )  # fmt: skip


def test_the_request_counts_as_the_humans_in_round_one_only() -> None:
    facts = [opened("Plan."), does("agent"), says("human"), does("agent")]
    first, second = all_rounds(facts)
    assert (first.requested, first.human_acts) == (True, 0)
    assert (second.requested, second.human_acts) == (False, 1)
    assert not all_rounds([opened("  "), does("agent")])[0].requested


# --- the published analysis ----------------------------------------------------------------------------


def test_every_collaborative_act_of_the_human_opens_a_round() -> None:
    """As the worked example: two messages in a row, an approval, a task action, an edit."""
    facts = [
        opened(),
        says("human"),  # the request
        does("agent"),
        says("human"),  # opens 2
        says("human"),  # opens 3, with no agent act between
        does("human"),  # a task action opens nothing
        writes("human", "x"),  # nor does an edit
        by("agent", ApprovalAsked(question="?")),
        by("human", ApprovalGiven(asked=8, approved=False)),  # opens 4
        by("human", ApprovalAsked(question="?")),  # opens 5
        closed(),
    ]
    assert spans(facts, "human-turn") == [(1, 3), (4, 4), (5, 8), (9, 9), (10, 11)]
    assert spans(facts, "handoff") == [(1, 3), (4, 8), (9, 11)]


def test_the_initial_request_opens_nothing() -> None:
    for request, expected in (("Plan.", [(1, 1), (2, 3)]), (None, [(1, 3)])):
        facts = [opened(request), says("human"), does("agent")]
        assert spans(facts, "human-turn") == expected


def test_a_first_message_after_somebody_acted_is_no_request() -> None:
    for before in (does("agent"), does("human"), says("agent")):
        facts = [opened(), before, says("human")]
        assert spans(facts, "human-turn") == [(1, 2), (3, 3)]


def test_an_action_that_is_meant_for_the_others_is_a_human_turn() -> None:
    """A message that failed, say, as against an action on the environment that failed."""
    unsent = ActionTaken(name="send_message", collaborative=True)
    failed = by("environment", ActionResolved(action=3, outcome="failed", error="too long"))
    facts = [opened("Plan."), does("agent"), by("human", unsent), failed, does("human")]
    facts += [by("agent", unsent), by("human", unsent), closed()]
    assert spans(facts, "human-turn") == [(1, 2), (3, 6), (7, 8)]
    assert spans(facts) == [(1, 2), (3, 6), (7, 8)]
    assert spans([opened("Plan."), by("human", unsent), by("human", unsent)]) == [(1, 3)]
    assert len(spans([opened("Plan."), *[by("human", unsent)] * 2], "human-turn")) == 3


# --- updates and stages --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("snapshots", "updated"),
    [
        ([writes("agent", "a")], True),
        ([writes("human", "a")], False),
        ([writes("agent", "  \n")], False),
        ([writes("human", "a"), writes("agent", "a")], False),
        ([writes("human", "a"), writes("agent", "b")], True),
        ([writes("agent", "a"), writes("human", "b")], True),
        ([by("agent", SnapshotTaken(content={}, digest="e"))], False),
        ([by("agent", SnapshotTaken(content=[1], digest="e"))], True),
        ([writes("environment", "a")], False),
    ],
)
def test_an_update_is_an_agents_snapshot_that_is_new_and_not_blank(
    snapshots: list[Draft], updated: bool
) -> None:
    [only] = all_rounds([opened(), *snapshots])[:1]
    assert only.updated is updated


def test_the_initial_stage_lasts_up_to_the_first_round_with_an_update() -> None:
    facts = [
        opened(), says("human"), says("agent"),
        says("human"), writes("agent", "a"), writes("agent", "b"),
        says("human"), says("agent"),
        says("human"), writes("agent", "b"),
    ]  # fmt: skip
    rounds = all_rounds(facts)
    assert [r.stage for r in rounds] == ["initial", "initial", "refinement", "refinement"]
    assert [r.update for r in rounds] == [None, 6, None, None]
    assert [r.snapshot for r in rounds] == [None, 6, None, 10]


def test_without_an_update_all_is_initial() -> None:
    facts = [opened(), *[says("human"), says("agent")] * 3]
    assert {r.stage for r in all_rounds(facts)} == {"initial"}


@pytest.mark.parametrize(
    ("content", "blank"),
    [("", True), (" \n", True), ("x", False), ({}, True), ([], True), (None, True), (0, False)]
    + [({"a": None}, False), ([""], False)],
)
def test_what_is_blank(content: object, blank: bool) -> None:
    assert is_blank(SnapshotTaken(content=content, digest="d")) is blank  # type: ignore[arg-type]


def test_a_forgotten_trace_still_has_its_rounds() -> None:
    facts = [opened("x"), says("human"), writes("agent", "a"), says("human"), closed()]
    forgotten = [msgspec.structs.replace(r, body=None, _event=None) for r in records_of(*facts)]
    rounds = rounds_of(forgotten, "handoff")
    assert [(r.first, r.last) for r in rounds] == [(1, 3), (4, 5)]
    assert not any(r.updated for r in rounds)


# --- whatever the trace ------------------------------------------------------------------------------

ROLES: st.SearchStrategy[Role] = st.sampled_from(["human", "agent", "environment"])
FACTS = st.lists(
    st.builds(
        by,
        ROLES,
        st.one_of(
            st.builds(MessageSent, text=st.just("x")),
            st.builds(ActionTaken, name=st.just("a"), collaborative=st.booleans()),
            st.builds(ActionResolved, action=st.just(1), outcome=st.just("ok")),
            st.builds(
                SnapshotTaken,
                content=st.sampled_from(["", "a", "b"]),
                digest=st.sampled_from("abc"),
            ),
            st.builds(ApprovalAsked, question=st.just("?")),
            st.builds(ApprovalGiven, asked=st.just(1), approved=st.booleans()),
            st.builds(NoteTaken, text=st.just("n")),
            st.builds(TurnYielded),
            st.builds(ProgressRated, round=st.just(1), rating=st.just(3)),
            st.builds(FeedbackGiven),
        ),
    ),
    max_size=40,
)
TRACES = st.tuples(st.sampled_from([None, "Plan."]), FACTS, st.booleans()).map(
    lambda made: [opened(made[0]), *made[1], *([closed()] if made[2] else [])]
)
CONVENTION = st.sampled_from(CONVENTIONS)


@given_any(TRACES, CONVENTION)
def test_rounds_partition_the_trace(facts: list[Draft], convention: Rounds) -> None:
    records = records_of(*facts)
    rounds = rounds_of(records, convention)
    assert [r.number for r in rounds] == list(range(1, len(rounds) + 1))
    covered = [version for r in rounds for version in range(r.first, r.last + 1)]
    assert covered == [record.version for record in records]
    for found in rounds:
        acts = [r for r in records[found.first - 1 : found.last] if is_act(r)]
        assert found.human_acts == sum(r.role == "human" for r in acts)
        assert found.agent_acts == sum(r.role == "agent" for r in acts)
        assert found.last_act == (acts[-1].version if acts else None)
        snapshots = [r.version for r in acts if r.kind == "SnapshotTaken"]
        assert found.snapshot == (snapshots[-1] if snapshots else None)
        assert found.update is None or found.update in snapshots
    assert all(r.closed for r in rounds[:-1])
    assert rounds[-1].closed is (records[-1].kind == "SessionClosed")


def is_greeting(facts: list[Draft], acts: Sequence[Record]) -> bool:
    """Whether all that was done so far are messages of agents, in a session without a request."""
    event = facts[0].event
    assert isinstance(event, SessionOpened)
    first = bool(acts) and next(filter(is_act, records_of(*facts))).version == acts[0].version
    messages = {(r.role, r.kind) for r in acts} == {("agent", "MessageSent")}
    return first and messages and not (event.request or "").strip()


@given_any(TRACES)
def test_a_round_opens_if_and_only_if_an_agent_has_acted_since_the_last(
    facts: list[Draft],
) -> None:
    """The definition, word for word, as against the fold."""
    records = records_of(*facts)
    openings = {r.first for r in rounds_of(records, "handoff")}
    start = 1
    for record in records:
        if record.kind in ACTS and record.role == "human":
            since = [r for r in records[start - 1 : record.version - 1] if is_act(r)]
            if is_greeting(facts, since):
                since, start = [], record.version  # it hands over nothing, ever
            assert (record.version in openings) is any(r.role == "agent" for r in since)
            if record.version in openings:
                start = record.version
        elif record.version > 1:
            assert record.version not in openings


@given_any(TRACES, CONVENTION, st.data())
def test_all_at_once_or_one_by_one_comes_to_the_same(
    facts: list[Draft], convention: Rounds, data: st.DataObject
) -> None:
    """Looking at the fold on the way does not change it, and every prefix is a trace."""
    records = records_of(*facts)
    watched = RoundProjector(convention)
    seen = []
    for record in records:
        over = watched.feed(record)
        if over is not None:
            seen.append(over)
        assert watched.current.number == watched.number
        assert watched.current.last == record.version
    if not watched.current.closed:
        seen.append(watched.current)
    assert seen == rounds_of(records, convention)
    cut = data.draw(st.integers(0, len(records)))
    before = rounds_of(records[:cut], convention) if cut else []
    assert before[:-1] == rounds_of(records, convention)[: max(0, len(before) - 1)]


@given_any(TRACES, CONVENTION, st.data())
def test_measurements_change_nothing(
    facts: list[Draft], convention: Rounds, data: st.DataObject
) -> None:
    ref = ScorerRef(name="judge", version="1", config="")
    measured = [
        msgspec.structs.replace(record, stream="judge@1")
        for record in records_of(
            by("scorer", UtilityScored(scorer=ref, value=1.0)),
            by("scorer", ProgressRated(scorer=ref, round=1, rating=1)),
            by("human", MessageSent(text="in another stream")),
            by("agent", SessionClosed(reason="finished", by="x")),
        )
    ]
    records = records_of(*facts)
    mixed: list[Record] = []
    for record in records:
        mixed += data.draw(st.lists(st.sampled_from(measured), max_size=2))
        mixed.append(record)
    assert rounds_of(mixed, convention) == rounds_of(records, convention)
