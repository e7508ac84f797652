"""Events of a span that hold its messages, as earlier semantic conventions have them: as attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ....engine.events import JSON
from .values import value_of

__all__ = ("with_messages",)

_MESSAGE: Final = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_CHOICE: Final = "gen_ai.choice"
_WHOLE: Final[Mapping[str, str]] = {
    "gen_ai.content.prompt": "gen_ai.prompt",
    "gen_ai.content.completion": "gen_ai.completion",
}
_DETAILS: Final = "gen_ai.client.inference.operation.details"
_BODIES: Final = ("gen_ai.event.content", "event.body", "body")


def with_messages(
    attributes: Mapping[str, JSON], events: Iterable[tuple[str, Mapping[str, JSON]]]
) -> Mapping[str, JSON]:
    """The attributes of a span, and the messages that stand in its events and not in them.

    Args:
        attributes: of the span, by their dotted names.
        events: of the span, in order: name and attributes.
    """
    more: dict[str, JSON] = {}
    heard: list[JSON] = []
    said: list[JSON] = []
    for name, held in events:
        found = _MESSAGE.fullmatch(name)
        if name == _DETAILS:
            more.update(held)
        elif name in _WHOLE:
            more[_WHOLE[name]] = held.get(_WHOLE[name])
        elif name == _CHOICE:
            body = _body(held)
            message = value_of(body.get("message"))
            said.append(
                {"role": "assistant", **(message if isinstance(message, Mapping) else body)}
            )
        elif found is not None:
            heard.append({"role": found[1], **_body(held)})
    if heard:
        more["gen_ai.input.messages"] = heard
    if said:
        more["gen_ai.output.messages"] = said
    return {**more, **attributes} if more else attributes


def _body(held: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The message in an event: in its attributes, or in one of them."""
    for key in _BODIES:
        body = value_of(held.get(key))
        if isinstance(body, Mapping):
            held = body
            break
    body = {key: value_of(value) if key == "tool_calls" else value for key, value in held.items()}
    if "id" in body and "tool_call_id" not in body and body.get("role", "tool") == "tool":
        body["tool_call_id"] = body["id"]
    return body
