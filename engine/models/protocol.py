"""What is asked of a model and what comes back; who answers (clients), and who is asked (callers).

A *client* reaches models: one method, request in, reply out. A *caller* is what a mind or a judge
is given: it has the same shape, and behind it are retries, limits, budgets and the session's log.
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
        name: of the tool.
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
        tool_calls: what the assistant called in this message.
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
        description: what it does, for the model to read.
        parameters: JSON Schema of its arguments, an object.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, JSON] = {}


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
        tools: what it may call.
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
    """What a model answered.

    Attributes:
        text: what it said; empty where it only calls tools.
        tool_calls: what it wants called, in order, arguments as it wrote them.
        finish: why it stopped, in the provider's word: ``stop``, ``length``, ``tool_calls``,
            ``content_filter``; None where it does not say.
        tokens: as the provider counts them.
        cost: US dollars; None where the price is unknown, 0 where nothing was paid.
        latency: seconds that the call took on the wall; in a simulation a caller puts the modelled
            time in its place.
        model: who answered, in the provider's word, which may be more precise than the request.
        from_cache: the response cache answered.
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
    """What a client may have besides, where its first call has to get something ready."""

    async def prepare(self) -> None:
        """Gets ready, once; called before each call, and no part of the call's time."""
        ...


class Caller(Protocol):
    """What a mind or a judge asks models through; it belongs to one actor in one session.

    Every attempt is in the log before the reply is given, and a recorded reply is given again
    instead of asking twice. ``asker`` in the request need not be filled in.
    """

    async def ask(self, request: ModelRequest, *, purpose: str) -> ModelReply:
        """Asks a model, again where an attempt fails that may succeed later.

        Args:
            request: what to ask.
            purpose: what for, e.g. ``act``, ``plan``, ``rate``: recorded with the call.

        Raises:
            ModelRefused: this request will not be answered, however often it is made: it is too
                long, not valid, or against the provider's rules. A mind may ask for less.
            SessionInterrupted: the model cannot be reached, or the experiment's budget is used up.
                Leave it alone: the session stands in the log as it was, and can be resumed.
        """
        ...


def request_digest(request: ModelRequest) -> str:
    """The digest of all that is asked, whoever asks it."""
    return codec.digest(msgspec.structs.replace(request, asker=None))
