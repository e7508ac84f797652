"""Model calls as events: how a reply or a failure is recorded, and read again."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ... import errors
from ...errors import CodecError, ModelError
from ...events import JSON, Tokens
from ..protocol import ModelReply, ToolCall

__all__ = ("failure_text", "recorded_failure", "recorded_reply", "reply_json")

_KINDS: Mapping[str, type[ModelError]] = {
    kind.__name__: kind
    for kind in (
        errors.ModelBadReply,
        errors.ModelDenied,
        errors.ModelRateLimited,
        errors.ModelRefused,
        errors.ModelTimeout,
        errors.ModelUnavailable,
    )
}


class _ReplyBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parts of a reply for which ``ModelCalled`` lacks a field."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: str | None = None
    model: str | None = None
    from_cache: bool = False


def reply_json(reply: ModelReply) -> JSON:
    """The value of ``ModelCalled.reply``."""
    body = _ReplyBody(
        text=reply.text,
        tool_calls=reply.tool_calls,
        finish=reply.finish,
        model=reply.model,
        from_cache=reply.from_cache,
    )
    recorded: JSON = msgspec.to_builtins(body)
    return recorded


def recorded_reply(reply: JSON, tokens: Tokens, cost: float | None, latency: float) -> ModelReply:
    """The reply in the fields of a ``ModelCalled``.

    Raises:
        CodecError: it was not recorded by a caller.
    """
    try:
        body = msgspec.convert(reply, _ReplyBody)
    except msgspec.ValidationError as error:
        raise CodecError(f"a recorded reply does not read as one of a model: {error}") from error
    return ModelReply(
        text=body.text,
        tool_calls=body.tool_calls,
        finish=body.finish,
        tokens=tokens,
        cost=cost,
        latency=latency,
        model=body.model,
        from_cache=body.from_cache,
    )


def failure_text(error: ModelError) -> str:
    """The value of ``ModelCalled.error``: the kind of error, and its message."""
    return f"{type(error).__name__}: {errors.error_text(error)}"


def recorded_failure(text: str) -> ModelError:
    """The error in ``ModelCalled.error``; a plain ``ModelError`` if its kind is not Duolog's."""
    name, _, message = text.partition(": ")
    kind = _KINDS.get(name)
    return ModelError(text) if kind is None else kind(message)
