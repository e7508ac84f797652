"""Recording a collaboration in a test, and asserting on what it came to."""

from __future__ import annotations

import pytest
from anyio.lowlevel import checkpoint
from duolog.engine.errors import InvalidInput
from duolog.engine.events import SessionOpened, SnapshotTaken
from duolog.engine.records import Record
from duolog.scoring.scorers.progress import rule_judge
from duolog.scoring.scorers.utility import Score, SnapshotUtility
from duolog.scoring.trajectory.options import Options
from duolog.telemetry.receipt import Receipt
from duolog.telemetry.session import Recording
from duolog.testing.collaboration import Collaboration, CollaborationError


def share_of_words(snapshot: SnapshotTaken, opened: SessionOpened) -> Score:
    """A made-up utility: how many of ten words a draft has."""
    return Score(min(len(str(snapshot.content).split()) / 10, 1.0))


WORDS = SnapshotUtility("words", "1", share_of_words)


def draft(session: Recording[Receipt], rounds: int = 2) -> None:
    for number in range(rounds):
        session.human.says("More words, please.")
        session.agent.submits("word " * (number + 2))
        session.agent.says("There you are.")


def drafted(rounds: int = 2) -> Collaboration:
    tested = Collaboration("the test")
    with tested.record(task="prose", scorers=[WORDS]) as session:
        draft(session, rounds)
    return tested


def test_what_came_of_it() -> None:
    tested = drafted()
    assert tested.utility == 0.3
    assert tested.rounds == 2
    assert tested.effort["acts"] == 2
    assert [point.utility for point in tested.trajectory.points] == [0.2, 0.3]
    assert tested.result.summary.session == "the test"
    assert tested.result.summary.state == "ended"
    assert [r.kind for r in tested.records if r.stream == "trace"][-1] == "SessionClosed"
    assert sum(r.kind == "UtilityScored" for r in tested.records) == 2


def test_what_holds_passes() -> None:
    tested = drafted()
    tested.assert_utility(at_least=0.3, at_most=0.3)
    tested.assert_effort("acts", at_least=2, at_most=2)
    tested.assert_rounds(2)
    tested.assert_rounds(at_least=1, at_most=2)
    tested.assert_no_stop(1)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda t: t.assert_utility(at_least=0.5), "the utility is 0.3, and not at least 0.5"),
        (lambda t: t.assert_utility(at_most=0.1), "the utility is 0.3, and not at most 0.1"),
        (
            lambda t: t.assert_effort("acts", at_most=1),
            "the effort in acts is 2, and not at most 1",
        ),
        (lambda t: t.assert_rounds(3), "the number of rounds is 2, and not 3"),
        (lambda t: t.assert_rounds(at_most=1), "the number of rounds is 2, and not at most 1"),
        (lambda t: t.assert_stop(1), "τ = 1 is not used up: the rounds are rated –, –"),
        (
            lambda t: t.assert_effort("token_ratio", at_most=1),
            "the effort in token_ratio is not known here",
        ),
    ],
)
def test_what_does_not_hold_fails_with_the_transcript(check: object, message: str) -> None:
    tested = drafted()
    assert callable(check)
    if "not known" in message:
        tested = Collaboration("the test")
        with tested.record() as session:
            session.human.says("Hello?")
        tested.trajectory.points[-1].effort["token_ratio"] = None  # type: ignore[index]
    with pytest.raises(CollaborationError) as raised:
        check(tested)
    first, _, rest = str(raised.value).partition("\n")
    assert first == message
    assert "── Round 1" in rest
    assert "human" in rest


def test_a_utility_that_nobody_measured_is_none_and_no_nought() -> None:
    tested = Collaboration("the test")
    with tested.record() as session:
        draft(session)
    assert tested.utility is None
    with pytest.raises(CollaborationError, match="no utility was measured"):
        tested.assert_utility(at_most=1.0)


def test_a_scorer_that_fails_is_said_to_be_why_there_is_no_utility() -> None:
    def fail(snapshot: SnapshotTaken, opened: SessionOpened) -> Score:
        raise RuntimeError("no words")

    tested = Collaboration("the test")
    with tested.record(scorers=[SnapshotUtility("words", "1", fail)]) as session:
        draft(session)
    with pytest.raises(CollaborationError, match="words@1 failed: RuntimeError: no words"):
        tested.assert_utility(at_least=0.1)


def quarrel(tested: Collaboration) -> None:
    with tested.record(judge="rule-judge", scorers=[rule_judge()]) as session:
        session.human.says("Please mend the parser.")
        for number in range(3):
            session.agent.says(f"I have tried {number} times.")
            session.human.says("That is still wrong, as I said before.")


def test_a_human_who_has_had_enough_stops() -> None:
    tested = Collaboration("the test")
    quarrel(tested)
    tested.assert_stop(1, after=1)
    tested.assert_stop(2, after=2)
    assert tested.stop(2) == 2
    tested.assert_no_stop(9)
    with pytest.raises(CollaborationError, match="τ = 2 is used up after round 2: the rounds are"):
        tested.assert_no_stop(2)
    with pytest.raises(CollaborationError, match="after round 1, and not after round 3"):
        tested.assert_stop(1, after=3)


async def test_the_same_in_an_asynchronous_test() -> None:
    tested = Collaboration("the test")
    async with tested.record(task="prose", scorers=[WORDS]) as session:
        await session.human.says("A draft, please.")
        await checkpoint()
        await session.agent.submits("word " * 7)
    assert tested.utility == 0.7
    assert tested.result.summary.task == "prose"


def test_a_name_that_nobody_knows_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="unknown label or option 'tsk'; did you mean 'task'"):
        Collaboration("the test").record(tsk="prose")  # type: ignore[call-arg]


def test_an_exception_closes_the_session_as_failed_and_goes_on() -> None:
    tested = Collaboration("the test")

    def divide() -> None:
        with tested.record() as session:
            session.human.says("Divide, please.")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        divide()
    assert tested.result.summary.state == "failed"
    assert tested.rounds == 1


async def test_an_exception_in_an_asynchronous_test_too() -> None:
    tested = Collaboration("the test")

    async def divide() -> None:
        async with tested.record() as session:
            await session.human.says("Divide, please.")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await divide()
    assert tested.result.summary.state == "failed"


def test_a_session_that_the_test_closes_stays_as_it_was_closed() -> None:
    tested = Collaboration("the test")
    with tested.record() as session:
        session.human.says("Enough.")
        session.close("stalled")
    assert tested.result.summary.state == "stalled"


def test_rounds_are_counted_as_the_options_say() -> None:
    tested = Collaboration("the test")
    with tested.record(options=Options(rounds="human-turn")) as session:
        session.human.says("One.")
        session.human.says("Two.")
        session.agent.says("Three.")
    tested.assert_rounds(2)


def test_several_sessions_have_numbers_and_the_last_one_counts() -> None:
    tested = Collaboration("the test", "memory://")
    for rounds in (1, 2):
        with tested.record() as session:
            draft(session, rounds)
    tested.assert_rounds(2)
    assert [title for title, _ in tested.sections(ValueError())] == ["duolog session the test"] * 2


def test_before_it_is_over_there_is_nothing_to_assert_on() -> None:
    tested = Collaboration("the test")
    with pytest.raises(InvalidInput, match="nothing was recorded"):
        tested.assert_rounds(1)
    with tested.record() as session:
        session.human.says("Hello?")
        with pytest.raises(InvalidInput, match="the session is not over"):
            tested.assert_rounds(1)


def test_a_measure_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInput, match="unknown effort 'sweat'; choose from rounds, acts"):
        drafted().assert_effort("sweat", at_most=1)


def test_the_drafts_are_in_the_records() -> None:
    def contents(records: list[Record]) -> list[object]:
        return [r.event.content for r in records if isinstance(r.event, SnapshotTaken)]

    assert contents(drafted().records) == ["word word ", "word word word "]
