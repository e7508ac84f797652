"""A task put together on the kit: every agent plays every person, and both baselines are there."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import duolog
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    MessageSent,
    ProfileChanged,
    ProgressRated,
    SessionClosed,
    UtilityScored,
)
from duolog.engine.loading import LoadedFrom
from duolog.engine.records import Record
from duolog.engine.session.actors import playing_new
from duolog.engine.session.decisions import NOTHING, Decision, Say
from duolog.engine.session.view import View
from duolog.engine.task import NOBODY, Cell, OwnPart, Setting
from duolog.scoring.scorers.registry import ScoringSetting
from duolog.tasks.kit import HUMAN_ALONE, TaskScorer
from duolog.testing import Played, played
from toy_task import WANTED, bouquet_task

TASK = bouquet_task()


async def play(agent: str, user: str = "proactive", instance: str = "0", seed: int = 1) -> Played:
    cell = Cell(agent=agent, user=user, instance=instance, seed=seed)
    return await played(TASK.session(cell, Setting()))


def _changes(trace: Sequence[Record]) -> list[int]:
    return [place for place, record in enumerate(trace) if record.kind == "ProfileChanged"]


def values(one: Played) -> list[float]:
    events = [record.event for stream in one.streams.values() for record in stream]
    return [e.value for e in events if isinstance(e, UtilityScored) and e.value is not None]


@pytest.mark.parametrize("user", TASK.users)
@pytest.mark.parametrize("agent", ["one-stage", "two-stage", "careful", "adaptive"])
async def test_every_agent_plays_every_person_to_the_end(agent: str, user: str) -> None:
    one = await play(agent, user)
    trace = one.streams["trace"]
    rated = [r.event.rating for r in trace if isinstance(r.event, ProgressRated)]
    heard = [r.event.text for r in trace if isinstance(r.event, MessageSent) and r.actor == "agent"]
    let_down = len(rated) >= 3 and all((rating or 3) < 3 for rating in rated[-3:])
    let_down = (let_down and not any("?" in text for text in heard[-3:])) or rated[-1:] == [1]
    assert one.result.reason == ("abandoned" if let_down else "finished")
    assert values(one)[-1] >= values(await play("auto", NOBODY))[-1]
    if user == "proactive":
        assert values(one)[-1] == 1.0


async def test_the_agent_alone_works_from_the_request_alone() -> None:
    one = await play("auto", NOBODY)
    trace = one.streams["trace"]
    assert {record.role for record in trace} == {"agent", "environment"}
    assert [record.kind for record in trace].count("SnapshotTaken") == 1


async def test_the_human_alone_does_it_by_themselves_and_it_costs_their_time() -> None:
    async with duolog.open("memory://") as log:
        cell = Cell(agent=HUMAN_ALONE, user="proactive", instance="0", seed=1)
        session = TASK.session(cell, Setting())
        await duolog.run_session(log, session)
        trajectory = await duolog.score_log(log, session.id)
        records = [record async for record in log.read(session.id)]
    assert {record.actor for record in records} == {"engine", "user"}
    assert not [record for record in records if isinstance(record.event, MessageSent)]
    assert not trajectory.baseline
    assert trajectory.group["agent"] == HUMAN_ALONE
    point = trajectory.points[-1]
    assert len(trajectory.points) == 1
    assert not point.closing
    assert point.utility == 1.0
    assert point.effort["acts"] == WANTED
    assert point.effort["seconds"] == records[-2].time > 0


async def test_who_asks_first_starts_later_and_better() -> None:
    one, two = await play("one-stage", "feedback"), await play("two-stage", "feedback")

    def begun(play: Played) -> float:
        return next(r.time for r in play.streams["trace"] if r.kind == "SnapshotTaken")

    assert begun(one) < begun(two)
    assert values(one)[0] < values(two)[0]


async def test_goals_change_by_what_they_saw_before_the_next_thing_that_they_say() -> None:
    plays = [await play("one-stage", instance=str(number)) for number in range(5)]
    traces = [one.streams["trace"] for one in plays]
    changed = [trace for trace in traces if _changes(trace)]
    assert changed
    for trace in changed:
        (place,) = _changes(trace)
        event = trace[place].event
        assert isinstance(event, ProfileChanged)
        assert (event.owner, event.reason) == ("user", "they saw asters in it")
        assert trace[place + 1].kind in ("MessageSent", "SessionClosed")
    assert all(values(one)[-1] == 1.0 for one in plays), "what they want then is what counts"


async def test_one_cell_is_one_session() -> None:
    assert (await play("adaptive")).streams == (await play("adaptive")).streams


async def test_a_recorded_session_is_measured_again_by_the_tasks_scorer() -> None:
    cell = Cell(agent="one-stage", user="proactive", instance="0", seed=1)
    opened = TASK.session(cell, Setting()).opened
    assert TaskScorer(TASK).make(ScoringSetting(opened=opened)).ref.name == "bouquet"
    foreign = duolog.SessionOpened(task="letters", instance="", participants=(), clock="virtual")
    with pytest.raises(InvalidInput, match="'letters' does not hold"):
        TaskScorer(TASK).make(ScoringSetting(opened=foreign))


def test_an_instance_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidInput, match="unknown instance 'x'"):
        anyio.run(play, "auto", NOBODY, "x")


def test_the_profile_is_in_the_part_of_the_human_only() -> None:
    cell = Cell(agent="auto", user=NOBODY, instance="0", seed=1)
    assert set(TASK.session(cell, Setting()).opened.private) == {"bouquet"}
    together = Cell(agent="one-stage", user="lazy", instance="0", seed=1)
    assert set(TASK.session(together, Setting()).opened.private) == {"bouquet", "user"}


class Silent:
    """Says that it works, and does not."""

    async def decide(self, view: View) -> Decision:
        said = any(message.actor == view.me for message in view.messages)
        return NOTHING if said else Decision((Say("I am working on it."),), 1.0)


async def test_who_waits_for_nothing_asks_once_and_leaves() -> None:
    part = OwnPart(playing_new(Silent), LoadedFrom("silent.py", ""))
    cell = Cell(agent="silent", user="feedback", instance="0", seed=1)
    one = await played(TASK.session(cell, Setting(agents={"silent": part})))
    said = [
        r.event.text for r in one.trace if r.role == "human" and isinstance(r.event, MessageSent)
    ]
    assert len(said) == 2, "the request, and a question"
    assert said[-1].endswith("?")
    closed = one.trace[-1].event
    assert isinstance(closed, SessionClosed)
    assert (closed.reason, closed.detail) == ("abandoned", "waits in vain")
