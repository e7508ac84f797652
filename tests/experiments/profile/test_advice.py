"""The recommendation: the choice that is worth most after the human's time, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from duolog.experiments.profile.advice import RULES, recommend
from duolog.experiments.profile.diagnosis import diagnose
from duolog.experiments.profile.signs import Signs


def played(
    agent: str, finals: list[float], minutes: float, *, alone: bool = False
) -> Iterator[Signs]:
    """One session on each problem."""
    for number, final in enumerate(finals):
        yield Signs(
            session=f"{agent}-{number}",
            task="travel",
            agent=agent,
            user="proactive",
            problem=f"p{number}",
            seed=1,
            baseline=alone,
            first=0.2,
            final=final,
            best=final,
            minutes=minutes,
            written=0.0,
            read=0.0,
            rounds=4,
            looping=0.0,
        )


TOGETHER = [0.7, 0.8, 0.75, 0.7, 0.8, 0.85]


@pytest.mark.parametrize(
    ("auto", "alone", "choice"),
    [
        ([0.4] * 6, [0.5] * 6, "two-stage"),
        ([0.9] * 6, [0.5] * 6, "auto"),
        ([0.4] * 6, [0.99] * 6, "human-alone"),
    ],
)
def test_the_best_after_the_humans_time_is_recommended(
    auto: list[float], alone: list[float], choice: str
) -> None:
    signs = [
        *played("one-stage", [0.5] * 6, 4.0),
        *played("two-stage", TOGETHER, 5.0),
        *played("auto", auto, 0.0, alone=True),
        *played("human-alone", alone, 20.0, alone=True),
    ]
    found = recommend(signs, {}, resamples=200)
    assert found is not None
    assert (found.choice, found.choices[0].name) == (choice, choice)
    assert found.certainty > 0.95
    nets = [one.net.value or 0.0 for one in found.choices]
    assert nets == sorted(nets, reverse=True)


def test_the_price_of_a_minute_decides_between_time_and_utility() -> None:
    signs = [*played("two-stage", [0.8] * 6, 10.0), *played("auto", [0.6] * 6, 0.0, alone=True)]
    cheap, dear = recommend(signs, {}, price=0.005), recommend(signs, {}, price=0.05)
    assert cheap is not None
    assert dear is not None
    assert (cheap.choice, dear.choice) == ("two-stage", "auto")


def test_choices_that_are_not_told_apart_are_not_sure() -> None:
    up, down = [0.9, 0.5, 0.9, 0.5, 0.9, 0.5], [0.5, 0.9, 0.5, 0.9, 0.5, 0.88]
    found = recommend([*played("one-stage", up, 4.0), *played("two-stage", down, 4.0)], {})
    assert found is not None
    assert found.certainty < 0.8
    assert sum(one.wins for one in found.choices) == pytest.approx(1.0)


def test_only_problems_that_all_have_played_are_compared() -> None:
    """A budget that ended before the hard problems were played with one agent does not favour it."""
    signs = [*played("one-stage", [0.9, 0.1], 1.0), *played("two-stage", [0.8], 1.0)]
    found = recommend(signs, {}, resamples=0)
    assert found is not None
    assert (found.choice, found.choices[0].utility.value) == ("one-stage", 0.9)


def test_rules_of_control_answer_what_was_diagnosed() -> None:
    loops = diagnose([*played("one-stage", TOGETHER, 4.0)], resamples=0)
    assert loops.kind == "sustained"
    found = recommend([*played("one-stage", TOGETHER, 4.0)], {"one-stage": loops}, resamples=0)
    assert found is not None
    assert [rule.text for rule in found.rules] == [RULES["sustained"]]
    assert found.margin.reason == "there is nothing to compare it with"
    assert recommend([], {}) is None
    assert recommend([*played("human-alone", [0.9], 9.0, alone=True)], {}) is None
