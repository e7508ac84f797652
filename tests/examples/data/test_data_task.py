"""Data analysis as a task: what its rules do with each other, and what its utility makes of that."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from duolog.engine.events import (
    ActionTaken,
    MessageSent,
    ProfileChanged,
    SessionClosed,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.log.open import open_log
from duolog.engine.models import Models
from duolog.engine.models.rehearsal import Rehearsal
from duolog.engine.records import Record
from duolog.engine.session.runner import Session, run_session
from duolog.engine.task import NOBODY, Cell, Setting
from duolog.examples.data.analysis import LOOKS
from duolog.examples.data.data_task import data_task, worth
from duolog.examples.data.facts import Claim, Topic, advice_on
from duolog.examples.data.instances import Wants, make_instance
from duolog.examples.data.profile import read_wants
from duolog.examples.data.report import ReportReader
from duolog.testing import check_task
from duolog.users.personas import PERSONAS

TASK = data_task()


async def run(
    agent: str, user: str = "proactive", instance: int = 0, seed: int = 1
) -> list[Record]:
    cell = Cell(agent=agent, user=user, instance=str(instance), seed=seed)
    return await played(TASK.session(cell, Setting()))


async def played(session: Session) -> list[Record]:
    async with open_log("memory://") as log:
        await run_session(log, session)
        return [record async for record in log.read_all(session=session.id)]


def scores(records: Sequence[Record]) -> list[float]:
    found = [r.event for r in records if isinstance(r.event, UtilityScored)]
    return [event.value for event in found if event.value is not None]


def said(records: Sequence[Record], role: str) -> list[str]:
    return [r.event.text for r in records if isinstance(r.event, MessageSent) and r.role == role]


# --- utility ---------------------------------------------------------------------------------------

ONE = make_instance(1, "0")
CLAIMS = {topic: ONE.truth[topic] for topic in ONE.interests}
ALL = Wants(ONE.interests, ONE.interests[0])
ADVICE = advice_on(CLAIMS[ALL.goal])


def wrong(topic: Topic) -> Claim:
    truth = ONE.truth[topic]
    return Claim(topic, "something else", truth.value, truth.base)


def test_what_is_understood_and_advised_adds_up_to_one() -> None:
    assert worth(CLAIMS, ADVICE, ALL, ONE.truth).value == 1.0
    assert worth(CLAIMS, None, ALL, ONE.truth).value == pytest.approx(0.8)
    assert worth({}, None, ALL, ONE.truth).value == 0.0


def test_it_goes_by_what_they_want_now() -> None:
    known = {ONE.interests[0]: CLAIMS[ONE.interests[0]]}
    assert worth(known, ADVICE, ONE.first, ONE.truth).value == 1.0
    assert worth(known, ADVICE, ALL, ONE.truth).value == pytest.approx(0.8 / 6 + 0.2)


def test_what_they_do_not_want_to_know_helps_nothing_and_misleads_all_the_same() -> None:
    known = {ONE.interests[0]: CLAIMS[ONE.interests[0]]}
    other = next(topic for topic in ONE.truth if topic not in ONE.interests)
    more = worth({**known, other: ONE.truth[other]}, None, ONE.first, ONE.truth)
    assert more == worth(known, None, ONE.first, ONE.truth)
    misled = worth({**known, other: wrong(other)}, None, ONE.first, ONE.truth)
    assert misled.value == pytest.approx(0.8 - 0.5)
    assert misled.parts == {"understood": 1.0, "advised": 0.0, "misled": 1.0}


def test_a_recommendation_that_does_not_follow_misleads() -> None:
    astray = advice_on(wrong(ALL.goal))
    assert worth(CLAIMS, astray, ALL, ONE.truth).value == pytest.approx(0.8 - 0.5 / 6)


# --- sessions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", PERSONAS)
async def test_the_analyst_brings_every_session_to_an_end(user: str) -> None:
    records = await run("one-stage", user, instance=1)
    closed = next(r.event for r in records if isinstance(r.event, SessionClosed))
    assert closed.reason == "finished"
    assert closed.detail in ("satisfied with the output", "tired: they can take in no more")
    assert 0.0 < max(scores(records)) <= 1.0


async def test_an_agent_alone_writes_everything_of_which_little_is_noticed() -> None:
    records = await run("auto", NOBODY)
    report = next(r.event.content for r in records if isinstance(r.event, SnapshotTaken))
    lines = str(report).splitlines()
    assert sum(line.startswith("Finding") for line in lines) > 15
    assert lines[-1].startswith("Method")
    assert sum(line.startswith("Assumption") for line in lines) == 5
    assert len(scores(records)) == 1
    assert scores(records)[0] < 0.5


async def test_a_human_alone_selects_and_writes_by_themselves() -> None:
    records = await run("human-alone")
    roles = {record.role for record in records}
    assert "agent" not in roles
    assert any(isinstance(r.event, ActionTaken) for r in records)
    assert 0.0 < scores(records)[-1] < 1.0


async def test_understanding_raises_questions_in_the_round_that_brought_it_about() -> None:
    records = await run("two-stage")
    changes = [r for r in records if isinstance(r.event, ProfileChanged)]
    assert changes
    wanted = [
        read_wants(r.event.profile).topics for r in changes if isinstance(r.event, ProfileChanged)
    ]
    assert all(set(a) <= set(b) for a, b in pairwise(wanted))
    assert set(wanted[-1]) <= set(ONE.interests)
    after = records[records.index(changes[0]) + 1 :]
    assert next(r.kind for r in after if r.stream == "trace") == "MessageSent"


async def test_two_stage_asks_before_it_writes_and_one_stage_writes_first() -> None:
    for agent, first in (("two-stage", "MessageSent"), ("one-stage", "SnapshotTaken")):
        records = await run(agent, instance=2)
        acts = [r.kind for r in records if r.role == "agent" and r.kind != "ActionTaken"]
        assert next(k for k in acts if k in ("MessageSent", "SnapshotTaken")) == first, agent


async def test_who_is_not_understood_may_look_it_up_themselves_and_their_word_counts() -> None:
    plain = "proactive+questions=0+queries=0+repeats=0+refuses=0+complains=0+praises=0+asides=0"
    records = await run("one-stage", plain, instance=3)
    reports = [r for r in records if isinstance(r.event, SnapshotTaken)]
    theirs = next(n for n, r in enumerate(reports) if r.role == "human")
    before, after = (str(reports[n].event.content).splitlines() for n in (theirs - 1, theirs))  # type: ignore[union-attr]
    (line,) = (line for line in after if line not in before)
    asked = [
        r.event.arguments["sql"]
        for r in records
        if isinstance(r.event, ActionTaken) and r.role == "human"
    ]
    assert asked[0] in LOOKS, "they clean rows only after they have seen some"
    assert len(asked) == 2
    assert line in str(reports[-1].event.content)  # type: ignore[union-attr]
    favoured = line.split(" like ")[1].split()[0]
    assert any(f"promote {favoured} in" in str(r.event.content) for r in reports[theirs:])  # type: ignore[union-attr]


async def test_a_ruling_that_is_stated_turns_a_wrong_finding_into_a_right_one() -> None:
    one = make_instance(1, "2")
    first = one.interests[0]
    reader = ReportReader(one.survey.names)
    found: list[str] = []
    records = await run("one-stage", instance=2)
    for record in records:
        if isinstance(record.event, SnapshotTaken):
            stated = map(reader.read, str(record.event.content).splitlines())
            found += [c.answer for c in stated if isinstance(c, Claim) and c.topic == first]
    assert found[0] != one.truth[first].answer
    assert found[-1] == one.truth[first].answer


@pytest.fixture
def on_models() -> Session:
    """A session in which the rules give the replies of the models."""
    rehearsal = Rehearsal()
    cell = Cell(agent="two-stage", user="feedback", instance="0", seed=1, model="m", user_model="m")
    return TASK.session(cell, Setting(models=Models(rehearsal), rehearsal=rehearsal))


async def test_goals_change_on_models_too(on_models: Session) -> None:
    records = await played(on_models)
    assert any(r.kind == "ModelCalled" for r in records)
    assert not any(r.kind == "SimulatorFlagged" for r in records)
    changed = [read_wants(r.event.profile) for r in records if isinstance(r.event, ProfileChanged)]
    assert len(changed[-1].topics) > 1
    assert max(scores(records)) > 0.4


@pytest.mark.slow
async def test_it_keeps_the_contract_of_tasks() -> None:
    await check_task(TASK, seed=1, instances=2)
