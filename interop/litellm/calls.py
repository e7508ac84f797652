"""Decodes the arguments that LiteLLM passes to its callbacks: the call as a ``ModelCalled``, and
its owner.

LiteLLM hands over one big dictionary per call. The caller's ``metadata`` in it names the session of
the call, and the actor who made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal, NamedTuple

from ...engine.codec import digest
from ...engine.errors import ModelBadReply, ModelError
from ...engine.events import JSON, ModelCalled, Role, Tokens
from ...engine.models.calls.call_records import failure_text, reply_json
from ...engine.models.litellm.errors import model_error
from ...engine.models.litellm.replies import reply_of, tokens_of
from ...telemetry.jsonable import plain

__all__ = (
    "ACTOR",
    "PURPOSE",
    "ROLE",
    "SESSION",
    "CallOwner",
    "call_id",
    "model_called",
    "owner_of",
)

SESSION: Final = "duolog_session"
"""Key in a call's metadata: the id of the session that it belongs to. Without it, a call is left
alone."""

ACTOR: Final = "duolog_actor"
"""Key in a call's metadata: its actor; ``agent`` by default."""

ROLE: Final = "duolog_role"
"""Key in a call's metadata: ``human`` if a simulated user made it."""

PURPOSE: Final = "duolog_purpose"
"""Key in a call's metadata: its purpose; ``act`` by default."""

_UNIMPORTANT: Final = frozenset(
    {"stream", "stream_options", "max_retries", "extra_body", "extra_headers", "timeout"}
)
"""Parameters that do not change the request's contents."""


class CallOwner(NamedTuple):
    """The owner of a call: session, actor, role and purpose."""

    session: str
    actor: str
    role: Role
    purpose: str


def owner_of(details: Mapping[str, object]) -> CallOwner | None:
    """The owner of a call; None if its metadata names none."""
    metadata = _metadata(details)
    session = metadata.get(SESSION)
    if not isinstance(session, str) or not session:
        return None
    role: Literal["human", "agent"] = "human" if metadata.get(ROLE) == "human" else "agent"
    actor, purpose = metadata.get(ACTOR), metadata.get(PURPOSE)
    return CallOwner(
        session,
        actor if isinstance(actor, str) and actor else role,
        role,
        purpose if isinstance(purpose, str) and purpose else "act",
    )


def call_id(details: Mapping[str, object]) -> str:
    """LiteLLM's id of a call; empty if there is none."""
    found = details.get("litellm_call_id")
    return found if isinstance(found, str) else ""


def model_called(
    details: Mapping[str, object], response: object, began: datetime, ended: datetime, attempt: int
) -> ModelCalled:
    """The event of a call that is over.

    Args:
        details: what LiteLLM passes to its callbacks.
        response: its response, whole if it was streamed; None if the call failed.
        began: when the call was made.
        ended: when the answer was there.
        attempt: which one, from 1, of those under the call's id.
    """
    model = _model(details)
    purpose = _metadata(details).get(PURPOSE)
    latency = max(0.0, (ended - began).total_seconds())
    error = details.get("exception")
    reply: JSON = None
    tokens, cost, failure = Tokens(), None, None
    if response is None or isinstance(error, BaseException):
        # What LiteLLM says of the cost of a call that failed may be that of the call before.
        said = error if isinstance(error, BaseException) else ModelBadReply("there is no response")
        failure = failure_text(
            said if isinstance(said, ModelError) else model_error(said, model, details)
        )
    else:
        reply, tokens = _answer(response, model, latency, counted=_counted(details, response))
        cost = _cost(details) if tokens.prompt is not None else None
    return ModelCalled(
        model=model,
        purpose=purpose if isinstance(purpose, str) and purpose else "act",
        request=_digest(details),
        reply=reply,
        tokens=tokens,
        latency=latency,
        cost=cost,
        error=failure,
        attempt=attempt,
    )


def _answer(response: object, model: str, latency: float, *, counted: bool) -> tuple[JSON, Tokens]:
    try:
        reply = reply_of(response, model, latency, counted=counted)
    except (ModelBadReply, AttributeError):  # of another kind: an embedding, an image, ...
        tokens = tokens_of(getattr(response, "usage", None))
        return None, tokens if tokens.prompt else Tokens()
    return reply_json(reply), reply.tokens


def _counted(details: Mapping[str, object], response: object) -> bool:
    """Whether the provider counted the tokens. If it does not count those of a stream, LiteLLM
    estimates them; then the response lacks the classes of the prompt's tokens.
    """
    options = details.get("stream_options")
    asked = isinstance(options, Mapping) and options.get("include_usage") is True
    usage = getattr(response, "usage", None)
    classes = getattr(usage, "prompt_tokens_details", None)
    return not details.get("stream") or asked or classes is not None


def _model(details: Mapping[str, object]) -> str:
    """The model with its provider before it, however it was asked for."""
    model, provider = str(details.get("model") or "unknown"), details.get("custom_llm_provider")
    if not isinstance(provider, str) or not provider or model.startswith(f"{provider}/"):
        return model
    return f"{provider}/{model}"


def _cost(details: Mapping[str, object]) -> float | None:
    cost = details.get("response_cost")
    return float(cost) if isinstance(cost, int | float) else None


def _digest(details: Mapping[str, object]) -> str:
    given = details.get("optional_params")
    parameters = given if isinstance(given, Mapping) else {}
    asked = {name: value for name, value in parameters.items() if name not in _UNIMPORTANT}
    request = {"model": _model(details), "messages": details.get("messages"), "parameters": asked}
    return digest(plain(request))


def _metadata(details: Mapping[str, object]) -> Mapping[str, object]:
    """The caller's ``metadata``."""
    parameters = details.get("litellm_params")
    if isinstance(parameters, Mapping):
        for name in ("metadata", "litellm_metadata"):
            metadata = parameters.get(name)
            if isinstance(metadata, Mapping) and SESSION in metadata:
                return metadata
    return {}
