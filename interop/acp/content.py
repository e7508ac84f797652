"""Fields of messages, and texts out of their content blocks; whatever type they turn out to have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...engine.events import JSON

__all__ = ("Prompt", "items_at", "mapping_at", "prompt_of", "text_at", "text_of_block")


class Prompt(NamedTuple):
    """A prompt.

    Attributes:
        text: the text that a person typed, and the names of attachments.
        context: the texts that are attached, each with its address.
    """

    text: str
    context: tuple[str, ...]


def text_at(of: JSON, name: str) -> str:
    """The text under a name; empty if there is none."""
    value = of.get(name) if isinstance(of, Mapping) else None
    return value if isinstance(value, str) else ""


def mapping_at(of: JSON, name: str) -> Mapping[str, JSON]:
    """The object under a name; empty if there is none."""
    value = of.get(name) if isinstance(of, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items_at(of: JSON, name: str) -> Sequence[JSON]:
    """The list under a name; empty if there is none."""
    value = of.get(name) if isinstance(of, Mapping) else None
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def prompt_of(blocks: Sequence[JSON]) -> Prompt:
    """A prompt, out of its content blocks."""
    pieces: list[str] = []
    context: list[str] = []
    for block in blocks:
        pieces.append(text_of_block(block))
        resource = mapping_at(block, "resource")
        if text := text_at(resource, "text"):
            context.append(f"{text_at(resource, 'uri')}\n{text}")
    return Prompt("".join(pieces), tuple(context))


def text_of_block(block: JSON) -> str:
    """The readable form of a content block: its text, else the name of the attachment."""
    kind = text_at(block, "type")
    if kind == "text":
        return text_at(block, "text")
    if kind == "resource_link":
        return f"[{text_at(block, 'uri') or text_at(block, 'name')}]"
    if kind == "resource":
        return f"[{text_at(mapping_at(block, 'resource'), 'uri')}]"
    if kind in ("image", "audio"):
        return f"[{kind} {text_at(block, 'mimeType')}]".replace(" ]", "]")
    return ""
