"""Asking until a reply can be read: answered errors, giving up, shorter requests, and choices."""

from __future__ import annotations

import pytest
from asked import Answers, calls, conversation
from duolog.engine.errors import InvalidInput, ModelRefused
from duolog.engine.events import ActionTaken, MessageSent, ModelCalled, SessionOpened, TurnYielded
from duolog.engine.models import Message, ModelReply, Tool
from duolog.engine.models.prompting.conversation import (
    ModelConversation,
    ModelPolicy,
    ModelUse,
    UnreadableReply,
    read_choice,
    reply_text,
)
from duolog.engine.session.decisions import NOTHING, Decision, Say, Wait
from duolog.engine.session.view import View
from duolog.testing import by, records_of
from hypothesis import given
from hypothesis import strategies as st


def number(reply: ModelReply) -> int:
    if not reply.text.isdecimal():
        raise InvalidInput("that is no number")
    return int(reply.text)


def compose(tokens: int) -> tuple[Message, ...]:
    return (Message(role="user", content=f"A number, in {tokens} tokens"),)


async def test_a_reply_that_can_be_read_is_all_that_is_asked_for() -> None:
    answers = Answers("7")
    use = ModelUse(model="m", temperature=0.5, max_tokens=9, options={"top_p": 1})
    assert await conversation(answers, use).ask("count", compose, number) == 7
    [request] = answers.requests
    assert (request.model, request.temperature, request.max_tokens) == ("m", 0.5, 9)
    assert request.options == {"top_p": 1}
    assert request.messages[0].content == "A number, in 32000 tokens"
    assert answers.purposes == ["count"]


async def test_a_reply_that_cannot_be_read_is_answered_with_the_error() -> None:
    answers = Answers("seven", "7")
    asking = conversation(answers)
    assert await asking.ask("count", compose, number) == 7
    assert answers.purposes == ["count", "count again"]
    first, reply, correction = answers.requests[1].messages
    assert first == answers.requests[0].messages[0]
    assert (reply.role, reply.content) == ("assistant", "seven")
    assert correction.role == "user"
    assert "that is no number" in correction.content
    assert asking.gave_up is None


async def test_after_so_many_tries_it_gives_up_and_says_why() -> None:
    answers = Answers("one", "two")
    asking = conversation(answers, ModelUse(model="m", tries=2))
    found = await asking.ask("count", compose, number)
    assert found == UnreadableReply("no reply of m could be used in 2 tries: that is no number")
    assert asking.gave_up == found.why
    asking.begin()
    assert asking.gave_up is None


async def test_a_reply_that_was_cut_off_is_not_read() -> None:
    answers = Answers(ModelReply(text="7", finish="length"), "70")
    assert await conversation(answers).ask("count", compose, number) == 70
    assert "cut off" in answers.prompts[1]


async def test_calls_that_cannot_be_read_are_repeated_in_words() -> None:
    """Malformed arguments cannot be sent to every provider as calls."""
    answers = Answers(calls(("search", "{")), "7")
    assert await conversation(answers).ask("count", compose, number) == 7
    assert answers.requests[1].messages[1].tool_calls == ()
    assert "(called search with {)" in answers.prompts[1]


async def test_a_refused_request_is_made_shorter_twice() -> None:
    answers = Answers(ModelRefused("too long"), ModelRefused("too long"), "7")
    tools = (Tool(name="search", description="d" * 4000),)
    assert await conversation(answers).ask("count", compose, number, tools=tools) == 7
    sizes = [int(prompt.split()[3]) for prompt in answers.prompts]
    assert sizes[0] < 32000 - 1000  # tools take room too
    assert sizes[1:] == [sizes[0] // 2, sizes[0] // 4]


async def test_a_request_that_is_refused_however_short_is_an_error() -> None:
    answers = Answers(*[ModelRefused("never")] * 3)
    with pytest.raises(ModelRefused, match="never"):
        await conversation(answers).ask("count", compose, number)


def test_thinking_is_not_said() -> None:
    assert reply_text(ModelReply(text="<think>4?\nno, 5</think>\n 5 ")) == "5"
    with pytest.raises(InvalidInput, match="says nothing"):
        reply_text(ModelReply(text="<think>hm</think>"))


@pytest.mark.parametrize(
    ("field", "value"), [("context", 10), ("tries", 0), ("max_tokens", 0), ("model", "")]
)
def test_a_use_that_makes_no_sense_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput):
        ModelUse(**{"model": "m", field: value})  # type: ignore[arg-type]


# --- choices -------------------------------------------------------------------------------------

PLANS = {"message": "Send a message", "act": "Take an action", "wait": "Do nothing"}


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("Plan: 1", "message"),
        ("Thought: 2 rooms are left.\nPlan: 3. Do nothing", "wait"),
        ("**Plan:** 2", "act"),
        ("Plan: Take an action", "act"),
        ("Plan: 3. Do nothing for 10 minutes, then 1", "wait"),
        ("Plan: (2) Take an action (search)", "act"),
        ("plan:2.", "act"),
        ("3", "wait"),
        ("3.", "wait"),
        ("2. Take an action\nbecause there are 3 rooms", "act"),
        ("do nothing", "wait"),
        ("Do nothing 3 times: 1", "wait"),
        ("Plan: 2\nPlan: 2", "act"),
    ],
)
def test_a_choice(text: str, chosen: str) -> None:
    assert read_choice(text, PLANS, label="Plan") == chosen


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4",
        "0",
        "Plan: 1 or 2",
        "Plan: 1\nPlan: 2",
        "Plan: 1. Do nothing",
        "Plan: not 1",
        "I would rather not do 1.",
        "1\n2",
        "Thought: 1. Send a message would be best",
        "Plan:",
        "12",
    ],
)
def test_no_single_clear_choice_is_none(text: str) -> None:
    with pytest.raises(InvalidInput, match="choose exactly one"):
        read_choice(text, PLANS, label="Plan")


@given(st.text())
def test_no_text_breaks_reading_a_choice(text: str) -> None:
    try:
        assert read_choice(text, PLANS, label="Plan") in PLANS
    except InvalidInput:
        pass


# --- when a model is asked at all ----------------------------------------------------------------


class Policy:
    """Says a word, and counts how often it was asked."""

    def __init__(self, asking: ModelConversation, *, readable: bool = True) -> None:
        self._asking = asking
        self._readable = readable
        self.asked = 0

    async def decide(self, view: View) -> Decision:
        self.asked += 1
        if self._readable:
            return Decision((Say("Hello"),))
        await self._asking.ask("count", compose, number)
        return NOTHING


def a_view(*facts: object, pending: Decision | None = None) -> View:
    opened = SessionOpened(task="t", instance="1", participants=(), clock="virtual")
    view = View("agent", "agent")
    records = records_of(opened, *facts)  # type: ignore[arg-type]
    for record in records:
        view.feed(record)
    view.next_decision(tuple(records[1:]), pending, False)
    return view


PENDING = Decision((Say("Well"),), 3.0)
WAITS = by("human", TurnYielded(), actor="user")
CALLS = by("agent", ModelCalled(model="m", purpose="act", request=""), actor="agent")
SPEAKS = by("human", MessageSent(text="Stop!"), actor="user")
OWN = by("agent", MessageSent(text="Hm"), actor="agent")


@pytest.mark.parametrize(
    ("news", "asked"), [((WAITS, CALLS, OWN), 0), ((WAITS, SPEAKS), 1), ((), 0)]
)
async def test_a_pending_decision_stands_unless_something_concerns_it(
    news: tuple[object, ...], asked: int
) -> None:
    asking = conversation(Answers())
    policy = Policy(asking)
    decision = await ModelPolicy(policy, asking).decide(a_view(*news, pending=PENDING))
    assert policy.asked == asked
    assert decision == (Decision((Say("Hello"),)) if asked else PENDING)


async def test_nobody_is_asked_while_an_own_action_is_under_way() -> None:
    asking = conversation(Answers())
    policy = Policy(asking)
    view = a_view(by("agent", ActionTaken(name="search"), actor="agent"), SPEAKS)
    assert await ModelPolicy(policy, asking).decide(view) == NOTHING
    assert policy.asked == 0


async def test_giving_up_is_a_wait_that_says_why() -> None:
    asking = conversation(Answers("one", "two", "three", "four", "five", "six"))
    policy = ModelPolicy(Policy(asking, readable=False), asking)
    [wait] = (await policy.decide(a_view(SPEAKS))).verbs
    assert isinstance(wait, Wait)
    assert wait.reason == "no reply of m could be used in 3 tries: that is no number"
    again = await policy.decide(a_view(SPEAKS))
    assert again.verbs == (wait,)
