"""Forks compared with their originals: worked by hand, and which sessions are compared."""

from __future__ import annotations

import msgspec
import pytest
from duolog.engine.events import Origin, SessionOpened, UtilityScored
from duolog.scoring.live import score_records
from duolog.scoring.metrics.forks import compare_forks, without_forks
from duolog.scoring.trajectory.points import Point, Trajectory
from duolog.testing.records import AGENT, HUMAN, RecordWriter


def session(
    name: str,
    *utilities: float,
    agent: str = "one-stage",
    origin: str | None = None,
    at: int | None = None,
) -> Trajectory:
    return Trajectory(
        session=name,
        group={"agent": agent, "user": "lazy", "task": "t"},
        points=tuple(Point(round=n, utility=u) for n, u in enumerate(utilities, start=1)),
        forked_from=None if origin is None else Origin(session=origin, version=9),
        forked_at=at,
    )


ORIGINS = [session("a", 0.25, 0.5, 0.5), session("b", 0.25, 0.75)]
FORKS = [
    session("a2", 0.25, 0.75, 0.75, 1.0, agent="two-stage", origin="a", at=2),
    session("b2", 0.25, 0.5, agent="two-stage", origin="b", at=2),
    session("b3", 0.25, 1.0, origin="b", at=2),
]


def test_each_fork_with_its_origin() -> None:
    found = {fork.session: fork for fork in compare_forks([*FORKS, *ORIGINS]).forks}
    assert [(f.before, f.then, f.now, f.difference) for f in found.values()] == [
        (0.25, 0.5, 1.0, 0.5),
        (0.25, 0.75, 0.5, -0.25),
        (0.25, 0.75, 1.0, 0.25),
    ]
    assert (found["a2"].origin, found["a2"].version, found["a2"].round) == ("a", 9, 2)
    assert (found["a2"].rounds_then, found["a2"].rounds_now) == (3, 4)
    assert found["a2"].played_then == {"agent": "one-stage", "user": "lazy"}


def test_forks_by_who_took_over_from_whom() -> None:
    same, other = compare_forks([*ORIGINS, *FORKS], bootstrap=200).groups
    assert (same.played_then["agent"], same.played_now["agent"], same.forks) == (
        "one-stage",
        "one-stage",
        1,
    )
    assert same.difference.value == 0.25
    assert (other.played_then["agent"], other.played_now["agent"]) == ("one-stage", "two-stage")
    assert (other.then.value, other.now.value, other.difference.value) == (0.625, 0.75, 0.125)
    assert other.rounds.value == 0.5
    assert (other.difference.low, other.difference.high) == (-0.25, 0.5)
    assert other.difference.sessions == other.forks == 2


def test_the_seed_decides_the_interval_and_their_order_nothing() -> None:
    one = compare_forks([*ORIGINS, *FORKS], bootstrap=50, seed=1)
    assert one == compare_forks([*ORIGINS, *FORKS], bootstrap=50, seed=1)
    assert compare_forks([*ORIGINS, *FORKS], bootstrap=0).groups[1].difference.low is None


def test_a_fork_whose_origin_is_elsewhere() -> None:
    report = compare_forks(FORKS[:1])
    [fork] = report.forks
    assert (fork.then, fork.difference) == (None, None)
    assert fork.reason == "its origin is not among the sessions"
    assert report.groups == ()


def test_a_fork_that_has_not_gone_on() -> None:
    [fork] = compare_forks([*ORIGINS, session("c", 0.25, origin="a")]).forks
    assert (fork.difference, fork.reason) == (None, "it has no record of its own yet")


def test_a_fork_without_utility_stood_at_nothing_before_it_left() -> None:
    failed = msgspec.structs.replace(
        session("c", 0.5, origin="a", at=1), points=(Point(round=1, utility=None, stale=True),)
    )
    [fork] = compare_forks([*ORIGINS, failed]).forks
    assert (fork.before, fork.now, fork.difference) == (None, None, None)


def test_means_count_no_beginning_twice() -> None:
    assert [*without_forks([*ORIGINS, *FORKS]).session] == [one.session for one in ORIGINS]
    assert [*without_forks(FORKS[:1]).session] == [FORKS[0].session]  # its origin is elsewhere
    assert len(without_forks([])) == 0


@pytest.mark.parametrize(("version", "at"), [(3, 2), (5, 2), (6, None)])
def test_a_log_says_where_a_session_left_another(version: int, at: int | None) -> None:
    """Six trace records: the second round begins with the fourth."""
    script = RecordWriter("f")
    opened = SessionOpened(
        task="t",
        instance="",
        participants=(HUMAN, AGENT),
        clock="utc",
        forked_from=Origin(session="o", version=version),
    )
    script.add(opened, "engine", "environment", at=0.0)
    script.human("plan")
    draft = script.output("plan")
    script.scored(0.5, snapshot=draft)
    script.human("again")
    script.output("plan again")
    script.closed()
    trajectory = score_records(script.records)
    assert isinstance(script.records[3].event, UtilityScored)
    assert trajectory.forked_from == Origin(session="o", version=version)
    assert trajectory.forked_at == at
