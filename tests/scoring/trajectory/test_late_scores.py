"""Scores that come late: what each update says of the rounds behind it, and at what cost."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from duolog.engine.events import ScorerRef, UtilityScored
from duolog.engine.records import Record
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.points import Point
from duolog.scoring.trajectory.updates import (
    RatingUpdated,
    StopAdvice,
    StopWithdrawn,
    UtilityUpdated,
)
from duolog.testing.records import RecordWriter
from hypothesis import given
from hypothesis import strategies as st
from step_counter import count_lines


def carried(points: Sequence[Point], update: UtilityUpdated) -> bool:
    """Whether an update says what the trajectory does, of its round and of those behind it."""
    own, *others = points[update.round - 1 : update.through]
    following = points[update.through :]
    return (
        own.value == update.value
        and {point.utility for point in (own, *others)} == {update.utility}
        and all(point.value is None for point in others)
        and (not following or following[0].value is not None)
    )


def scored_late(chance: random.Random) -> RecordWriter:
    """A session with scores that come at any time, by one scorer or two versions of it."""
    script = RecordWriter()
    script.opened()
    script.human("a plan, please")
    unscored: list[Record] = []
    for _ in range(40):
        match chance.randrange(6):
            case 0:
                script.human("better, please")
            case 1:
                script.agent("here it is")
            case 2:
                unscored.append(script.output("a plan", by=chance.choice(("agent", "human"))))
            case 3 | 4 if unscored:
                draft = unscored.pop(chance.randrange(len(unscored)))
                script.scored(chance.choice((None, 0.25, 0.5)), snapshot=draft)
            case 5:
                script.scored(chance.choice((None, 0.75)), round=chance.randrange(1, 6))
    if chance.random() < 0.6:
        script.human("thanks")
        script.scored(0.25, round=chance.randrange(1, 9))  # also the one that the close takes out
        script.closed()
    newer = chance.choice(("u@1", "u@2"))
    for number in chance.sample(range(1, 9), 8):
        script.scored(0.75, round=number, scorer=newer)
    for draft in unscored:
        script.scored(0.5, snapshot=draft, scorer=newer)
    return script


@pytest.mark.parametrize("seed", range(40))
def test_an_update_says_what_the_trajectory_says_however_late_its_score(seed: int) -> None:
    script = scored_late(random.Random(seed))
    fold = TrajectoryFold(script.session)
    count = 0
    for record in script.records:
        for update in fold.feed(record):
            if isinstance(update, UtilityUpdated):
                count += 1
                assert carried(fold.trajectory().points, update), update
    assert count


@pytest.mark.parametrize("backwards", [False, True])
def test_scores_that_come_at_the_end_cost_the_same_at_any_length(backwards: bool) -> None:
    def steps(rounds: int) -> float:
        script = RecordWriter()
        script.opened()
        drafts = []
        for number in range(rounds):
            script.human(f"ask {number}")
            drafts.append(script.output(f"draft {number}"))
        fold = TrajectoryFold(script.session)
        for record in script.records:
            fold.feed(record)
        done = len(script.records)
        for draft in reversed(drafts) if backwards else drafts:
            script.scored(0.5, snapshot=draft)
        scores = script.records[done:]
        lines, _ = count_lines(lambda: [fold.feed(record) for record in scores])
        return lines / rounds

    assert steps(200) < 1.1 * steps(50)


@pytest.mark.parametrize("backwards", [False, True])
def test_ratings_that_come_at_the_end_cost_the_same_at_any_length(backwards: bool) -> None:
    def steps(rounds: int) -> float:
        script = RecordWriter()
        script.opened()
        for number in range(rounds):
            script.human(f"ask {number}")
            script.agent("done")
        fold = TrajectoryFold(script.session)
        for record in script.records:
            fold.feed(record)
        done = len(script.records)
        numbers = range(1, rounds + 1)
        for number in reversed(numbers) if backwards else numbers:
            script.rated(number, 1 if number % 3 else 4)
        ratings = script.records[done:]
        lines, _ = count_lines(lambda: [fold.feed(record) for record in ratings])
        assert fold.stops == {1: 1, 2: 2}
        return lines / rounds

    assert steps(200) < 1.1 * steps(50)


@given(st.lists(st.tuples(st.integers(1, 8), st.sampled_from([None, 1, 2, 3, 5])), max_size=30))
def test_stops_follow_ratings_that_are_given_late_and_again(
    ratings: list[tuple[int, int | None]],
) -> None:
    script = RecordWriter()
    script.opened()
    for number in range(1, 9):
        script.human(f"ask {number}")
        script.agent("done")
    for number, rating in ratings:
        script.rated(number, rating)
    fold = TrajectoryFold(script.session)
    advised: dict[int, int] = {}
    for record in script.records:
        for update in fold.feed(record):
            if isinstance(update, StopAdvice):
                assert advised.setdefault(update.tau, update.round) == update.round
            elif isinstance(update, StopWithdrawn):
                assert advised.pop(update.tau) == update.round
        assert advised == fold.stops


@pytest.mark.parametrize("order", [(3, 5), (5, 3)])
def test_a_score_that_is_missing_replaces_no_value_of_its_round_in_any_order(
    order: tuple[int, int],
) -> None:
    script = RecordWriter()
    script.opened()
    script.human("ask")
    for _ in range(3):
        script.agent("done")
    for until in order:
        value = 0.5 if until == 3 else None
        ref = ScorerRef(name="u", version="1", config="")
        score = UtilityScored(scorer=ref, round=1, until=until, value=value)
        script.add(score, "u", "scorer", stream="u@1")
    fold = TrajectoryFold(script.session)
    for record in script.records:
        fold.feed(record)
    assert [point.value for point in fold.trajectory().points] == [0.5]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_what_a_judge_who_counts_otherwise_leaves_out_is_said_to_be_missing(
    order: tuple[int, ...],
) -> None:
    """The judge rates a round by handoff, of which several by human turns consist."""
    script = RecordWriter()
    script.opened(request="plan", config={"judge": "judge"})
    ends = {}
    for number in (1, 2, 3):
        script.human("ask")
        script.human("and ask again")
        ends[number] = script.agent("done")
    script.human("thanks")
    for number in order:
        script.rated(number, 4, until=ends[number])
    fold = TrajectoryFold(script.session, Options(rounds="human-turn"))
    known: dict[int, tuple[int | None, bool]] = {}
    for record in script.records:
        for update in fold.feed(record):
            if isinstance(update, RatingUpdated):
                known[update.round] = update.rating, update.pending
        points = fold.trajectory().points
        assert [known.get(p.round, (None, True)) for p in points] == [
            (p.rating, p.pending) for p in points
        ]
    assert [point.rating for point in points] == [None, None, 4, None, 4, None, 4, None]


def test_what_a_judge_who_counts_otherwise_leaves_out_costs_the_same_at_any_length() -> None:
    def steps(rounds: int) -> float:
        script = RecordWriter()
        script.opened(config={"judge": "judge"})
        ends = []
        for _ in range(rounds):
            script.human("ask")
            script.human("and ask again")
            ends.append(script.agent("done"))
        fold = TrajectoryFold(script.session, Options(rounds="human-turn"))
        for record in script.records:
            fold.feed(record)
        done = len(script.records)
        for number, end in enumerate(ends, start=1):
            script.rated(number, 4, until=end)
        first, *ratings = script.records[done:]
        fold.feed(first)  # with it the judge is chosen
        lines, _ = count_lines(lambda: [fold.feed(record) for record in ratings])
        return lines / rounds

    assert steps(160) < 1.1 * steps(40)
