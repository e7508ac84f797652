"""The mind of an agent on a model: its prompts, its choices, and how its replies are handled."""

from __future__ import annotations

import json

import pytest
from asked import Answers, calls, conversation
from duolog.agents.model_mind import ModelMind, prompt_digest
from duolog.engine.events import (
    Event,
    MessageSent,
    NoteTaken,
    Participant,
    SessionOpened,
    TurnYielded,
)
from duolog.engine.models import ModelReply
from duolog.engine.models.prompting.conversation import ModelUse
from duolog.engine.records import Draft
from duolog.engine.session.decisions import NOTHING, Act, Decision, Finish, Note, Say, Submit, Wait
from duolog.engine.session.environment import ActionSpec
from duolog.engine.session.view import View, Visibility
from duolog.engine.task import Brief
from duolog.testing import by, records_of

BRIEF = Brief(description="Cook dinner.", output="A menu, one dish a line.")
TASTE = ActionSpec(
    name="taste",
    description="Taste a dish.",
    parameters={
        "type": "object",
        "properties": {"dish": {"type": "string"}},
        "required": ["dish"],
    },
)
SECRET = "Ann cannot stand coriander"
OPENED = SessionOpened(
    task="dinner",
    instance="1",
    participants=(
        Participant(name="ann", role="human"),
        Participant(name="bot", role="agent"),
    ),
    clock="virtual",
    private={"ann": {"profile": [SECRET]}},
)
ASKED = by("human", MessageSent(text="Dinner, please."), actor="ann")
AS_TEXT = ModelUse(model="m", text_actions=True)


def bot(event: Event) -> Draft:
    return by("agent", event, actor="bot")


def view(*facts: Event | Draft) -> View:
    visibility, seen = Visibility("bot"), View("bot", "agent", actions_available={"taste": TASTE})
    for record in records_of(OPENED, ASKED, *facts):
        visible = visibility.see(record)
        if visible is not None:
            seen.feed(visible)
    return seen


def mind(answers: Answers, use: ModelUse | None = None) -> ModelMind:
    return ModelMind(conversation(answers, use), BRIEF)


def offered(answers: Answers) -> list[str]:
    return [tool.name for tool in answers.requests[-1].tools]


async def test_alone_it_is_offered_work_and_told_so() -> None:
    answers = Answers(calls(("taste", '{"dish": "soup"}')))
    decision = await mind(answers).step(view(), alone=True)
    assert decision == Decision((Act("taste", {"dish": "soup"}),))
    assert offered(answers) == ["taste", "submit", "note", "finish"]
    assert answers.purposes == ["act"]
    [prompt] = answers.prompts
    for part in ("You are bot", "work alone", "Cook dinner.", "one dish a line", "Dinner, please."):
        assert part in prompt
    assert "The chat" not in prompt


async def test_with_teammates_it_may_also_speak_and_wait() -> None:
    answers = Answers(calls(("message", '{"text": "Soup?"}'), ("wait", "{}")))
    decision = await mind(answers).step(view(), alone=False)
    assert decision == Decision((Say("Soup?"), Wait()))
    assert offered(answers) == ["message", "wait", "taste", "submit", "note", "finish"]
    [prompt] = answers.prompts
    for part in ("ann (human)", "# The chat", "[2] ann: Dinner, please."):
        assert part in prompt


async def test_a_model_without_tools_writes_the_same_as_text() -> None:
    answers = Answers('Thought: ok\nAction: {"name": "submit", "arguments": {"content": "Soup"}}')
    decision = await mind(answers, AS_TEXT).step(view(), alone=False)
    assert decision == Decision((Submit("Soup"),))
    assert answers.requests[0].tools == ()
    for name in ("message", "wait", "taste", "submit", "note", "finish"):
        assert f"- {name}: " in answers.prompts[0]


async def test_no_hidden_profile_is_in_its_prompts() -> None:
    answers = Answers(calls(("wait", "")), "Plan: 3", "Message: hello")
    asked = mind(answers)
    await asked.step(view(), alone=False)
    await asked.plan(view())
    await asked.message(view())
    assert "coriander" not in json.dumps(answers.prompts)


@pytest.mark.parametrize(
    ("reply", "intent"),
    [
        ("Thought: I need to know more.\nPlan: 1", "message"),
        ("Thought: 1 thing is left to do.\nPlan: 2. Take an action", "act"),
        ("Plan: 3. Do nothing", "wait"),
    ],
)
async def test_the_planning_stage(reply: str, intent: str) -> None:
    answers = Answers(reply)
    assert await mind(answers).plan(view()) == intent
    assert answers.purposes == ["plan"]
    assert "1. Send a message" in answers.prompts[0]


async def test_a_plan_that_cannot_be_read_waits_after_three_tries() -> None:
    answers = Answers("I could send a message, or do nothing.", "1 or 3", "hm")
    asked = conversation(answers)
    assert await ModelMind(asked, BRIEF).plan(view()) == "wait"
    assert answers.purposes == ["plan", "plan again", "plan again"]
    assert asked.gave_up is not None


async def test_the_message_is_what_follows_its_label() -> None:
    answers = Answers("Thought: Ann has to say.\n**Message:** What do you like?\n\nI like soup.")
    decision = await mind(answers).message(view())
    assert decision == Decision((Say("What do you like?\n\nI like soup."),))
    assert answers.purposes == ["message"]


async def test_thoughts_are_never_sent() -> None:
    answers = Answers("I think I should ask what Ann likes.", "Message:", "Message: What?")
    assert await mind(answers).message(view()) == Decision((Say("What?"),))
    assert 'no line begins with "Message:"' in answers.prompts[1]
    assert 'nothing follows "Message:"' in answers.prompts[2]


async def test_the_composing_stage_acts_and_does_no_more() -> None:
    answers = Answers(calls(("finish", "{}")))
    assert await mind(answers).act(view()) == Decision((Finish(),))
    assert offered(answers) == ["taste", "submit", "note", "finish"]


async def test_an_action_that_cannot_be_read_is_answered_and_then_given_up() -> None:
    answers = Answers(
        ModelReply(text="I will not call finish() yet."),
        calls(("taste", "{}")),
        calls(("bake", "{}")),
    )
    assert await mind(answers).step(view(), alone=False) == NOTHING
    assert answers.purposes == ["act", "act again", "act again"]
    assert "no action was called" in answers.prompts[1]
    assert "'dish' is a required property" in answers.prompts[2]


async def test_notes_are_its_memory_and_come_to_an_end() -> None:
    note = calls(("note", '{"text": "Ann likes soup"}'))
    answers = Answers(note, note, note)
    [first] = (await mind(answers).step(view(), alone=False)).verbs
    assert first == Note("Ann likes soup")
    noted = [bot(NoteTaken(text="Ann likes soup"))] * 3
    await mind(answers).step(view(*noted[:2]), alone=False)
    assert "- Ann likes soup\n- Ann likes soup" in answers.prompts[1]
    assert "note" in offered(answers)
    refused = Answers(note, calls(("wait", "")))
    await mind(refused).step(view(*noted), alone=False)
    assert "note" not in offered(refused)
    assert "unknown action 'note'" in refused.prompts[1]


@pytest.mark.parametrize("between", [TurnYielded(), MessageSent(text="Hm")])
async def test_acting_makes_room_for_notes_again(between: Event) -> None:
    noted = [bot(NoteTaken(text="soup"))] * 2
    answers = Answers(calls(("wait", "")))
    await mind(answers).step(view(*noted, bot(between), bot(NoteTaken(text="x"))), alone=False)
    assert ("note" in offered(answers)) is isinstance(between, MessageSent)


async def test_what_the_context_has_no_room_for_is_shortened() -> None:
    long = [by("human", MessageSent(text=f"{n} {'blah ' * 900}"), actor="ann") for n in range(9)]
    answers = Answers(calls(("wait", "")))
    await mind(answers, ModelUse(model="m", context=8000)).step(view(*long), alone=False)
    assert len(answers.prompts[0]) < 9 * 4500 * 0.8
    assert f"8 {'blah ' * 899}" in answers.prompts[0]


def test_the_digest_tells_prompts_and_briefs_apart() -> None:
    other = Brief(description="Cook lunch.", output=BRIEF.output)
    assert prompt_digest(BRIEF) != prompt_digest(other)
    assert prompt_digest(BRIEF) == prompt_digest(
        Brief(description="Cook dinner.", output=BRIEF.output)
    )
