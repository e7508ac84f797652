"""Proof as a task: each actor's view, each actor's acts, and the results."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import anyio
import pytest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    MessageSent,
    ModelCalled,
    ProfileChanged,
    SessionClosed,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.models.gateway import Models
from duolog.engine.models.rehearsal import Rehearsal
from duolog.engine.records import Record
from duolog.engine.session.fork import fork
from duolog.engine.session.runner import Session
from duolog.engine.task import NOBODY, Cell, Setting
from duolog.examples.proof.environment import ACTIONS
from duolog.examples.proof.proof_task import proof_task
from duolog.examples.proof.proving.checker import check_section
from duolog.examples.proof.proving.document import read_document
from duolog.examples.proof.reading import stated_claims
from duolog.examples.proof.rule_user import TIME_AT_HAND
from duolog.tasks.kit import HUMAN_ALONE
from duolog.testing import Played, check_task, played
from duolog.users.personas import PERSONAS

TASK = proof_task()


def session(agent: str, instance: int = 0, user: str = "proactive") -> Session:
    who = NOBODY if TASK.automated(agent) else user
    return TASK.session(Cell(agent=agent, user=who, instance=str(instance), seed=6), Setting())


async def play(agent: str, user: str = "proactive", instance: int = 0) -> Played:
    return await played(session(agent, instance, user))


def trace(one: Played) -> Sequence[Record]:
    return one.streams["trace"]


def utilities(one: Played) -> list[float]:
    events = [record.event for stream in one.streams.values() for record in stream]
    return [e.value for e in events if isinstance(e, UtilityScored) and e.value is not None]


@pytest.mark.parametrize("user", PERSONAS)
@pytest.mark.parametrize("agent", ["one-stage", "two-stage", "careful", "adaptive"])
async def test_every_agent_works_with_every_person_to_the_end(agent: str, user: str) -> None:
    one = await play(agent, user)
    assert one.result.reason in ("finished", "abandoned")
    assert utilities(one)[-1] > 0


async def test_the_agent_alone_checks_nothing_and_proves_what_is_false() -> None:
    one = await play("auto")
    assert not any(isinstance(record.event, ActionTaken) for record in trace(one))
    outputs = [r.event for r in trace(one) if isinstance(r.event, SnapshotTaken)]
    document = read_document(outputs[-1].content)
    assert len(outputs) == 1
    assert list(document) == list("ABCDEF")
    assert sum(bool(check_section(one, document)) for one in document.values()) >= 2


async def test_a_counterexample_that_was_seen_changes_what_the_mathematician_wants() -> None:
    one = await play("two-stage")
    changes = [
        (place, record)
        for place, record in enumerate(trace(one))
        if isinstance(record.event, ProfileChanged)
    ]
    assert len(changes) == 1
    place, change = changes[0]
    assert change.actor == "user"
    before = [r.event.text for r in trace(one)[:place] if isinstance(r.event, MessageSent)]
    assert any("fails at n =" in text for text in before)


async def test_people_check_and_agents_verify_before_they_show_what_matters() -> None:
    one = await play("two-stage")
    acts = [(r.role, r.event) for r in trace(one) if isinstance(r.event, ActionTaken)]
    names = {(role, event.name) for role, event in acts}
    assert {("agent", "Verify"), ("agent", "FindCounterexample"), ("human", "Check")} <= names
    assert ("agent", "Check") not in names
    first = next(n for n, r in enumerate(trace(one)) if isinstance(r.event, SnapshotTaken))
    assert any(isinstance(r.event, ActionResolved) for r in trace(one)[:first])


@pytest.mark.slow
async def test_asking_first_beats_doing_it_alone_which_beats_what_nobody_checked() -> None:
    mean = {}
    for agent in ("auto", HUMAN_ALONE, "two-stage"):
        runs = [await play(agent, instance=instance) for instance in range(8)]
        mean[agent] = statistics.mean(max(utilities(one)) for one in runs)
    assert 0.02 < mean["auto"] < mean[HUMAN_ALONE] - 0.2
    assert mean[HUMAN_ALONE] < mean["two-stage"] < 0.95


async def test_people_alone_try_small_cases_of_every_claim_before_they_prove_it() -> None:
    one = await play(HUMAN_ALONE)
    tried: set[str] = set()
    proved: set[str] = set()
    stated = stated_claims(session(HUMAN_ALONE).opened.request or "")
    for record in trace(one):
        event = record.event
        if isinstance(event, ActionTaken) and event.name == "FindCounterexample":
            tried.add(str(event.arguments["claim"]))
        elif isinstance(event, SnapshotTaken):
            proved |= read_document(event.content).keys() & stated.keys()
            assert {stated[label] for label in proved} <= tried
    assert proved


@pytest.mark.slow
async def test_to_take_over_a_long_proof_that_nobody_checked_is_worse_than_to_begin_afresh() -> (
    None
):
    taken_over, afresh = [], []
    for instance in range(8):
        auto = await play("auto", instance=instance)
        records = [record for stream in auto.streams.values() for record in stream]
        first = next(r.version for r in trace(auto) if isinstance(r.event, SnapshotTaken))
        one = fork(session(HUMAN_ALONE, instance), records, first, past=session("auto", instance))
        taken_over.append(utilities(await played(one))[-1])
        afresh.append(utilities(await play(HUMAN_ALONE, instance=instance))[-1])
    assert statistics.mean(taken_over) < statistics.mean(afresh) - 0.05


@pytest.mark.slow
async def test_it_keeps_the_contract_of_tasks() -> None:
    await check_task(TASK, seed=9, instances=2)


async def test_the_mathematician_leaves_when_their_time_is_over_and_says_so() -> None:
    closed = []
    for instance in range(3):
        last = trace(await play("one-stage", instance=instance))[-1]
        assert isinstance(last.event, SessionClosed)
        closed.append((last.event.detail, last.time >= TIME_AT_HAND))
    assert ("out of time", True) in closed
    assert all((why == "out of time") == late for why, late in closed)


def test_on_models_too_proofs_are_checked_and_minds_change() -> None:
    rehearsal = Rehearsal()
    setting = Setting(models=Models(rehearsal), rehearsal=rehearsal)
    cell = Cell(
        agent="two-stage", user="proactive", instance="0", seed=1, model="m", user_model="m"
    )
    on_models = TASK.session(cell, setting)  # imports what models take, which blocks
    one = anyio.run(played, on_models)
    assert one.result.reason in ("finished", "abandoned")
    callers = {r.actor for r in trace(one) if isinstance(r.event, ModelCalled)}
    assert callers == {"user", "agent"}
    assert [r for r in trace(one) if isinstance(r.event, ProfileChanged)]
    assert utilities(one)[-1] > 0.5


def test_agents_are_not_offered_what_only_people_can_do() -> None:
    offered = {
        role: {name for name, spec in ACTIONS.items() if role in spec.roles}
        for role in ("human", "agent")
    }
    assert offered["human"] - offered["agent"] == {"Check", "Accept"}
    assert offered["agent"] <= offered["human"]


async def test_whoever_answers_another_question_says_which_one_they_took_it_for() -> None:
    one = await play("one-stage", "feedback+mishears=1+ambiguous=0+queries=0")
    asked, taken = "", 0
    for record in trace(one):
        if not isinstance(record.event, MessageSent):
            continue
        text = record.event.text
        if record.actor == "agent":
            asked = text
        elif asked and "another paper" in text and "lemma" not in asked:
            assert "the lemma" in text
            taken += 1
    assert taken
