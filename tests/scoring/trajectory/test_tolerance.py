from __future__ import annotations

import pytest
from duolog.engine.errors import InvalidInput
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.tolerance import PENDING, Rating, Stop, Tolerance, stop_rounds
from hypothesis import given
from hypothesis import strategies as st

RATINGS = st.lists(st.one_of(st.none(), st.integers(1, 5), st.just(PENDING)), max_size=30)


@pytest.mark.parametrize(
    ("ratings", "expected"),
    [
        ([], {1: None, 2: None, 3: None}),
        ([3, 3, 3], {1: None, 2: None, 3: None}),  # 3 is productive
        ([2], {1: 1, 2: None, 3: None}),  # stopping in round 1 counts as any other
        ([4, 2, 3, 1, 2, 2], {1: 2, 2: 5, 3: 6}),
        ([2, None, 2, 2], {1: 1, 2: 4, 3: None}),  # missing is productive, and ends a run
        ([2, PENDING, 2, 2, 2], {1: 1, 2: None, 3: None}),  # pending holds up what follows
        ([1, 1, 1, 1], {1: 1, 2: 2, 3: 3}),  # only the first time counts
    ],
)
def test_worked_examples(ratings: list[Rating], expected: dict[int, int | None]) -> None:
    assert stop_rounds(ratings, (1, 2, 3)) == expected


def test_several_tolerances_may_be_used_up_in_one_step_once_a_pending_rating_is_there() -> None:
    known: dict[int, Rating] = {1: 2, 3: 2}
    tolerance = Tolerance((1, 2, 3))
    assert tolerance.advance(lambda number: known.get(number, PENDING)) == [Stop(1, 1)]
    assert tolerance.next == 2
    known[2] = 1
    stops = tolerance.advance(lambda number: known.get(number, PENDING))
    assert stops == [Stop(2, 2), Stop(3, 3)]
    assert stops[1].rounds == (1, 2, 3)
    assert tolerance.stops == {1: 1, 2: 2, 3: 3}


def test_tolerances_are_ordered_and_counted_once() -> None:
    assert Tolerance((3, 1, 3)).taus == (1, 3)


@pytest.mark.parametrize("tau", [0, -1])
def test_a_tolerance_below_one_is_refused(tau: int) -> None:
    with pytest.raises(InvalidInput, match=f"not {tau}"):
        Tolerance((2, tau))


@given(RATINGS, st.sets(st.integers(1, 6), min_size=1))
def test_the_fold_agrees_with_the_definition(ratings: list[Rating], taus: set[int]) -> None:
    known = ratings[: ratings.index(PENDING)] if PENDING in ratings else ratings
    bad = [rating is not None and rating is not PENDING and rating < 3 for rating in known]
    for tau, stop in stop_rounds(ratings, taus).items():
        reached = [k for k in range(tau, len(bad) + 1) if all(bad[k - tau : k])]
        assert stop == (reached[0] if reached else None)


@given(RATINGS, st.randoms(use_true_random=False))
def test_the_order_in_which_ratings_come_does_not_matter(
    ratings: list[Rating], random: object
) -> None:
    order = [number for number, rating in enumerate(ratings, start=1) if rating is not PENDING]
    random.shuffle(order)  # type: ignore[attr-defined]
    known: dict[int, Rating] = {}
    tolerance = Tolerance((1, 2, 3))
    for number in order:
        known[number] = ratings[number - 1]
        tolerance.advance(lambda k: known.get(k, PENDING))
    assert {tau: tolerance.stops.get(tau) for tau in (1, 2, 3)} == stop_rounds(ratings, (1, 2, 3))


@pytest.mark.parametrize("taus", [2, (0,), ("1",), (True,), [1, 2], None])
def test_tolerances_are_whole_numbers_from_1(taus: object) -> None:
    with pytest.raises(InvalidInput, match=r"taus is a tuple of whole numbers from 1"):
        Options(taus=taus)  # type: ignore[arg-type]


def test_rounds_are_counted_in_a_known_way() -> None:
    with pytest.raises(InvalidInput, match="rounds is one of handoff, human-turn, not 'half'"):
        Options(rounds="half")  # type: ignore[arg-type]
