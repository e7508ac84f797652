"""Agents compared in pairs, held to worked examples and to scipy."""

from __future__ import annotations

import random
from itertools import product

import msgspec
import numpy as np
import pytest
from duolog.engine.errors import InvalidInput
from duolog.scoring.comparison.inference import mean_interval, sign_flip_p
from duolog.scoring.comparison.pairs import Comparison, Difference, compare
from duolog.scoring.trajectory.points import Point, Trajectory
from later import imported_later
from step_counter import Counted

stats = imported_later("scipy.stats")


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
        problem=str(instance),
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
    # There are 64 ways to flip the signs of six differences; count those at least as extreme.
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


@pytest.mark.parametrize("n", [2, 6, 9, 12, 40])
def test_p_is_that_of_scipys_permutation_test(n: int) -> None:
    chance = random.Random(n)
    column = np.array([round(chance.gauss(0.1, 0.2), 2) for _ in range(n)])
    expected = stats.permutation_test(
        (column, np.zeros(n)),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=9999,
        rng=np.random.default_rng(1),
    ).pvalue
    assert sign_flip_p(column, "1") == pytest.approx(expected, abs=1e-12 if n < 14 else 0.02)


def test_below_six_pairs_there_is_no_interval_and_the_differences_are_given() -> None:
    few = [one for one in pairs() if int(one.instance) < 5]
    overall = quantity(compare(few, ("a", "b"))[0], "overall")
    assert (overall.difference.low, overall.difference.high) == (None, None)
    assert overall.differences == pytest.approx((0.3, 0, 0.3, 0.3, 0.3))
    assert overall.p is not None
    assert overall.p >= 0.0625
    assert quantity(compare(pairs(), ("a", "b"))[0], "overall").differences == ()


@pytest.mark.parametrize("n", [6, 7, 8, 9])
def test_from_six_pairs_the_interval_is_what_the_exact_test_does_not_reject(n: int) -> None:
    chance = random.Random(n)
    column = np.array([chance.gauss(0.1, 0.2) for _ in range(n)])
    found = mean_interval(column, 1000, "")
    assert found is not None
    low, high = found
    for shift, rejected in (
        (low - 1e-6, True),
        (low + 1e-6, False),
        (high - 1e-6, False),
        (high + 1e-6, True),
    ):
        p = sign_flip_p(column - shift, "")
        assert p is not None
        assert (p <= 0.05) is rejected
    if n == 6:
        assert found == pytest.approx((column.min(), column.max()))


def test_from_ten_pairs_the_interval_is_bca() -> None:
    chance = random.Random(3)
    column = np.array([chance.expovariate(3) for _ in range(25)])
    found = mean_interval(column, 20_000, "seed")
    expected = stats.bootstrap(
        (column,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    assert found == pytest.approx((expected.low, expected.high), abs=0.01)
    assert mean_interval(column, 0, "seed") is None
    assert mean_interval(np.full(12, 0.5), 100, "seed") == pytest.approx((0.5, 0.5))


def test_only_outcomes_are_tested() -> None:
    [usual] = compare(pairs(), ("a", "b"))
    assert [each.quantity for each in usual.differences if each.p is not None] == ["overall"]
    assert usual.differences[0].adjusted == usual.differences[0].p
    [both] = compare(pairs(), ("a", "b"), outcomes=("final", "drop@2"))
    assert [each.quantity for each in both.differences if each.outcome] == ["final", "drop@2"]
    assert [each.quantity for each in both.differences][:3] == ["final", "drop@2", "overall"]
    assert quantity(both, "overall").p is None
    assert quantity(both, "overall").difference.low is not None
    with pytest.raises(InvalidInput, match="unknown outcome 'drop@9'"):
        compare(pairs(), ("a", "b"), outcomes=("drop@9",))


def test_holm_is_over_the_agent_pairs_and_outcomes_of_one_task() -> None:
    more = [played("c", i, value + 0.01 * (i % 2)) for i, value in enumerate(ONE)]
    task = [*pairs(), *more]
    outcomes = ("overall", "all_rounds")
    found = compare(task, ("a", "b", "c"), outcomes=outcomes)
    assert [(each.first, each.second) for each in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    listed = [each for one in found for each in one.differences if each.p is not None]
    assert len(listed) == 6
    ordered = sorted(listed, key=lambda each: each.p or 0)
    running = 0.0
    for index, each in enumerate(ordered):
        assert each.p is not None
        running = max(running, min(1.0, each.p * (len(ordered) - index)))
        assert each.adjusted == pytest.approx(running)

    def of_task(name: str, sessions: list[Trajectory]) -> list[Trajectory]:
        return [
            msgspec.structs.replace(
                one, session=f"{name}/{one.session}", group={**one.group, "task": name}
            )
            for one in sessions
        ]

    alone = compare(of_task("one", task), ("a", "b", "c"), outcomes=outcomes)
    joined = compare(
        of_task("one", task) + of_task("two", task), ("a", "b", "c"), outcomes=outcomes
    )
    assert [one for one in joined if one.group["task"] == "one"] == list(alone)


def test_equal_instances_of_different_problems_are_no_pair() -> None:
    other = [msgspec.structs.replace(one, problem=f"other-{one.problem}") for one in pairs()]
    sessions = [one for one in pairs() if one.group["agent"] == "a"]
    sessions += [one for one in other if one.group["agent"] == "b"]
    [found] = compare(sessions, ("a", "b"))
    assert (found.pairs, found.unpaired) == (0, {"a": 6, "b": 6})
    [named] = compare(sessions, ("a", "b"), pair_by="instance")
    assert (named.pairs, named.pair_by) == (6, "instance")


def test_without_a_known_problem_pairing_is_refused() -> None:
    unknown = [msgspec.structs.replace(one, problem=None) for one in pairs()]
    with pytest.raises(
        InvalidInput, match=r"12 of their sessions do not record .* --pair-by instance"
    ):
        compare(unknown, ("a", "b"))
    assert compare(unknown, ("a", "b"), pair_by="instance")[0].pairs == 6
    [some] = compare([*pairs(), *unknown[:1]], ("a", "b"))
    assert (some.pairs, some.unknown) == (6, {"a": 1})


def test_agents_alike_do_not_differ() -> None:
    same = [played(agent, i, value) for agent in "ab" for i, value in enumerate(ONE)]
    overall = quantity(compare(same, ("a", "b"))[0], "overall")
    assert (overall.difference.value, overall.p, overall.effect) == (0, 1, None)


def test_unpaired_sessions_are_counted_and_in_no_difference() -> None:
    extra = [played("a", 99, 0.0), played("b", 77, 1.0), played("b", 77, 1.0, 1.0)]
    [found] = compare([*pairs(), *extra], ("a", "b"))
    assert found.pairs == 6
    assert found.unpaired == {"a": 1, "b": 2}
    assert quantity(found, "overall").difference.value == pytest.approx(1.4 / 6)


def test_sessions_are_paired_at_the_same_cost_however_many_there_are() -> None:
    def steps(count: int) -> float:
        sessions = [
            msgspec.structs.replace(one, problem=Counted(one.problem))
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
            problem=str(i),
            evaluated=False,
            points=(Point(round=1, utility=None),),
        )
        for i in range(6)
    ]
    [found] = compare([t for t in pairs() if t.group["agent"] == "a"] + blind, ("a", "b"))
    overall = quantity(found, "overall")
    assert (overall.pairs, overall.difference.value, overall.p) == (0, None, None)
    assert overall.difference.reason == "no problem has a value on both sides of the pair"
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
