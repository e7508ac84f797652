"""Agents compared in pairs, held to worked examples and to scipy and statsmodels."""

from __future__ import annotations

import random
import sys
from itertools import product

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.scoring.comparison.pairs import Comparison, Difference, compare
from duolog.scoring.trajectory.points import Point, Trajectory
from later import imported_later
from step_counter import Counted

stats = imported_later("scipy.stats")
power = imported_later("statsmodels.stats.power")


def played(
    agent: str, instance: int, *values: float, rating: int | None = 3, user: str = "u"
) -> Trajectory:
    points = tuple(
        [
            Point(
                round=k, value=v, utility=v, updated=True, rating=rating, effort={"seconds": 10 * k}
            )
            for k, v in enumerate(values, start=1)
        ]
    )
    return Trajectory(
        session=f"{agent}-{user}-{instance}-{len(values)}",
        group={"agent": agent, "user": user},
        instance=str(instance),
        points=points,
        agent_tokens=100 * len(values),
    )


def quantity(comparison: Comparison, name: str) -> Difference:
    [found] = [each for each in comparison.differences if each.quantity == name]
    return found


ONE = [0.2, 0.4, 0.4, 0.6, 0.5, 0.3]
OTHER = [0.5, 0.4, 0.7, 0.9, 0.8, 0.5]


def pairs() -> list[Trajectory]:
    first = [played("a", i, value) for i, value in enumerate(ONE)]
    return first + [played("b", i, value, value) for i, value in enumerate(OTHER)]


def test_a_worked_example() -> None:
    [found] = compare(pairs(), ("a", "b"))
    assert (found.first, found.second, found.pairs) == ("a", "b", 6)
    overall = quantity(found, "overall")
    differences = [b - a for a, b in zip(ONE, OTHER, strict=True)]  # .3 0 .3 .3 .3 .2
    assert overall.first == pytest.approx(0.4)
    assert overall.difference.value == pytest.approx(1.4 / 6)
    assert overall.difference.low is not None
    assert overall.difference.high is not None
    assert overall.difference.low < 1.4 / 6 < overall.difference.high
    # Of the 64 ways to flip the signs of six differences, those at least as extreme.
    means = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=6)
    ]
    assert overall.p == pytest.approx(sum(m >= 1.4 - 1e-9 for m in means) / 64)
    spread = stats.tstd(differences)
    assert overall.effect == pytest.approx(1.4 / 6 / spread)
    rounds = quantity(found, "all_rounds")
    assert (rounds.first, rounds.second, rounds.effect) == (1, 2, None)  # always one more
    assert quantity(found, "agent_tokens").difference.value == 100
    assert quantity(found, "seconds").difference.value == 10


def test_the_number_needed_has_the_power() -> None:
    solver = power.TTestPower()
    needed = quantity(compare(pairs(), ("a", "b"))[0], "overall")
    assert needed.needed is not None
    assert needed.effect is not None
    assert solver.power(needed.effect, needed.needed, 0.05) >= 0.8
    assert solver.power(needed.effect, needed.needed - 1, 0.05) < 0.8


def test_holm_is_over_all_that_is_printed() -> None:
    more = [played("c", i, value + 0.01 * (i % 2)) for i, value in enumerate(ONE)]
    found = compare([*pairs(), *more], ("a", "b", "c"))
    assert [(each.first, each.second) for each in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    listed = [each for one in found for each in one.differences if each.p is not None]
    ordered = sorted(listed, key=lambda each: each.p or 0)
    running = 0.0
    for index, each in enumerate(ordered):
        assert each.p is not None
        running = max(running, min(1.0, each.p * (len(ordered) - index)))
        assert each.adjusted == pytest.approx(running)


def test_agents_alike_do_not_differ() -> None:
    same = [played(agent, i, value) for agent in "ab" for i, value in enumerate(ONE)]
    overall = quantity(compare(same, ("a", "b"))[0], "overall")
    assert (overall.difference.value, overall.p, overall.effect, overall.needed) == (
        0,
        1,
        None,
        None,
    )


def test_unpaired_sessions_are_counted_and_in_no_difference() -> None:
    extra = [played("a", 99, 0.0), played("b", 77, 1.0), played("b", 77, 1.0, 1.0)]
    [found] = compare([*pairs(), *extra], ("a", "b"))
    assert found.pairs == 6
    assert found.unpaired == {"a": 1, "b": 2}
    assert quantity(found, "overall").difference.value == pytest.approx(1.4 / 6)


def test_sessions_are_paired_at_the_same_cost_however_many_there_are() -> None:
    def steps(count: int) -> float:
        sessions = [
            msgspec.structs.replace(one, instance=Counted(one.instance))
            for agent in "ab"
            for one in [played(agent, instance, 0.5) for instance in range(count)]
        ]
        Counted.steps = 0
        compare(sessions, ("a", "b"), taus=(1,), bootstrap=0)
        return Counted.steps / count

    assert steps(400) < 1.5 * steps(50)


def test_other_labels_are_groups_of_their_own() -> None:
    others = [played(agent, i, value, user="v") for agent in "ab" for i, value in enumerate(ONE)]
    one, two = compare([*pairs(), *others], ("a", "b"))
    assert (one.group, two.group) == ({"user": "u"}, {"user": "v"})
    assert quantity(two, "overall").difference.value == 0


def test_an_instance_played_twice_is_averaged() -> None:
    twice = [played("a", 0, 0.2), played("a", 0, 0.4, 0.4), played("b", 0, 0.5), played("b", 1, 1)]
    [found] = compare(twice, ("a", "b"))
    assert quantity(found, "overall").difference.value == pytest.approx(0.2)
    assert quantity(found, "overall").p is None  # one pair decides nothing


def test_what_is_missing_on_a_side_is_left_out() -> None:
    blind = [
        Trajectory(
            session=f"blind-{i}",
            group={"agent": "b", "user": "u"},
            instance=str(i),
            evaluated=False,
            points=(Point(round=1, utility=None),),
        )
        for i in range(6)
    ]
    [found] = compare([t for t in pairs() if t.group["agent"] == "a"] + blind, ("a", "b"))
    overall = quantity(found, "overall")
    assert (overall.pairs, overall.difference.value, overall.p) == (0, None, None)
    assert overall.difference.reason == "no instance has a value on both sides of the pair"
    assert quantity(found, "all_rounds").pairs == 6
    unrated = [played(agent, i, 0.2, 0.4, rating=None) for agent in "ab" for i in range(3)]
    assert quantity(compare(unrated, ("a", "b"))[0], "drop@1").pairs == 0


@pytest.mark.slow
def test_it_is_seeded() -> None:
    chance = random.Random(1)
    many = [played(agent, i, chance.random()) for agent in "ab" for i in range(40)]
    assert compare(many, ("a", "b")) == compare(many[::-1], ("a", "b"))
    assert compare(many, ("a", "b"), seed=2) != compare(many, ("a", "b"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a",), "at least two"),
        (("a", "a"), "at least two"),
        (("a", "nobody"), "no session has agent 'nobody'.* a, b"),
    ],
)
def test_bad_names_are_refused(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        compare(pairs(), names)


def test_without_the_extra_tests_and_power_are_missing_and_the_rest_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [tested] = compare(pairs(), ("a", "b"))
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    [untested] = compare(pairs(), ("a", "b"))
    assert tested.untested is None
    assert untested.untested is not None
    assert "analytics" in untested.untested
    for with_extra, without in zip(tested.differences, untested.differences, strict=True):
        bare = msgspec.structs.replace(with_extra, p=None, adjusted=None, needed=None)
        assert without == bare
