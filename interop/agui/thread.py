"""The messages of a thread as a front end holds them, for those who join later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from ...engine.events import JSON
from .names import AguiEvent

__all__ = ("Transcript", "is_parts", "without_nulls")

_MEDIA: Final = frozenset({"image", "audio", "video", "document"})


def without_nulls(event: Mapping[str, JSON]) -> AguiEvent:
    """An event without the fields that say nothing, which the protocol leaves out."""
    return {key: value for key, value in event.items() if value is not None}


def is_parts(content: JSON) -> bool:
    """Whether a content is a list of parts: of texts, and of media with their sources."""
    return isinstance(content, list) and all(
        isinstance(part, Mapping)
        and (
            (part.get("type") == "text" and isinstance(part.get("text"), str))
            or (part.get("type") in _MEDIA and isinstance(part.get("source"), Mapping))
        )
        for part in content
    )


@final
class Transcript:
    """The messages of a thread, by id."""

    def __init__(self) -> None:
        self._messages: dict[str, AguiEvent] = {}
        self._calls: dict[str, list[JSON]] = {}

    def messages(self) -> list[JSON]:
        """All of them, in order."""
        return [
            {**message, "toolCalls": list(calls)} if (calls := self._calls.get(ident)) else message
            for ident, message in self._messages.items()
        ]

    def say(
        self, ident: str, role: str, content: JSON, name: str | None, fields: AguiEvent
    ) -> None:
        """A message."""
        message: AguiEvent = {"id": ident, "role": role, "content": content, "name": name}
        self._messages[ident] = without_nulls(message) | fields

    def call(self, ident: str, tool: str, arguments: str, fields: AguiEvent) -> None:
        """A tool call, in the message that it belongs to, else in a separate one."""
        parent = fields.get("parentMessageId")
        holder = parent if isinstance(parent, str) else f"{ident}/message"
        if (
            self._messages.setdefault(holder, {"id": holder, "role": "assistant"})["role"]
            != "assistant"
        ):
            holder = f"{ident}/message"
            self._messages[holder] = {"id": holder, "role": "assistant"}
        function: AguiEvent = {"name": tool, "arguments": arguments}
        calls = self._calls.setdefault(holder, [])
        calls.append({"id": ident, "type": "function", "function": function})

    def result(self, ident: str, call: str, content: JSON, error: str | None) -> None:
        """The result of a tool."""
        message: AguiEvent = {"id": ident, "role": "tool", "toolCallId": call, "content": content}
        self._messages[ident] = message if error is None else {**message, "error": error}
