"""Steps, out of the content blocks of Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...engine.errors import InvalidInput
from ...engine.events import JSON, Tokens
from ..json_parts import text_at
from .conversation.numbers import count_of
from .conversation.steps import (
    AGENT,
    HUMAN,
    Omission,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)

__all__ = (
    "blocks_of",
    "has_own_blocks",
    "is_result",
    "plain_text",
    "result_of",
    "spoken",
    "steps_of_blocks",
    "tokens_of",
    "typed",
)

_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_RESULT: Final = "tool_result"
_OWN: Final = _CALLS | {_RESULT, "thinking", "redacted_thinking"}
"""Blocks that no other interface has."""


def blocks_of(content: JSON) -> list[Mapping[str, JSON]]:
    """The blocks of a content; a text is one block.

    Raises:
        InvalidInput: it is neither a text nor a list of blocks.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, Sequence):
        raise InvalidInput("its content is neither a text nor a list of blocks")
    found: list[Mapping[str, JSON]] = []
    for number, block in enumerate(content, start=1):
        if isinstance(block, dict) and isinstance(block.get("type"), str):
            found.append(block)
        elif isinstance(block, str):
            found.append({"type": "text", "text": block})
        else:
            raise InvalidInput(f"block {number} of its content lacks a type")
    return found


def has_own_blocks(content: JSON) -> bool:
    """Whether a content has blocks that only Anthropic's messages have."""
    if isinstance(content, str) or not isinstance(content, Sequence):
        return False
    kinds = [block.get("type") for block in content if isinstance(block, Mapping)]
    return any(isinstance(kind, str) and (kind in _OWN or is_result(kind)) for kind in kinds)


def is_result(kind: object) -> bool:
    """Whether a block of this type is the result of a call, of a tool that the provider ran too."""
    return isinstance(kind, str) and kind.endswith(_RESULT)


def steps_of_blocks(role: str, name: str | None, content: JSON) -> Iterator[Step]:
    """The steps of a whole message.

    Args:
        role: ``user`` or ``assistant``.
        name: of who sent it; None if the role is all that is known.
        content: its blocks.

    Raises:
        InvalidInput: it is neither a text nor a list of blocks.
    """
    blocks = blocks_of(content)
    if role == AGENT:
        for block in blocks:
            if (step := spoken(block, name)) is not None:
                yield step
        return
    yield from (result_of(block) for block in blocks if is_result(block["type"]))
    own = [block for block in blocks if not is_result(block["type"])]
    texts = [str(block.get("text") or "") for block in own if block["type"] == "text"]
    others = [str(block["type"]) for block in own if block["type"] != "text"]
    yield from typed(texts, others)


def spoken(block: Mapping[str, JSON], name: str | None = None) -> Step | None:
    """The step of one block of an agent; None for a text that is blank.

    Args:
        block: a block of the content.
        name: the name of the agent; None for the main one.
    """
    kind = str(block["type"])
    if kind == "text":
        text = text_at(block, "text")
        return Utterance(AGENT, name, text) if text and not text.isspace() else None
    if kind in _CALLS:
        arguments = block.get("input")
        if isinstance(arguments, dict):
            given, raw = arguments, None
        else:
            given, raw = {}, None if arguments is None else str(arguments)
        return ToolCall(
            AGENT, name, text_at(block, "id"), text_at(block, "name") or "tool", given, raw
        )
    if kind == "thinking":
        thought = text_at(block, "thinking")
        return Reasoning(thought, name) if thought.strip() else None
    if is_result(kind):
        return result_of(block)
    return Omission(f"a block of type {kind}")


def result_of(block: Mapping[str, JSON]) -> ToolResult:
    """The outcome of a call, as a block of the next message, or of the same one if the provider
    ran the tool itself.
    """
    content = block.get("content")
    output: JSON = content if isinstance(content, (str, dict)) else plain_text(content)
    failed = block.get("is_error") is True
    if isinstance(content, dict) and str(content.get("type", "")).endswith("_error"):
        failed = True
    error = None
    if failed:
        error = output if isinstance(output, str) and output else "it failed"
    return ToolResult(text_at(block, "tool_use_id"), output, error)


def typed(texts: Sequence[str], others: Sequence[str] = ()) -> Iterator[Step]:
    """A person's text as one message, however many blocks it came in.

    Args:
        texts: the texts of its blocks.
        others: types of its blocks that are not text, such as ``image``; a mark replaces each.
    """
    parts = [text for text in texts if text.strip()]
    parts += [f"[{kind}]" for kind in others]
    if parts:
        yield Utterance(HUMAN, None, "\n".join(parts))
    for kind in dict.fromkeys(others):
        yield Omission(f"content of type {kind}, for which a mark stands in the text")


def plain_text(content: JSON) -> str:
    """The text of the blocks of a result; a mark such as ``[image]`` replaces any other block."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    texts: list[str] = []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, Mapping):
            kind = block.get("type")
            texts.append(text_at(block, "text") if kind == "text" else f"[{kind or 'block'}]")
    return "\n".join(texts)


def tokens_of(usage: JSON) -> Tokens | None:
    """Tokens as the provider counts them: cached tokens are separate from the prompt's, and are
    left out if there are none.
    """
    if not isinstance(usage, dict):
        return None
    prompt = count_of(usage.get("input_tokens"))
    completion = count_of(usage.get("output_tokens"))
    if prompt is None and completion is None:
        return None
    return Tokens(
        prompt=prompt,
        completion=completion,
        cached=count_of(usage.get("cache_read_input_tokens")) or 0,
        cache_creation=count_of(usage.get("cache_creation_input_tokens")) or 0,
    )
