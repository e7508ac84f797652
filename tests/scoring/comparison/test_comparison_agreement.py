"""Agreement of judges, held to statsmodels and to Krippendorff's published example."""

from __future__ import annotations

import pytest
from duolog.scoring.comparison.agreement import agreement, alpha, weighted_kappa
from hypothesis import assume, given
from hypothesis import strategies as st
from later import imported_later

inter_rater = imported_later("statsmodels.stats.inter_rater")

LIKERT = st.integers(1, 5)


@given(st.lists(st.tuples(LIKERT, LIKERT), min_size=2, max_size=60))
def test_kappa_agrees_with_statsmodels(pairs: list[tuple[int, int]]) -> None:
    kappa = weighted_kappa(pairs)
    assume(kappa is not None)
    table = [[pairs.count((a, b)) for b in range(1, 6)] for a in range(1, 6)]
    found = inter_rater.cohens_kappa(table, wt="quadratic", return_results=False)
    assert kappa == pytest.approx(float(found), abs=1e-12)


def test_alpha_is_that_of_the_published_example() -> None:
    # Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", example C: four observers,
    # twelve units, missing data; interval α = 0.849.
    a, b, c, d = (
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    )
    units = [[x for x in unit if x is not None] for unit in zip(a, b, c, d, strict=True)]
    assert alpha(units) == pytest.approx(0.849, abs=5e-4)


def test_a_pair_of_judges() -> None:
    rounds = {
        "s1": [{"rules": 2, "model": 2}, {"rules": 4, "model": 3}, {"rules": 5}],
        "s2": [{"rules": 1, "model": 1}, {"rules": 3, "model": 5, "person": 4}],
    }
    found = agreement(rounds, resamples=200)
    assert found.judges == ("model", "person", "rules")
    assert (found.rounds, found.sessions) == (4, 2)
    pair = next(p for p in found.pairs if (p.first, p.second) == ("model", "rules"))
    assert (pair.rounds, pair.equal) == (4, 0.5)
    assert pair.confusion[4][2] == 1  # the model gave 5, the rules gave 3
    assert sum(map(sum, pair.confusion)) == 4
    assert pair.kappa.value == weighted_kappa([(2, 2), (3, 4), (1, 1), (5, 3)])


def test_intervals_are_seeded_and_hold_the_value() -> None:
    rounds = {f"s{i}": [{"a": 1 + i % 5, "b": 1 + (i + i // 4 % 2) % 5}] for i in range(30)}
    first, again = agreement(rounds), agreement(rounds)
    assert first == again
    assert first.alpha.low is not None
    assert first.alpha.high is not None
    assert first.alpha.value is not None
    assert first.alpha.low < first.alpha.value < first.alpha.high
    assert agreement(rounds, seed=1).alpha != first.alpha


def test_nothing_to_compare_has_a_reason() -> None:
    nothing = agreement({"s": [{"rules": 3}, {"rules": 4}]})
    assert (nothing.alpha.value, nothing.alpha.reason) == (None, "no round has two ratings")
    assert nothing.pairs == ()
    same = agreement({"s": [{"a": 3, "b": 3}], "t": [{"a": 3, "b": 3}]})
    assert same.alpha.value is None
    assert same.pairs[0].kappa.reason == "all ratings are equal, so chance cannot err"
    assert same.pairs[0].equal == 1.0


@given(st.lists(st.lists(LIKERT, min_size=1, max_size=4), max_size=20))
def test_perfect_agreement_is_one(units: list[list[int]]) -> None:
    same = [[unit[0]] * max(2, len(unit)) for unit in units]
    found = alpha(same)
    assert found in (None, 1.0)
    assert (found is None) == (len({unit[0] for unit in same}) < 2)
