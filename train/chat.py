"""Chat completions: reads a model's message, and writes what it is answered. For adapters of training frameworks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..engine.models.protocol import ToolCall
from .episode import Episode
from .seat import ChatMessage

__all__ = ("calls_in", "carry_out", "written")


def calls_in(message: Mapping[str, object]) -> tuple[ToolCall, ...]:
    """The tool calls in a model's message. One that is malformed becomes a call that an episode answers as invalid."""
    found = message.get("tool_calls")
    if not isinstance(found, Sequence) or isinstance(found, str):
        return ()
    calls = []
    for number, one in enumerate(found):
        call = one if isinstance(one, Mapping) else {}
        function = call.get("function")
        named = function if isinstance(function, Mapping) else {}
        given = named.get("arguments")
        calls.append(
            ToolCall(
                id=str(call.get("id") or number),
                name=str(named.get("name") or ""),
                arguments=given if isinstance(given, str) else _json(given),
            )
        )
    return tuple(calls)


def _json(arguments: object) -> str:
    """Arguments that came as an object, as some servers send them."""
    return msgspec.json.encode({} if arguments is None else arguments).decode()


def written(message: ChatMessage) -> dict[str, object]:
    """A message of an episode as chat completions have it."""
    said: dict[str, object] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        said["tool_call_id"] = message.tool_call_id
    return said


async def carry_out(episode: Episode, message: Mapping[str, object]) -> list[dict[str, object]]:
    """Carries out the tool calls in a model's message; gives the messages that follow it in the chat.

    Args:
        episode: in which the model plays the agent.
        message: an assistant's message of chat completions.

    Raises:
        SessionClosedError: the episode is over.
    """
    seen = await episode.step(calls_in(message))
    return [written(one) for one in seen.messages if one.author != "agent"]
