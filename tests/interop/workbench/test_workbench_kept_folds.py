"""Folds that are kept for looking back: how many there are, and which is found."""

from __future__ import annotations

from duolog.interop.workbench.session.reading import KeptFolds
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options


def test_there_are_never_more_than_a_few_and_they_lie_apart_alike() -> None:
    kept = KeptFolds(apart=2, most=4)
    for number in range(1, 101):
        kept.offer(number, TrajectoryFold(f"after {number}"))
        assert len(kept) <= 4
        found = kept.last(number)
        assert number < kept.apart or found is not None
        if found is not None:
            assert found[0] == number - number % kept.apart
            assert found[1].session == f"after {found[0]}"
    assert kept.apart == 32
    assert kept.last(31) is None
    assert kept.last(70, after=64) is None


def test_options_with_a_function_of_somebodys_own_are_not_kept() -> None:
    kept = KeptFolds(apart=1)
    kept.offer(1, TrajectoryFold("s", Options(vague=lambda text: not text)))
    assert len(kept) == 0
