"""Financial advice as a task: changing minds, the wishes judged at each time, and each agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    ActionTaken,
    Event,
    MessageSent,
    ModelCalled,
    ProfileChanged,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.models.gateway import Models
from duolog.engine.models.rehearsal import Rehearsal
from duolog.engine.records import Record
from duolog.engine.session.view import View
from duolog.engine.task import NOBODY, Cell, Setting
from duolog.examples.finance.finance_task import finance_task
from duolog.examples.finance.language.advice import read_figures
from duolog.examples.finance.language.profiles import HEARD, read_profile
from duolog.examples.finance.perception import Perception
from duolog.examples.finance.plan import Plan, parse_plan
from duolog.testing import Played, by, check_task, played, records_of

TASK = finance_task()


async def play(agent: str, user: str = "proactive", instance: str = "0", seed: int = 1) -> Played:
    cell = Cell(agent=agent, user=NOBODY if agent == "auto" else user, instance=instance, seed=seed)
    return await played(TASK.session(cell, Setting()))


def events(one: Played) -> list[Event]:
    found = [record.event for record in one.streams["trace"]]
    return [event for event in found if isinstance(event, Event)]


def scores(one: Played) -> list[UtilityScored]:
    records = [record.event for stream in one.streams.values() for record in stream]
    return [event for event in records if isinstance(event, UtilityScored)]


def opening(one: Played) -> SessionOpened:
    opened = one.streams["trace"][0].event
    assert isinstance(opened, SessionOpened)
    return opened


def plan_in(record: Record) -> Plan:
    assert isinstance(record.event, SnapshotTaken)
    return parse_plan(str(record.event.content))


def best(ones: Sequence[Played]) -> float:
    """The mean over sessions of the best utility."""
    return sum(max(s.value or 0.0 for s in scores(one)) for one in ones) / len(ones)


def test_an_instance_is_named_by_a_number() -> None:
    with pytest.raises(InvalidInput, match="numbered from 0"):
        TASK.session(Cell(agent="auto", user=NOBODY, instance="x", seed=1), Setting())


async def test_a_mind_changes_by_what_was_shown_or_heard_and_the_plan_is_judged_by_it() -> None:
    one = await play("two-stage", "feedback", "0")
    trace = one.streams["trace"]
    changed = [r for r in trace if isinstance(r.event, ProfileChanged)]
    assert changed
    held = read_profile(opening(one).private["user"])
    for record in changed:
        assert isinstance(record.event, ProfileChanged)
        now = read_profile(record.event.profile)
        assert len(now.moved) < len(held.moved)
        assert record.event.reason
        held = now
        figures = [
            figure.topic
            for r in trace
            if r.version < record.version and isinstance(r.event, MessageSent) and r.role == "agent"
            for figure in read_figures(r.event.text)
        ]
        assert figures or record.event.reason in HEARD.values()
    rounds = [score for score in scores(one) if score.snapshot is None]
    assert rounds, "the plan that stood was judged again"
    assert scores(one)[0].parts["holds"] != rounds[0].parts["holds"]


async def test_what_was_needed_all_along_does_not_change_with_the_mind() -> None:
    one = await play("one-stage", "feedback", "1")
    again = {s.round: s for s in scores(one) if s.round is not None}
    assert again
    for score in scores(one):
        assert score.value is not None
        parts = {name: part or 0.0 for name, part in score.parts.items()}
        suited = (parts["holds"] + parts["needs"]) / 2
        assert score.value == pytest.approx(parts["feasible"] * suited)


async def test_the_agent_alone_goes_by_the_form_and_asks_nobody() -> None:
    one = await play("auto")
    assert not [event for event in events(one) if isinstance(event, MessageSent)]
    assert 0.2 < best([one]) < 0.7


async def test_the_human_alone_works_long_and_knows_no_tables() -> None:
    one = await play("human-alone")
    acted = {event.name for event in events(one) if isinstance(event, ActionTaken)}
    assert acted == {"ReadFile", "LookUpTaxes", "Project"}
    assert {record.role for record in one.streams["trace"]} == {"human", "environment"}
    assert one.streams["trace"][-1].time > 20 * 60


async def test_together_they_find_more_than_the_agent_alone_and_never_all_of_it_always() -> None:
    names = [str(index) for index in range(4)]
    alone = [await play("auto", instance=name) for name in names]
    together = [await play("two-stage", instance=name) for name in names]
    assert best(together) > best(alone) + 0.2
    assert best(together) < 1.0


async def test_a_client_who_corrects_the_plan_says_so_and_the_agent_keeps_it() -> None:
    one = await play("two-stage", instance="2")
    trace = one.streams["trace"]
    at = next(
        n for n, r in enumerate(trace) if isinstance(r.event, SnapshotTaken) and r.role == "human"
    )
    mine = plan_in(trace[at])
    said = next(
        r.event for r in trace[at:] if isinstance(r.event, MessageSent) and r.role == "human"
    )
    assert "myself" in said.text or "of my own" in said.text
    later = [r for r in trace[at + 1 :] if isinstance(r.event, SnapshotTaken) and r.role == "agent"]
    before = plan_in(next(r for r in reversed(trace[:at]) if isinstance(r.event, SnapshotTaken)))
    changed = [f for f in mine.__struct_fields__ if getattr(mine, f) != getattr(before, f)]
    assert changed
    assert getattr(plan_in(later[-1]), changed[-1]) == getattr(mine, changed[-1])


async def test_who_asks_first_drafts_later_and_better() -> None:
    one, two = await play("one-stage", "feedback"), await play("two-stage", "feedback")

    def begun(play: Played) -> float:
        return next(r.time for r in play.streams["trace"] if isinstance(r.event, SnapshotTaken))

    assert begun(one) < begun(two)
    assert (scores(one)[0].value or 0) < (scores(two)[0].value or 0)


@pytest.mark.parametrize("user", TASK.users)
@pytest.mark.parametrize("agent", ["one-stage", "careful", "adaptive"])
async def test_every_pair_comes_to_an_end_of_its_own_without_a_word_of_the_profile(
    agent: str, user: str
) -> None:
    one = await play(agent, user, "2")
    assert one.result.reason in ("finished", "abandoned")
    private = opening(one).private["user"]
    assert isinstance(private, Mapping)
    secret = [text.lower() for text in msgspec.convert(private["profile"], list[str])]
    said = [event.text.lower() for event in events(one) if isinstance(event, MessageSent)]
    assert not [text for text in said for sentence in secret if sentence in text]


def test_on_models_too_minds_change() -> None:
    rehearsal = Rehearsal()
    cell = Cell(agent="two-stage", user="feedback", instance="0", seed=1, model="m", user_model="m")
    setting = Setting(models=Models(rehearsal), rehearsal=rehearsal)
    session = TASK.session(cell, setting)  # imports what models take, which blocks
    one = anyio.run(played, session)
    assert one.result.reason in ("finished", "abandoned")
    callers = [r.actor for r in one.streams["trace"] if isinstance(r.event, ModelCalled)]
    assert {"user", "agent"} <= set(callers)
    assert [event for event in events(one) if isinstance(event, ProfileChanged)]
    assert best([one]) > 0.5


@pytest.mark.slow
async def test_the_task_is_held_to_what_any_task_is_held_to() -> None:
    await check_task(TASK, instances=2)


async def test_nobody_is_satisfied_with_a_plan_whose_chance_they_took_in_as_too_small() -> None:
    hopeless = 0
    for instance in range(6):
        for user in ("feedback", "lazy"):
            one = await play("one-stage", user, str(instance), seed=31)
            records = one.streams["trace"]
            heard: dict[str, float] = {}
            for record in records:
                event = record.event
                if isinstance(event, MessageSent) and record.actor == "agent":
                    taken = read_figures(event.text)[:2]
                    heard |= {one.topic: one.value for one in taken if one.topic == "age"}
                elif isinstance(event, ProfileChanged):
                    heard.clear()
            closed = records[-1].event
            assert isinstance(closed, SessionClosed)
            if heard.get("age", 100.0) < 60:
                hopeless += 1
                assert not closed.detail.startswith("satisfied")
    assert hopeless


async def test_a_chance_that_is_too_small_is_objected_to() -> None:
    objected = 0
    for instance in range(6):
        one = await play("one-stage", "feedback", str(instance), seed=31)
        objected += sum(
            "chance of" in record.event.text
            for record in one.streams["trace"]
            if isinstance(record.event, MessageSent) and record.actor == "user"
        )
    assert objected


def test_clients_know_what_they_answered_in_words_that_the_reader_does_not_follow() -> None:
    opened = SessionOpened(task="finance", instance="0", participants=(), clock="virtual")
    seen = View("user", "human", seed=1)
    talk = (
        by("human", MessageSent(text="What should we do with our money?"), actor="user"),
        by("agent", MessageSent(text="At what age would you like to stop working?"), actor="agent"),
        by(
            "human",
            MessageSent(text="My plan is to be out of the office once I turn 56."),
            actor="user",
        ),
    )
    for record in records_of(opened, *talk):
        seen.feed(record)
    taken = Perception(seen)
    taken.follow()
    assert taken.told == {"age": 56}
