"""Fields of messages, and texts out of their content blocks; whatever type they turn out to have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...engine.events import JSON
from ..json_parts import mapping_at, text_at

__all__ = ("Prompt", "prompt_of", "text_of_block")


class Prompt(NamedTuple):
    """A prompt.

    Attributes:
        text: the text that a person typed, and the names of attachments.
        context: the texts that are attached, each with its address.
    """

    text: str
    context: tuple[str, ...]


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
