"""Converts a plan that the parser cannot read, by asking a model for it in the parser's form."""

from __future__ import annotations

from typing import final

from ...engine.errors import InvalidInput, ModelRefused
from ...engine.models.prompting.conversation import ModelConversation, UnreadableReply, reply_text
from ...engine.models.protocol import Message, ModelReply
from .briefing import PROMPTS, TRAVEL_BRIEF
from .plan.plan import Plan
from .plan.text import parse_plan

__all__ = ("ModelConverter",)


@final
class ModelConverter:
    """Converts plans by asking a model; a ``PlanConverter``.

    Args:
        conversation: what the model is asked through.
    """

    def __init__(self, conversation: ModelConversation) -> None:
        self._conversation = conversation

    async def __call__(self, text: str) -> Plan:
        """Convert.

        Raises:
            InvalidInput: the model finds no plan in the text, or its replies cannot be read.
        """
        prompt = PROMPTS.fill("convert", form=TRAVEL_BRIEF.output, text=text)
        try:
            found = await self._conversation.ask(
                "convert the plan", lambda tokens: (Message(role="user", content=prompt),), _read
            )
        except ModelRefused as error:
            raise InvalidInput(f"the plan could not be converted: {error}") from error
        if isinstance(found, UnreadableReply):
            raise InvalidInput(f"the plan could not be converted: {found.why}")
        if not found:
            raise InvalidInput(f"{self._conversation.use.model} finds no plan in this text")
        return found


def _read(reply: ModelReply) -> Plan:
    """The plan in a reply; an empty one if the model says that there is none."""
    text = reply_text(reply)
    return () if text.strip(" .`*\"'").lower() == "no plan" else parse_plan(text)
