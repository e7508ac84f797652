"""Reads a response of LiteLLM; parts that are missing stay unset."""

from __future__ import annotations

from ...errors import ModelBadReply
from ...events import Tokens
from ..protocol import ModelReply, ToolCall

__all__ = ("reply_of", "tokens_of")


def reply_of(response: object, model: str, latency: float, *, counted: bool) -> ModelReply:
    """A response as a reply.

    Args:
        response: LiteLLM's.
        model: as it was asked for.
        latency: seconds that it took.
        counted: whether the provider counted tokens; else its numbers are a guess.

    Raises:
        ModelBadReply: it is not a completion.
    """
    choices = getattr(response, "choices", None)
    if not choices:
        raise ModelBadReply(f"{model!r}: the response lacks choices")
    message = choices[0].message
    usage = getattr(response, "usage", None)
    # LiteLLM reports zeros if the provider did not count; every prompt has at least one token.
    counted = counted and bool(_count(usage, "prompt_tokens"))
    hidden = getattr(response, "_hidden_params", None) or {}
    cost = hidden.get("response_cost") if counted else None
    answered = getattr(response, "model", None)
    return ModelReply(
        text=_text(message.content),
        tool_calls=tuple(
            ToolCall(
                id=_text(call.id),
                name=_text(call.function.name),
                arguments=_text(call.function.arguments),
            )
            for call in message.tool_calls or ()
        ),
        finish=choices[0].finish_reason,
        tokens=tokens_of(usage if counted else None),
        cost=None if cost is None else float(cost),
        latency=latency,
        model=None if answered is None else str(answered),
    )


def _text(value: object) -> str:
    """Text in a form that a log can store: lone surrogates, for example, are escaped."""
    return "" if value is None else str(value).encode("utf-8", "backslashreplace").decode()


def tokens_of(usage: object) -> Tokens:
    """The tokens in a response's ``usage``, by class."""
    return Tokens(
        prompt=_count(usage, "prompt_tokens"),
        completion=_count(usage, "completion_tokens"),
        cached=_count(getattr(usage, "prompt_tokens_details", None), "cached_tokens"),
        reasoning=_count(getattr(usage, "completion_tokens_details", None), "reasoning_tokens"),
    )


def _count(counts: object, name: str) -> int | None:
    value = getattr(counts, name, None)
    return value if isinstance(value, int) else None
