"""Every session records which problem it was: by content, and never what a person wrote."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import anyio
import duolog
import msgspec
import pytest
from duolog.engine import codec
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON, MessageSent, SessionOpened
from duolog.engine.log.open import open_log
from duolog.engine.problem import Posed, derived_problem
from duolog.engine.session.runner import Session
from duolog.engine.session.view import Visibility
from duolog.engine.task import Cell, Setting, find_task
from duolog.scoring.trajectory.files import decode_trajectory, encode_trajectory
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.points import Trajectory
from duolog.telemetry.session import opening
from duolog.testing import played

TASKS = ("travel", "tutoring", "finance", "data", "proof")


def session(task: str, agent: str = "one-stage", user: str = "proactive", **other: JSON) -> Session:
    settings: Mapping[str, JSON] = {"instance": "0", "seed": 3, **other}
    cell = msgspec.convert({"agent": agent, "user": user, **settings}, Cell)
    return find_task(task).session(cell, Setting())


def problem(task: str, agent: str = "one-stage", user: str = "proactive", **other: JSON) -> str:
    found = session(task, agent, user, **other).opened.problem
    assert found is not None
    return found


@pytest.mark.parametrize("task", TASKS)
def test_whoever_plays_it_has_the_same_problem_and_another_seed_another(task: str) -> None:
    who = [
        ("one-stage", "proactive"),
        ("two-stage", "lazy"),
        ("auto", "none"),
        ("human-alone", "lazy"),
    ]
    assert len({problem(task, agent, user) for agent, user in who}) == 1
    different = {problem(task, seed=seed, instance=name) for seed, name in product((3, 4), "01")}
    assert len(different) == 4


def test_repeats_are_the_same_problem_with_other_draws_and_another_id() -> None:
    once, again = session("travel"), session("travel", repeat=2)
    assert once.id == "travel-0-one-stage-proactive-650df48f78"  # as before there were repeats
    assert again.opened.problem == once.opened.problem
    assert again.id != once.id
    assert again.opened.seed != once.opened.seed


class Folder:
    """Puts up what the request holds."""

    async def decide(self, view: duolog.View) -> duolog.Decision:
        return duolog.Decision()


def simple(
    request: str = "Fold it", private: JSON = "in half", version: str = "1"
) -> duolog.SimpleTask:
    instance = duolog.Instance(name="a", request=request, private=private)
    return duolog.SimpleTask(
        "fold", "fold paper", instances=[instance], utility=lambda output: 1.0,
        agents={"folder": Folder}, users={"folder": Folder}, version=version,
    )  # fmt: skip


def key(task: duolog.SimpleTask, seed: int = 1) -> str | None:
    cell = Cell(agent="folder", user="folder", instance="a", seed=seed)
    return task.session(cell, Setting()).opened.problem


def test_what_poses_the_problem_makes_the_key() -> None:
    assert key(simple()) == key(
        simple(), seed=2
    )  # a list of instances is the same under every seed
    others = [simple(request="Unfold it"), simple(private="in three"), simple(version="2")]
    assert len({key(simple()), *map(key, others)}) == 4


def test_actors_do_not_see_the_key() -> None:
    one = anyio.run(played, session("tutoring"))
    eyes = Visibility("agent")
    shown = eyes.see(one.trace[0])
    assert shown is not None
    assert isinstance(shown.event, SessionOpened)
    assert shown.event.problem is None


@pytest.mark.parametrize("task", ["tutoring", "travel"])
def test_a_session_that_recorded_no_key_has_the_same(task: str) -> None:
    one = anyio.run(played, session(task))
    opened = one.trace[0].event
    assert isinstance(opened, SessionOpened)
    before = msgspec.structs.replace(opened, problem=None)
    assert isinstance(one.trace[1].event, MessageSent)
    posed = derived_problem(one.trace[0].session, before)
    assert isinstance(posed, Posed)
    assert posed.asked(one.trace[1].event.text) == opened.problem
    fold = TrajectoryFold(one.trace[0].session)
    first = msgspec.structs.replace(one.trace[0], body=codec.encode_body(before))
    for record in [first, *one.trace[1:]]:
        fold.feed(record)
    assert fold.trajectory().problem == opened.problem


def test_an_imported_session_has_the_id_of_its_data_set() -> None:
    def derived(instance: str, task: str = "airline") -> str | Posed | None:
        opened = SessionOpened(
            task=task, instance=instance, participants=(), clock="utc",
            config={"imported": {"format": "chats"}},
        )  # fmt: skip
        return derived_problem("session-1", opened)

    assert derived("17") == "17"
    assert derived("session-1") is None  # no more than the name of the session
    assert derived("17", task="chats") is None


def test_forget_nulls_the_key(tmp_path: Path) -> None:
    place = str(tmp_path / "some.db")
    forgotten = session("tutoring").id

    async def run_two() -> None:
        async with open_log(place) as log:
            for seed in (3, 4):
                await duolog.run_session(log, session("tutoring", seed=seed))

    async def forget() -> None:
        async with open_log(place) as log:
            await log.forget(forgotten)

    anyio.run(run_two)
    assert all(problems(place))
    anyio.run(forget)
    assert sum(one is None for one in problems(place)) == 1
    assert problem("tutoring").encode() not in Path(place).read_bytes()


def problems(place: str) -> list[str | None]:
    found = duolog.report(place).sessions
    return [found.problem.of(row) for row in range(len(found))]


def test_a_file_of_trajectories_keeps_the_key_or_names_problems_by_instance() -> None:
    one = Trajectory(session="s", instance="0", problem="4af1")
    assert decode_trajectory(encode_trajectory(one)).problem == "4af1"
    unknown = Trajectory(session="s", instance="0")
    assert decode_trajectory(encode_trajectory(unknown)).problem is None
    assert decode_trajectory(b'{"session": "s", "instance": "7", "rounds": []}').problem == "7"
    assert decode_trajectory(b'{"session": "s", "rounds": []}').problem is None


def test_a_product_says_which_problem_it_was() -> None:
    assert opening({"task": "support", "instance": "42"}).problem is None
    assert opening({"task": "support", "problem": "refund-7"}).problem == "refund-7"
    with pytest.raises(InvalidInput, match="a problem must be a text, not int"):
        opening({"problem": 7})  # type: ignore[typeddict-item]
