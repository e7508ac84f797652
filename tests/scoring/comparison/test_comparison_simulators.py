"""Simulated people compared with real ones: distances, their chance level, and missing ones."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import Participant, ProgressRated
from duolog.scoring.comparison.behaviour import Behaviour, BehaviourFold, simulated_as
from duolog.scoring.comparison.simulators import (
    MEASURES,
    BehaviourGap,
    audit,
    distances,
    survival_distances,
)
from duolog.testing.records import RecordWriter
from hypothesis import given
from hypothesis import strategies as st

values = st.lists(st.integers(0, 20), min_size=1, max_size=30)


@given(values, values)
def test_distances_are_those_of_the_definition(first: list[int], second: list[int]) -> None:
    stats = pytest.importorskip("scipy.stats")
    found = distances(Counter(map(float, first)), Counter(map(float, second)))
    assert found is not None
    assert found.wasserstein == pytest.approx(stats.wasserstein_distance(first, second))
    below = [
        sum(v <= x for v in first) / len(first) - sum(v <= x for v in second) / len(second)
        for x in (*first, *second)
    ]
    assert found.ks == pytest.approx(max(map(abs, below)))
    assert found.first == pytest.approx(sum(first) / len(first))


@given(values, st.integers(0, 9))
def test_a_shift_is_as_far_as_it_goes(first: list[int], by: int) -> None:
    one = Counter(map(float, first))
    found = distances(one, Counter(float(value + by) for value in first))
    assert found is not None
    assert found.wasserstein == pytest.approx(by)
    same = distances(one, one)
    assert same is not None
    assert same.wasserstein == same.ks == 0.0


def test_survival_takes_account_of_who_was_cut_off() -> None:
    stays = [(4, True)] * 5
    assert survival_distances(stays, stays) == (4.0, 4.0, 0.0, 0.0)
    found = survival_distances(stays, [(2, True)] * 5)
    assert found is not None
    assert (found.wasserstein, found.ks) == (1.0, 1.0)  # of rounds 1 and 2, which both have
    cut = survival_distances(stays, [(2, False), (4, True)])
    assert cut is not None
    assert cut.wasserstein == 0.0
    assert survival_distances(stays, []) is None


def behaviours(count: int, seed: int, simulated: str = "", words: float = 8.0) -> list[Behaviour]:
    chance = random.Random(seed)
    found = []
    for number in range(count):
        turns = [max(1, round(chance.gauss(words, 3.0))) for _ in range(chance.randint(1, 6))]
        found.append(
            Behaviour(
                session=f"{seed}/{number}",
                simulated=simulated,
                turns=turns,
                questions=[chance.random() < 0.3 for _ in turns],
                vague=[chance.random() < 0.1 for _ in turns],
                edits=chance.randint(0, 2),
                ratings=[chance.randint(2, 5) for _ in turns],
                rounds=len(turns),
                left=chance.random() < 0.8,
            )
        )
    return found


def gaps(simulated: list[Behaviour], people: list[Behaviour]) -> dict[str, BehaviourGap]:
    [one] = audit(simulated, people, resamples=100).personas
    return {gap.measure: gap for gap in one.measures}


def test_two_halves_of_one_population_cannot_be_told_apart() -> None:
    whole = behaviours(120, 5)
    halves = [msgspec.structs.replace(one, simulated="half") for one in whole[::2]], whole[1::2]
    found = gaps(*halves)
    assert tuple(found) == MEASURES
    for gap in found.values():
        low, high = gap.difference.low, gap.difference.high
        assert low is not None
        assert high is not None
        assert low <= 0.0 <= high
        assert gap.wasserstein.value is not None
        assert gap.chance_wasserstein is not None
        assert gap.wasserstein.value <= gap.chance_wasserstein
        assert (gap.ks.value or 0.0) <= (gap.chance_ks or 0.0)


def test_who_writes_twice_as_much_is_found_out() -> None:
    found = gaps(behaviours(40, 1, "lazy"), behaviours(40, 2, words=16.0))["turn_length"]
    assert found.difference.high is not None
    assert found.difference.high < 0.0
    assert found.wasserstein.value == pytest.approx(8.0, abs=1.0)
    assert (found.wasserstein.value or 0.0) > (found.chance_wasserstein or 0.0)
    assert (found.simulated.sessions, found.people.sessions) == (40, 40)


def test_each_persona_is_compared_by_itself_and_the_same_again() -> None:
    simulated = [*behaviours(9, 1, "lazy"), *behaviours(5, 2, "bounded"), *behaviours(3, 4)]
    people = [*behaviours(7, 3), *behaviours(2, 5, "lazy")]
    found = audit(simulated, people, resamples=20)
    assert [(one.simulated, one.sessions) for one in found.personas] == [
        ("bounded", 5),
        ("lazy", 9),
    ]
    assert (found.people, found.left_out) == (7, 2)
    assert found == audit(simulated, people, resamples=20)


def test_what_is_missing_says_why() -> None:
    people = [msgspec.structs.replace(one, ratings=(), left=False) for one in behaviours(6, 1)]
    found = gaps(behaviours(6, 2, "lazy"), people)
    assert found["ratings"].reason == "no human rates a round among the people"
    assert "nobody leaves among the people" in (found["survival"].reason or "")
    assert found["ratings"].ks.reason == found["ratings"].reason
    one = gaps(behaviours(1, 2, "lazy"), people)["turn_length"]
    assert one.difference.value is not None
    assert one.difference.low is None  # one session does not vary


def test_there_have_to_be_simulated_people_and_real_ones() -> None:
    with pytest.raises(InvalidInput, match="no human in these sessions is simulated"):
        audit(behaviours(2, 1), behaviours(2, 2))
    with pytest.raises(InvalidInput, match="all humans are simulated"):
        audit(behaviours(2, 1, "lazy"), behaviours(2, 2, "lazy"))
    with pytest.raises(InvalidInput, match="no human takes part"):
        audit(behaviours(2, 1, "lazy"), [])


def test_behaviour_by_hand() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Plan a trip, will you?")  # the request
    script.agent("Where to?")
    script.human("To Rome, is that far?")
    script.output("Rome")
    script.human("Up to you.")
    script.human(ProgressRated(round=1, rating=4))
    script.closed("finished")
    fold = BehaviourFold("s")
    for record in script.records:
        fold.feed(record)
    found = fold.behaviour
    assert found is not None
    assert (found.turns, found.questions, found.vague) == ([5, 3], [True, False], [False, True])
    assert (found.ratings, found.rounds, found.left, found.edits) == ([4], 3, True, 0)


def test_who_is_simulated() -> None:
    def human(**fields: str) -> Participant:
        return Participant(name="ann", role="human", **fields)

    assert simulated_as(human()) == ""
    assert simulated_as(human(policy="rules", persona="lazy")) == "lazy"
    assert simulated_as(human(policy="model", persona="lazy", model="m")) == "lazy on m"
    assert simulated_as(human(policy="rules")) == "rules"


def test_the_index_is_of_each_persona_and_task() -> None:
    def on(task: str, ones: list[Behaviour]) -> list[Behaviour]:
        return [msgspec.structs.replace(one, task=task) for one in ones]

    simulated = [
        *on("travel", behaviours(20, 1, "lazy")),
        *on("data", behaviours(20, 2, "lazy", words=20.0)),
        *on("proof", behaviours(5, 3, "lazy")),
    ]
    people = [*on("travel", behaviours(20, 4)), *on("data", behaviours(20, 5))]
    found = audit(simulated, people, resamples=50)
    data, proof, travel = found.tasks
    assert [(one.task, one.people, one.same_task) for one in found.tasks] == [
        ("data", 20, True),
        ("proof", 40, False),
        ("travel", 20, True),
    ]
    assert data.index.high is not None
    assert travel.index.low is not None
    assert data.index.high < travel.index.low
    assert travel.within_chance == (6, 6)
    known = [gap.ks.value for gap in data.measures if gap.ks.value is not None]
    assert data.index.value == pytest.approx(1 - sum(known) / len(known))
    assert proof.index.value is not None
    assert found.personas[0].index.sessions == 85
    assert audit(on("t", behaviours(2, 1, "lazy")), on("t", behaviours(2, 2))).tasks == ()


def test_a_user_out_of_a_file_is_simulated() -> None:
    own = Participant(name="user", role="human", policy="Ann")
    assert simulated_as(own) == ""
    assert simulated_as(own, stamp="1a2b") == "Ann"
