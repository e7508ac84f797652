"""Builds the turns of an ``exec:`` agent, and converts its replies to decisions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON
from ...engine.models.prompting.actions import (
    ActionSpace,
    OfferedAction,
    approve_action,
    finish_action,
    message_action,
    note_action,
    submit_action,
    task_actions,
    wait_action,
)
from ...engine.models.prompting.conversation import ModelConversation, UnreadableReply
from ...engine.models.prompting.prompt_context import teammates
from ...engine.models.protocol import Message, ModelReply
from ...engine.session.decisions import NOTHING, Ask, Decision, Verb, Wait
from ...engine.session.environment import ActionSpec
from ...engine.session.view import View
from ...engine.task import Brief
from ..model_mind import only_notes
from .lines import PROTOCOL, news_of, read_reply

__all__ = ("LinePolicy", "offered", "offering")


@final
class LinePolicy:
    """Decides for one agent by asking its program, turn by turn.

    Args:
        conversation: the conversation with the program.
        brief: describes the task.
    """

    def __init__(self, conversation: ModelConversation, brief: Brief) -> None:
        self._conversation = conversation
        self._brief = brief
        self._turn = 0
        self._seen = 0

    async def decide(self, view: View) -> Decision:
        """The next decision; an empty one if no reply of the program could be used."""
        space = ActionSpace(offered(view, self._brief))
        self._turn += 1
        since, self._seen = self._seen, view.version
        content = msgspec.json.encode(self._shown(view, space, since)).decode()

        def read(reply: ModelReply) -> tuple[Verb, ...]:
            if reply.text:
                read_reply(reply.text)
                raise InvalidInput("it cannot be read")
            return space.read_calls(reply.tool_calls) if reply.tool_calls else (Wait(),)

        found = await self._conversation.ask(
            "act", lambda _: (Message(role="user", content=content),), read
        )
        if isinstance(found, UnreadableReply):
            return NOTHING
        return Decision(found)

    def _shown(self, view: View, space: ActionSpace, since: int) -> Mapping[str, JSON]:
        """One turn: all that the program is shown."""
        brief, output = self._brief, view.snapshot
        return {
            "protocol": PROTOCOL,
            "turn": self._turn,
            "since": since,
            "me": view.me,
            "participants": [{"name": one.name, "role": one.role} for one in view.participants],
            "now": view.now,
            "task": {
                "description": brief.description,
                "output": brief.output,
                "media_type": brief.media_type,
                "schema": dict(brief.schema),
            },
            "request": view.request,
            "output": None
            if output is None
            else {"version": output.version, "actor": output.actor, "content": output.content},
            "news": news_of(view, since, view.version),
            "actions": [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                }
                for tool in space.tools
            ],
        }


def offering(view: View) -> Hashable:
    """A key for ``offered``: with the same key and brief, it offers the same."""
    asked = view.open_approvals
    available = tuple(view.actions_available)
    return asked[0].version if asked else None, only_notes(view), view.participants, available


def offered(view: View, brief: Brief) -> list[OfferedAction]:
    """All that an external agent may do: what every agent may, the task's actions, approvals."""
    asked = [approve_action(view.open_approvals[0].version)] if view.open_approvals else []
    return [
        message_action(teammates(view)),
        wait_action(),
        *task_actions(view.actions_available),
        submit_action(brief.schema, brief.media_type),
        _ask_action(teammates(view)),
        *asked,
        *(() if only_notes(view) else (note_action(),)),
        finish_action(),
    ]


def _ask_action(teammates: str) -> OfferedAction:
    text: JSON = {"type": "string", "minLength": 1, "description": "What you would do, and why."}
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {"question": text},
        "required": ["question"],
        "additionalProperties": False,
    }
    return OfferedAction(
        ActionSpec(
            name="ask",
            description=f"Ask {teammates} for leave to do something.",
            parameters=parameters,
        ),
        lambda given: Ask(str(given["question"])),
    )
