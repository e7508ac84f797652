"""The mind of an agent on a model: its prompts, its possible acts, and the reading of its replies.

It works for any task: a ``Brief`` describes the task, and specs describe its actions. See ``kinds``
for the order of the prompts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import final

import msgspec

from ..engine import codec
from ..engine.errors import InvalidInput
from ..engine.events import NoteTaken
from ..engine.models.prompting.actions import (
    ActionSpace,
    OfferedAction,
    finish_action,
    message_action,
    note_action,
    task_actions,
    wait_action,
)
from ..engine.models.prompting.conversation import (
    RECONSIDER,
    ModelConversation,
    UnreadableReply,
    read_choice,
    reply_text,
)
from ..engine.models.prompting.prompt_context import CHARACTERS_PER_TOKEN, situation, teammates
from ..engine.models.prompting.prompts import load_prompts
from ..engine.models.protocol import Message, ModelReply
from ..engine.rounds import is_act
from ..engine.session.decisions import NOTHING, Decision, Say, Verb, Wait
from ..engine.session.view import View
from ..engine.task import Brief, output_action
from .habits import HABITS, USUAL, Habits
from .mind import Intent

__all__ = ("ModelMind", "agent_messages", "habit_lines", "only_notes", "prompt_digest")

_PROMPTS = load_prompts(__package__)

_PLANS: Mapping[Intent, str] = {
    "message": "Send a message",
    "act": "Take an action",
    "wait": "Do nothing",
}
_NOTES = 3  # notes in a row after which something has to be done before the next
_ESTIMATE = re.compile(
    r"^[ \t]*[*_#]*estimate[*_]*[ \t]*:[*_ \t]*(\d{1,3})\b", re.IGNORECASE | re.MULTILINE
)
_MESSAGE = re.compile(r"^[ \t]*[*_#]*message[*_]*[ \t]*:[*_]*", re.IGNORECASE | re.MULTILINE)


def prompt_digest(brief: Brief, habits: Habits = USUAL) -> str:
    """The digest of all that agents on models are shown, except what changes as they work."""
    return codec.digest([_PROMPTS.digest, RECONSIDER, brief.prompts, habits])


def habit_lines(habits: Habits = USUAL) -> str:
    """The lines in a model's prompt about its habits, one for each."""
    return "\n".join(_PROMPTS.fill(f"habit_{one}") for one in HABITS if getattr(habits, one))


@final
class ModelMind:
    """Decides for one agent in one session by asking a model.

    Args:
        conversation: the conversation with the model.
        brief: describes the task.
        habits: its habits of working with others.
        speaks: whether a reply without a tool call is a message, instead of a mistake; for agents that
            are made for conversation.
    """

    def __init__(
        self,
        conversation: ModelConversation,
        brief: Brief,
        habits: Habits = USUAL,
        *,
        speaks: bool = False,
    ) -> None:
        self._conversation = conversation
        self._speaks = speaks
        self._brief = brief
        self._habits = habit_lines(habits)
        self._estimate: float | None = None

    async def step(self, view: View, *, alone: bool) -> Decision:
        """The next action; with teammates, that may be a message or waiting."""
        actions = self._work(view)
        if not alone:
            actions = (message_action(teammates(view)), wait_action(), *actions)
        return await self._act(view, actions, alone=alone)

    async def plan(self, view: View) -> Intent:
        """Whether to message, act or wait; waits if the model's replies cannot be read."""

        def read(reply: ModelReply) -> Intent:
            text = reply_text(reply)
            intent = read_choice(text, _PLANS, label="Plan")
            self._estimate = _read_estimate(text)
            return intent

        found = await self._conversation.ask(
            "plan", self._messages(view, _PROMPTS.fill("plan"), alone=False), read
        )
        return "wait" if isinstance(found, UnreadableReply) else found

    def estimate(self, view: View) -> float | None:
        """The estimate that the model gave with its last plan; None if it gave none."""
        return self._estimate

    async def message(self, view: View, *, questions: int = 1) -> Decision:
        """Composes a message; sends none if the model's replies cannot be read."""
        prompt = _PROMPTS.fill("message", team=teammates(view))
        if questions > 1:
            prompt = f"{_PROMPTS.fill('questions', questions=str(questions)).rstrip()}\n\n{prompt}"
        return await self._compose(view, prompt)

    async def ask(self, view: View, *, questions: int = 1) -> Decision | None:
        """None: a model asks in its messages."""
        return None

    async def report(self, view: View, *, final: bool) -> Decision:
        """Composes a report; sends none if the model's replies cannot be read."""
        prompt = _PROMPTS.fill("hand_over" if final else "report", team=teammates(view))
        return await self._compose(view, prompt)

    async def _compose(self, view: View, prompt: str) -> Decision:
        found = await self._conversation.ask(
            "message", self._messages(view, prompt, alone=False), _read_message
        )
        return NOTHING if isinstance(found, UnreadableReply) else Decision((Say(found),))

    async def act(self, view: View) -> Decision:
        """The next task action, or a note, or the end."""
        return await self._act(view, self._work(view), alone=False)

    async def _act(self, view: View, actions: Iterable[OfferedAction], *, alone: bool) -> Decision:
        """The model's choice among its possible acts."""
        space = ActionSpace(actions)
        if self._conversation.use.text_actions:
            prompt = _PROMPTS.fill("act_text", actions_available=space.description)
        elif self._speaks:
            prompt = _PROMPTS.fill("act_or_speak", team=teammates(view))
        else:
            prompt = _PROMPTS.fill("act_tools")

        def read(reply: ModelReply) -> tuple[Verb, ...]:
            if self._conversation.use.text_actions:
                return space.read_text(reply_text(reply))
            if self._speaks and not reply.tool_calls:
                return (Say(reply_text(reply)), Wait())
            return space.read_calls(reply.tool_calls)

        found = await self._conversation.ask(
            "act",
            self._messages(view, prompt, alone=alone),
            read,
            tools=() if self._conversation.use.text_actions else space.tools,
        )
        return NOTHING if isinstance(found, UnreadableReply) else Decision(found)

    def _work(self, view: View) -> tuple[OfferedAction, ...]:
        """The acts that every agent may take."""
        notes = () if only_notes(view) else (note_action(),)
        output = output_action(self._brief)
        return (*task_actions(view.actions_available), output, *notes, finish_action())

    def _messages(
        self, view: View, prompt: str, *, alone: bool
    ) -> Callable[[int], tuple[Message, ...]]:
        return partial(agent_messages, self._brief, self._habits, view, prompt, alone=alone)


def agent_messages(
    brief: Brief, habits: str, view: View, prompt: str, tokens: int, *, alone: bool = False
) -> tuple[Message, ...]:
    """The prompt for an agent's model, within about the given number of tokens.

    Args:
        brief: describes the task.
        habits: the lines about its habits.
        view: its view.
        prompt: the request to the model.
        tokens: the budget.
        alone: it works without teammates.
    """
    system = _PROMPTS.fill(
        "alone" if alone else "together",
        me=view.me,
        team=teammates(view),
        habits=habits,
        description=brief.description,
        form=brief.output,
    )
    fixed = (len(system) + len(prompt)) // CHARACTERS_PER_TOKEN
    now = _PROMPTS.fill(
        "situation_alone" if alone else "situation",
        **msgspec.structs.asdict(situation(view, max(tokens - fixed, 0))),
    )
    return (
        Message(role="system", content=system),
        Message(role="user", content=f"{now.rstrip()}\n\n{prompt}"),
    )


def only_notes(view: View) -> bool:
    """Whether the agent has lately done nothing but take notes, which no limit would end."""
    notes = 0
    for record in reversed(view.records):
        if record.actor != view.me:
            continue
        if isinstance(record.event, NoteTaken):
            notes += 1
        elif is_act(record):
            break
    return notes >= _NOTES


def _read_estimate(text: str) -> float | None:
    """The number behind ``Estimate:``, as a share of 100; None if there is none."""
    found = _ESTIMATE.search(text)
    return None if found is None else min(int(found[1]), 100) / 100


def _read_message(reply: ModelReply) -> str:
    """The text behind ``Message:``.

    Raises:
        InvalidInput: there is no such line, or nothing behind it.
    """
    text = reply_text(reply)
    found = _MESSAGE.search(text)
    if found is None:
        raise InvalidInput('no line begins with "Message:"')
    message = text[found.end() :].strip()
    if not message:
        raise InvalidInput('nothing follows "Message:"')
    return message
