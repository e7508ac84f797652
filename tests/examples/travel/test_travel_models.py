"""Travel planning on models: whole sessions over HTTP, prompts, replays, odd plans."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from asked import Answers, conversation
from duolog.agents.habits import Habits
from duolog.agents.model_mind import prompt_digest as agent_digest
from duolog.engine.codec import digest
from duolog.engine.errors import InvalidInput, ModelRefused
from duolog.engine.events import (
    ModelCalled,
    ProfileChanged,
    SessionOpened,
    SimulatorFlagged,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.models import (
    LiteLLMModel,
    ModelClient,
    Models,
    RecordedModel,
    Retry,
    ScriptedModel,
    Terms,
)
from duolog.engine.models.prompting.conversation import ModelUse
from duolog.engine.models.rehearsal import Rehearsal
from duolog.engine.records import TRACE, Record
from duolog.engine.session.runner import Session, run_session
from duolog.engine.task import Cell, Setting
from duolog.examples.travel.data.sources import InventedInstances
from duolog.examples.travel.plan.text import parse_plan
from duolog.examples.travel.travel_task import (
    TRAVEL_BRIEF,
    TRAVEL_CHECKS,
    ModelConverter,
    asking_travel_utility,
    find_strange_wishes,
    find_too_much,
    travel_task,
)
from duolog.scoring.scorers.model_judge import JUDGE
from duolog.testing import by, records_of, streams
from duolog.testing.records import run_scorer
from duolog.users.audit import SimulatorAudit, Utterance
from duolog.users.model_mind import prompt_digest as user_digest
from openai_server import OpenAIServer
from travel_model import play

TASK = travel_task()
MODEL, OTHER = "openai/gpt-4o", "openai/gpt-4o-mini"
AT_ONCE = Terms(retry=Retry(attempts=None, first=0.0))


def a_cell(agent: str, *, instance: int = 0, user: str = "proactive") -> Cell:
    alone = agent == "auto"
    return Cell(
        agent=agent,
        user="none" if alone else user,
        instance=str(instance),
        seed=7,
        model=MODEL,
        user_model=None if alone else OTHER,
        judge_model=OTHER,
    )


def a_session(cell: Cell, client: ModelClient, *, as_text: bool = False) -> Session:
    uses = {name: ModelUse(model=name, text_actions=as_text) for name in (MODEL, OTHER)}
    return TASK.session(cell, Setting(models=Models(client, terms=AT_ONCE), uses=uses))


async def bodies(log: EventLog, name: str) -> dict[str, list[tuple[object, ...]]]:
    """All streams of a session, byte for byte."""
    return {
        stream: [(r.version, r.id, r.time, r.actor, r.cause, r.seen, r.body) for r in records]
        for stream, records in (await streams(log, name)).items()
    }


def events(records: Sequence[Record], kind: type) -> list[object]:
    return [record.event for record in records if isinstance(record.event, kind)]


@pytest.mark.slow
@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("agent", ["auto", "one-stage", "two-stage"])
async def test_a_whole_session_over_http_and_again_from_its_log(
    openai_server: OpenAIServer, agent: str, as_text: bool
) -> None:
    server = openai_server
    server.answer = play
    cell = a_cell(agent)
    async with open_log("memory://") as log, open_log("memory://") as again:
        one = a_session(cell, LiteLLMModel(api_base=server.url), as_text=as_text)
        result = await run_session(log, one)
        assert result.reason == "finished"
        assert result.utility is not None
        assert result.utility >= 0.5
        found = await streams(log, one.id)
        calls = events([r for records in found.values() for r in records], ModelCalled)
        assert len(calls) == len(server.requests)

        # Nobody but the user is ever shown what the user wants.
        opened = found[TRACE][0].event
        assert isinstance(opened, SessionOpened)
        if agent != "auto":
            profile = opened.private["user"]
            assert isinstance(profile, dict)
            hidden = [str(wish) for wish in profile["profile"]]
            changes = [r.event.profile for r in found[TRACE] if isinstance(r.event, ProfileChanged)]
            held = [
                [wish for wish in hidden if wish in map(str, one["profile"])]
                for one in (profile, *changes)
                if isinstance(one, dict)
            ]
            for body in server.requests:
                shown = json.dumps(body["messages"])
                assert body["messages"][0]["role"] == "system" or "You play" not in shown
                person = "You play " in shown
                seen = [wish for wish in hidden if wish in shown]
                assert seen in held if person else not seen

        # It says who played.
        told = {p.name: p for p in opened.participants}
        assert told["agent"].model == MODEL
        assert told["agent"].prompt == agent_digest(TRAVEL_BRIEF, Habits(goals=False))
        if agent != "auto":
            assert told["user"].model == OTHER
            assert told["user"].prompt == user_digest(TRAVEL_BRIEF)
            assert told["user"].policy == "model"
            assert told["user"].persona == "proactive"
            assert str(opened.config["judge"]).startswith(f"{JUDGE}@")

        # Run again without a server it comes out the same, byte for byte.
        made = len(server.requests)
        repeated = a_session(cell, RecordedModel(log), as_text=as_text)
        assert repeated.id == one.id
        assert await run_session(again, repeated) == result
        assert await bodies(again, one.id) == await bodies(log, one.id)
        assert len(server.requests) == made


async def test_killed_after_any_record_it_asks_nothing_twice() -> None:
    """Cut at each version of its trace, a session continues unchanged, on recorded replies."""
    rehearsal = Rehearsal()
    cell = a_cell("two-stage", user="lazy")
    setting = Setting(models=Models(rehearsal), rehearsal=rehearsal)
    async with open_log("memory://") as log:
        one = TASK.session(cell, setting)
        await run_session(log, one)
        whole = await bodies(log, one.id)
        trace = (await streams(log, one.id))[TRACE]
        bodies_of_calls = [r[-1] for records in whole.values() for r in records]
        calls = sum(isinstance(b, bytes) and b'"ModelCalled"' in b[:40] for b in bodies_of_calls)
        for cut in range(1, len(trace), 9):
            async with open_log("memory://") as rest:
                await rest.restore(trace[:cut])
                asked: list[str] = []
                counting = Rehearsal(price=lambda model, *tokens: asked.append(model))  # noqa: B023
                setting = Setting(models=Models(counting), rehearsal=counting)
                await run_session(rest, TASK.session(cell, setting))
                assert await bodies(rest, one.id) == whole
                assert len(asked) == calls - len(events(trace[:cut], ModelCalled))


async def test_what_nobody_can_reach_is_refused_beforehand() -> None:
    with pytest.raises(InvalidInput, match="lacks a client to reach model"):
        TASK.session(a_cell("one-stage"), Setting())
    with pytest.raises(InvalidInput, match="unknown agent 'three-stage'"):
        TASK.session(a_cell("three-stage"), Setting(models=Models(Rehearsal())))
    with pytest.raises(InvalidInput, match="unknown user 'grumpy'"):
        TASK.session(a_cell("one-stage", user="grumpy"), Setting(models=Models(Rehearsal())))


def test_models_and_how_they_are_asked_make_the_session() -> None:
    def named(cell: Cell, **use: object) -> str:
        uses = {MODEL: ModelUse(model=MODEL, **use)}  # type: ignore[arg-type]
        return TASK.session(cell, Setting(models=Models(Rehearsal()), uses=uses)).id

    rules = Cell(agent="one-stage", user="lazy", instance="0", seed=7)
    assert TASK.session(rules, Setting()).id == "travel-0-one-stage-lazy-82e1e916a1"
    on_model = a_cell("one-stage", user="lazy")
    assert named(on_model).startswith("travel-0-one-stage-openai-gpt-4o-lazy-")
    assert named(on_model) == named(on_model)
    assert named(on_model, temperature=0.5) != named(on_model)
    assert named(rules, temperature=0.5) == "travel-0-one-stage-lazy-82e1e916a1"


# --- audit ---------------------------------------------------------------------------------------


def said(text: str, *known: str, before: tuple[str, ...] = ()) -> Utterance:
    profile = ["Travel for two people with a budget of $2,000", "Prefer Indian and Thai food"]
    return Utterance(
        text=text, profile={"profile": profile}, request="A trip", known=known, before=before
    )


def test_wishes_that_the_profile_does_not_have_are_flagged() -> None:
    kinds = [(f.kind, f.detail) for f in find_strange_wishes(said("We need to bring our dog."))]
    assert kinds == [("invention", "the profile says nothing of house_rule: pets")]
    [fault] = find_strange_wishes(said("There will be 5 of us."))
    assert (fault.kind, fault.detail) == ("contradiction", "people is 2, and not 5")
    assert list(find_strange_wishes(said("There will be 2 of us, and we love Indian food."))) == []
    assert list(find_strange_wishes(said("Bringing a dog is fine.", "Bring pets?"))) == []


def test_several_wishes_at_once_are_flagged() -> None:
    text = "There will be 2 of us. Our budget is $2,000."
    [fault] = find_too_much(said(text))
    assert fault.detail == "tells people, budget in one message"
    assert list(find_too_much(said(text, before=("There will be 2 of us.",)))) == []
    asked = "How many of you will be going? What is your budget?"
    assert list(find_too_much(said(text, asked))) == []  # who is asked for both may tell both


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instances", "least"), [(6, 60), pytest.param(20, 200, marks=pytest.mark.soak)]
)
async def test_travellers_on_rules_are_not_flagged(instances: int, least: int) -> None:
    """They are honest by construction, so any flag is an error of the audit."""
    flagged = messages = 0
    audit = SimulatorAudit(TRAVEL_CHECKS)
    for instance in range(instances):
        for user in ("proactive", "feedback", "lazy"):
            async with open_log("memory://") as log:
                cell = Cell(agent="two-stage", user=user, instance=str(instance), seed=3)
                one = TASK.session(cell, Setting())
                await run_session(log, one)
                trace = (await streams(log, one.id))[TRACE]
            measured = await run_scorer(audit, trace)
            flagged += len([e for e, _ in measured if isinstance(e, SimulatorFlagged)])
            messages += sum(r.kind == "MessageSent" and r.role == "human" for r in trace)
    assert messages > least
    assert flagged == 0


# --- odd plans -----------------------------------------------------------------------------------

PLAN = "Day 1:\nCurrent City: Rome\nBreakfast: Bar, Rome"
ODD = "On our first morning we are in Rome and have breakfast at Bar."


async def test_a_model_puts_an_odd_plan_into_the_form() -> None:
    answers = Answers(PLAN)
    assert await ModelConverter(conversation(answers))(ODD) == parse_plan(PLAN)
    assert ODD in answers.prompts[0]
    assert TRAVEL_BRIEF.output in answers.prompts[0]


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        (("no plan",), "m finds no plan in this text"),
        (("Rome!", "Rome!!", "Rome!!!"), "could not be converted: no reply of m"),
        ((ModelRefused("no"),) * 3, "could not be converted: no"),
    ],
)
async def test_what_cannot_be_converted_is_said(
    answers: tuple[str | ModelRefused, ...], complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        await ModelConverter(conversation(Answers(*answers)))(ODD)


async def test_only_what_the_parser_cannot_read_is_converted() -> None:
    asked: list[str] = []

    def answer(request: object) -> str:
        asked.append("")
        return PLAN

    models = Models(ScriptedModel(answer))
    opening = TASK.session(Cell(agent="auto", user="none", instance="0", seed=7), Setting())
    sandbox = InventedInstances(7).instance("0")[1]
    utility = asking_travel_utility(sandbox, models, ModelUse(model="m"))
    async with open_log("memory://") as log:
        await run_session(log, opening)
        opened, *_ = (await streams(log, opening.id))[TRACE]
    for text, calls in ((PLAN, 0), (ODD, 1)):
        taken = by("agent", SnapshotTaken(content=text, digest=digest(text)), actor="agent")
        assert isinstance(opened.event, SessionOpened)
        measured = await run_scorer(utility, records_of(opened.event, taken))
        [scored] = [event for event, _ in measured if isinstance(event, UtilityScored)]
        assert scored.value is not None
        assert len(asked) == calls
