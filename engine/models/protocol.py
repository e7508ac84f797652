"""Requests to models and their replies, and the protocols of clients and callers.

A *client* reaches models: one method, request in, reply out. A mind or a judge is given a *caller*:
it has the same shape, and adds retries, limits, budgets and the session's log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias, final, runtime_checkable

import msgspec

from .. import codec
from ..events import JSON, Tokens

__all__ = (
    "Asker",
    "Caller",
    "Message",
    "ModelClient",
    "ModelReply",
    "ModelRequest",
    "Preparing",
    "Tool",
    "ToolCall",
    "request_digest",
)

Speaker: TypeAlias = Literal["system", "user", "assistant", "tool"]


@final
class ToolCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that a model wants called.

    Attributes:
        id: the model's, to be repeated in the message that answers it.
        name: the name of the tool.
        arguments: as the model wrote them, which may be no valid JSON.
    """

    id: str
    name: str
    arguments: str = ""


@final
class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a request, as chat-completion interfaces have it.

    Attributes:
        role: whose it is.
        content: the text.
        tool_calls: the assistant's tool calls in this message.
        tool_call_id: which call a ``tool`` message answers.
        name: tells apart several who share a role.
    """

    role: Speaker
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None


@final
class Tool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that the model may call.

    Attributes:
        name: unique in the request.
        description: its purpose, for the model to read.
        parameters: JSON Schema of its arguments, an object.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, JSON] = {}

    @property
    def schema(self) -> dict[str, object]:
        """As chat completions have it."""
        parameters = self.parameters or {"type": "object", "properties": {}}
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": parameters,
            },
        }


@final
class Asker(msgspec.Struct, frozen=True):
    """Who asks: a session, and the actor or scorer in it."""

    session: str
    actor: str


@final
class ModelRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is asked of a model.

    Attributes:
        model: as LiteLLM names it, e.g. ``gpt-4o`` or ``anthropic/claude-sonnet-4-5``.
        messages: in order.
        tools: the tools that it may call.
        tool_choice: whether it may, must or must not call one; None for the provider's default.
        temperature: None for the provider's default.
        max_tokens: how much it may write; None for the provider's default.
        seed: for providers that can repeat themselves.
        stop: texts at which it stops.
        options: whatever else the client passes on as it is, e.g. ``reasoning_effort``. Never a
            key or a password: requests are kept in the response cache.
        asker: who asks; filled in by the caller, sent nowhere, and no part of the digest.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: Literal["auto", "required", "none"] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    options: Mapping[str, JSON] = {}
    asker: Asker | None = None


@final
class ModelReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model's reply.

    Attributes:
        text: the text of the reply; empty if the model only calls tools.
        tool_calls: the tool calls in order, with their arguments as the model wrote them.
        finish: why the model stopped, in the provider's word: ``stop``, ``length``,
            ``tool_calls``, ``content_filter``; None if the provider does not say.
        tokens: as the provider counts them.
        cost: US dollars; None if the price is unknown, 0 if nothing was paid.
        latency: wall-clock seconds that the call took; in a simulation, a caller replaces them with
            the modelled time.
        model: the provider's name for the model, which may be more precise than the request's.
        from_cache: whether the response cache answered.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: str | None = None
    tokens: Tokens = Tokens()
    cost: float | None = None
    latency: float = 0.0
    model: str | None = None
    from_cache: bool = False


class ModelClient(Protocol):
    """Reaches models. It makes one attempt, and never retries by itself."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Asks the model once.

        Raises:
            ModelError: what went wrong, by kind.
        """
        ...


@runtime_checkable
class Preparing(Protocol):
    """An optional protocol of clients that must prepare something before the first call."""

    async def prepare(self) -> None:
        """Gets ready, once; runs before each call, and does not count towards the call's time."""
        ...


class Caller(Protocol):
    """Asks models for a mind or a judge; it belongs to one actor in one session.

    Every attempt is in the log before the reply is returned, and a recorded reply is reused instead
    of asking twice. ``asker`` in the request need not be filled in.
    """

    async def ask(self, request: ModelRequest, *, purpose: str) -> ModelReply:
        """Asks a model, and retries failures that may pass.

        Args:
            request: what to ask.
            purpose: recorded with the call, e.g. ``act``, ``plan``, ``rate``.

        Raises:
            ModelRefused: the provider rejects this request, and a retry will not help: it is too
                long, not valid, or against the provider's rules. A mind may ask for less.
            SessionInterrupted: the model cannot be reached, or the experiment's budget is used up.
                Do not catch it: the log keeps the session as it was, and it can be resumed.
        """
        ...


def request_digest(request: ModelRequest) -> str:
    """The digest of a request's content, whichever actor asks it."""
    return codec.digest(msgspec.structs.replace(request, asker=None))
