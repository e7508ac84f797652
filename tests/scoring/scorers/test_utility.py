from __future__ import annotations

from collections.abc import Sequence

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    CloseReason,
    FeedbackGiven,
    ProfileChanged,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.records import Record
from duolog.engine.rounds import Round
from duolog.engine.scorers.protocol import Measurement, Scorer
from duolog.scoring.live import score_records
from duolog.scoring.scorers.feedback import FeedbackUtility
from duolog.scoring.scorers.fold_utility import FoldUtility
from duolog.scoring.scorers.retention import RetentionUtility, retention
from duolog.scoring.scorers.utility import Missing, RoundUtility, Score, SnapshotUtility, reference
from duolog.testing.records import RecordWriter, run_scorer


def by_length(snapshot: SnapshotTaken, opened: SessionOpened) -> Score | Missing:
    if not isinstance(snapshot.content, str):
        return Missing("no text")
    return Score(min(len(snapshot.content) / 10, 1.0), {"length": len(snapshot.content)})


def found(measurements: list[Measurement]) -> list[tuple[str, float | None, str | None]]:
    listed = []
    for event, of in measurements:
        assert isinstance(event, UtilityScored)
        listed.append((of, event.value, event.missing))
    return listed


async def trajectory_of(script: RecordWriter, scorer: Scorer) -> list[tuple[float | None, bool]]:
    """Utility and staleness by round once the scorer's measurements are in the log."""
    for event, _ in await run_scorer(scorer, list(script.records)):
        script.add(event, scorer.ref.name, "scorer", stream=f"{scorer.ref.name}@1")
    return [(point.utility, point.stale) for point in score_records(script.records).points]


# --- a function on snapshots ---------------------------------------------------------------------


async def test_each_snapshot_of_humans_and_agents_is_scored() -> None:
    script = RecordWriter()
    script.opened()
    script.output("12345")
    script.output("1234567", by="human")
    script.output({"a": 1})
    script.add(SnapshotTaken(content="x", digest="x"), "env", "environment")
    scorer = SnapshotUtility("length", "1", by_length, config={"per": 10})
    measurements = await run_scorer(scorer, script.records)
    assert found(measurements) == [
        ("snapshot/2", 0.5, None),
        ("snapshot/3", 0.7, None),
        ("snapshot/4", None, "no text"),
    ]
    event = measurements[0].event
    assert isinstance(event, UtilityScored)
    assert event.scorer == scorer.ref
    assert event.snapshot == 2
    assert event.parts == {"length": 5}


async def test_the_function_may_be_async_and_sees_the_opening() -> None:
    async def score(snapshot: SnapshotTaken, opened: SessionOpened) -> Score:
        return Score(1.0 if opened.task == "test" else 0.0)

    script = RecordWriter()
    script.opened()
    script.output("x")
    measurements = await run_scorer(SnapshotUtility("u", "1", score), script.records)
    assert found(measurements) == [("snapshot/2", 1.0, None)]


async def test_without_an_opening_a_score_is_missing() -> None:
    script = RecordWriter()
    script.output("x")
    measurements = await run_scorer(SnapshotUtility("u", "1", by_length), script.records)
    assert found(measurements) == [("snapshot/1", None, "the session has no opening")]


async def test_what_the_function_raises_is_not_turned_into_a_score() -> None:
    def score(snapshot: SnapshotTaken, opened: SessionOpened) -> Score:
        raise RuntimeError("evaluator is down")

    script = RecordWriter()
    script.opened()
    script.output("x")
    with pytest.raises(RuntimeError, match="evaluator is down"):
        await run_scorer(SnapshotUtility("u", "1", score), script.records)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_value_out_of_range_is_refused(value: float) -> None:
    with pytest.raises(InvalidInput, match=r"\[0, 1\]"):
        Score(value)


def test_a_part_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'budget'"):
        Score(0.5, {"budget": float("nan")})


def test_a_missing_score_needs_a_reason() -> None:
    with pytest.raises(InvalidInput, match="reason"):
        Missing(" ")


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("u", ""), ("u", "1@2")])
def test_a_scorer_needs_a_name_and_a_version(name: str, version: str) -> None:
    with pytest.raises(InvalidInput):
        reference(name, version)


def test_another_configuration_has_another_digest() -> None:
    assert reference("u", "1", {"a": 1}) != reference("u", "1", {"a": 2})
    assert reference("u", "1", {"a": 1, "b": 2}) == reference("u", "1", {"b": 2, "a": 1})


# --- a function on rounds ------------------------------------------------------------------------


async def test_each_closed_round_is_scored_with_its_records() -> None:
    seen: list[list[str]] = []

    def answered(over: Round, records: Sequence[Record], opened: SessionOpened) -> Score | None:
        seen.append([record.kind for record in records])
        return Score(over.number / 10) if over.agent_acts else None

    script = RecordWriter()
    script.opened()
    script.human("what does it cost?")
    script.agent("100")
    script.human("and later?")
    script.agent("90")
    script.human("fine")
    script.closed()
    measurements = await run_scorer(RoundUtility("answers", "1", answered), script.records)
    assert found(measurements) == [("round/1", 0.1, None), ("round/2", 0.2, None)]
    assert seen == [
        ["SessionOpened", "MessageSent", "MessageSent"],
        ["MessageSent", "MessageSent"],
        ["MessageSent", "SessionClosed"],
    ]
    event = measurements[1].event
    assert isinstance(event, UtilityScored)
    assert (event.round, event.until, event.rounds) == (2, 5, "handoff")


async def test_scores_of_rounds_reach_the_trajectory() -> None:
    def score(over: Round, records: Sequence[Record], opened: SessionOpened) -> Score | Missing:
        return Score(0.4) if over.number == 1 else Missing("who knows")

    script = RecordWriter()
    script.opened()
    script.human("a?")
    script.agent("b")
    script.human("c?")
    script.agent("d")
    script.closed()
    assert await trajectory_of(script, RoundUtility("u", "1", score)) == [(0.4, False), (0.4, True)]


# --- goals that change ---------------------------------------------------------------------------


def wanted(snapshot: SnapshotTaken, opened: SessionOpened) -> Score | Missing:
    return Score(1.0 if snapshot.content == opened.private["user"] else 0.25)


def with_changed_goals() -> RecordWriter:
    """A draft of tea for one who wants tea; they see it, and want coffee; then it is coffee."""
    script = RecordWriter()
    script.opened(private={"user": "tea"})
    script.human("a drink")
    script.output("tea")
    script.add(ProfileChanged(owner="user", profile="coffee", reason="saw tea"), "user", "human")
    script.human("hm")
    script.agent("well?")
    script.human("coffee, please")
    script.output("coffee")
    script.closed()
    return script


async def test_the_standing_snapshot_is_scored_again_for_the_round_in_which_goals_changed() -> None:
    measurements = await run_scorer(SnapshotUtility("u", "1", wanted), with_changed_goals().records)
    assert found(measurements) == [
        ("snapshot/3", 1.0, None),
        ("snapshot/3/round/1", 0.25, None),
        ("snapshot/8", 1.0, None),
    ]
    again = measurements[1].event
    assert isinstance(again, UtilityScored)
    assert (again.snapshot, again.round, again.until) == (None, 1, 3)


async def test_the_utility_of_a_round_is_by_what_is_wanted_then() -> None:
    points = await trajectory_of(with_changed_goals(), SnapshotUtility("u", "1", wanted))
    assert points == [(0.25, False), (0.25, False), (1.0, False)]


async def test_a_snapshot_after_the_change_is_scored_once() -> None:
    script = RecordWriter()
    script.opened(private={"user": "tea"})
    script.human("a drink")
    script.add(ProfileChanged(owner="user", profile="coffee"), "user", "human")
    script.output("coffee")
    script.human("good")
    script.closed()
    measurements = await run_scorer(SnapshotUtility("u", "1", wanted), script.records)
    assert found(measurements) == [("snapshot/4", 1.0, None)]


async def test_a_change_in_the_last_round_is_scored_at_the_close() -> None:
    script = RecordWriter()
    script.opened(private={"user": "tea"})
    script.human("a drink")
    script.output("tea")
    script.add(ProfileChanged(owner="user", profile="coffee"), "user", "human")
    script.closed()
    assert await trajectory_of(script, SnapshotUtility("u", "1", wanted)) == [(0.25, False)]


async def test_a_function_of_rounds_is_given_the_changed_profile() -> None:
    def score(over: Round, records: Sequence[Record], opened: SessionOpened) -> Score:
        return Score(1.0 if opened.private["user"] == "coffee" else 0.0)

    points = await trajectory_of(with_changed_goals(), RoundUtility("u", "1", score))
    assert points == [(1.0, False)] * 3


# --- a fold of the session -----------------------------------------------------------------------


class Heard:
    """The share of five messages that were sent so far."""

    def __init__(self) -> None:
        self.messages = 0

    def feed(self, record: Record) -> None:
        self.messages += record.kind == "MessageSent"

    def score(self, over: Round) -> Score | None:
        return Score(self.messages / 5) if over.agent_acts else None


async def test_a_fold_is_asked_at_the_end_of_each_round_for_all_until_then() -> None:
    script = RecordWriter()
    script.opened()
    for text in ("a", "b"):
        script.human(text)
        script.agent(text)
    script.human("bye")
    script.closed()
    scorer = FoldUtility("heard", "1", Heard)
    measurements = await run_scorer(scorer, script.records)
    assert found(measurements) == [("round/1", 0.4, None), ("round/2", 0.8, None)]
    assert await trajectory_of(script, scorer) == [(0.4, False), (0.8, False), (0.8, False)]


# --- retention -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draft", "later", "kept"),
    [
        ("a b c d", "a b c d", 1.0),
        ("a b c d", "a b c x", 0.75),
        ("a b c d", "a b c d e f", 1.0),  # additions of the human do not count
        ("a b\nc d", "c d\na b", 1.0),  # moved, not lost
        ("a b c d", "", 0.0),
    ],
)
def test_retention_is_the_share_of_words_kept(draft: str, later: str, kept: float) -> None:
    score = retention(draft, later)
    assert isinstance(score, Score)
    assert score.value == kept


def test_retention_tells_apart_what_the_agent_had_changed() -> None:
    score = retention("a b\nc d\ne f", "a b\nc d\ne x", before="a b\nc d")
    assert isinstance(score, Score)
    assert score.value == 1 - 1 / 6
    assert score.parts == {"changes": 0.5}
    unchanged = retention("a", "a", before="a")
    assert isinstance(unchanged, Score)
    assert unchanged.parts == {"changes": None}


def test_of_an_empty_draft_nothing_can_be_kept() -> None:
    assert retention(" \n", "a") == Missing("the draft is empty")


async def test_retention_by_hand() -> None:
    script = RecordWriter()
    script.opened()
    script.output("mine", by="human")  # 2: no draft yet
    script.output("a b c d")  # 3: replaced before anybody touched it
    script.output("a b c d e f g h")  # 4
    script.human("hm")
    script.output("a b c d e f g x", by="human")  # 6
    script.output("a b c d e f x x", by="human")  # 7: kept 6 of 8
    script.output("a b c d")  # 8: kept to the end
    script.closed()
    assert found(await run_scorer(RetentionUtility(), script.records)) == [
        ("snapshot/2", None, "the agent has made no draft yet"),
        ("snapshot/3", None, "the agent replaced the draft before a human edited it"),
        ("snapshot/6", 0.875, None),
        ("snapshot/7", 0.75, None),
        ("snapshot/4", 0.75, None),
        ("snapshot/8", 1.0, None),
    ]


@pytest.mark.parametrize(
    ("reason", "kept"),
    [("abandoned", 0.0), ("tolerance", 0.0), ("finished", 1.0), ("ended", 1.0), ("limit", 1.0)],
)
async def test_a_draft_that_nobody_took_up_before_leaving_is_not_retained(
    reason: CloseReason, kept: float
) -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    script.output("a b c d")
    script.human("no")
    script.closed(reason)
    assert found(await run_scorer(RetentionUtility(), script.records)) == [
        ("snapshot/3", kept, None)
    ]


async def test_what_was_kept_of_a_draft_stands_although_the_session_is_abandoned() -> None:
    script = RecordWriter()
    script.opened()
    script.output("a b c d")
    script.output("a b c x", by="human")
    script.closed("abandoned")
    assert found(await run_scorer(RetentionUtility(), script.records)) == [
        ("snapshot/3", 0.75, None),
        ("snapshot/2", 0.75, None),
    ]


async def test_the_retention_of_a_draft_comes_late_and_is_placed_in_its_round() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    script.output("a b c d")
    script.output("a b c x", by="human")
    script.output("a b c x y")
    script.closed()
    assert await trajectory_of(script, RetentionUtility()) == [(0.75, False), (1.0, False)]


# --- feedback ------------------------------------------------------------------------------------


async def test_feedback_on_snapshots_rounds_and_the_whole() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    script.output("a")  # 3, round 1
    script.human("what does it cost?")
    script.agent("100")  # 5, round 2
    script.human(FeedbackGiven(thumbs="down", of=3))
    script.human(FeedbackGiven(thumbs="up", edits_kept=0.5, of=3))
    script.human(FeedbackGiven(thumbs="up", of=5))
    script.human(FeedbackGiven(comment="just words", of=5))
    script.human("again")
    script.output("b")  # 11, round 3
    script.closed()
    script.human(FeedbackGiven(edits_kept=0.9))  # the whole: its last snapshot
    measurements = await run_scorer(FeedbackUtility(), script.records)
    assert found(measurements) == [
        ("feedback/6", 0.0, None),
        ("feedback/7", 0.75, None),
        ("feedback/8", 1.0, None),
        ("feedback/13", 0.9, None),
    ]
    assert await trajectory_of(script, FeedbackUtility()) == [
        (0.75, False),  # the later thumb counts
        (1.0, False),
        (0.9, False),
    ]


async def test_feedback_that_cannot_be_placed_or_valued_is_missing() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    script.human(FeedbackGiven(thumbs="up", of=99))
    script.human(FeedbackGiven(edits_kept=1.5))
    measurements = await run_scorer(FeedbackUtility(), script.records)
    assert found(measurements) == [
        ("feedback/3", None, "the feedback is about version 99, which the trace has not"),
        ("feedback/4", None, "edits_kept is a share in [0, 1], and 1.5 is not"),
    ]
