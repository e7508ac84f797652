"""What LiteLLM tells its callbacks about a call, as a ``ModelCalled`` and where it belongs.

LiteLLM hands over one big dictionary per call. The caller's ``metadata`` in it says which session
the call belongs to, and who in it made the call.
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

__all__ = ("ACTOR", "PURPOSE", "ROLE", "SESSION", "Place", "call_id", "called", "place_of")

SESSION: Final = "duolog_session"
"""Key in a call's metadata: the id of the session that it belongs to. Without it, a call is left
alone."""

ACTOR: Final = "duolog_actor"
"""Key in a call's metadata: who made it; ``agent`` by default."""

ROLE: Final = "duolog_role"
"""Key in a call's metadata: ``human`` where a simulated user made it."""

PURPOSE: Final = "duolog_purpose"
"""Key in a call's metadata: what it was made for; ``act`` by default."""

_UNIMPORTANT: Final = frozenset(
    {"stream", "stream_options", "max_retries", "extra_body", "extra_headers", "timeout"}
)
"""Parameters that change nothing in what is asked."""


class Place(NamedTuple):
    """Where a call belongs: session, actor and role, and what it was made for."""

    session: str
    actor: str
    role: Role
    purpose: str


def place_of(told: Mapping[str, object]) -> Place | None:
    """Where a call belongs; None where it does not say so."""
    metadata = _metadata(told)
    session = metadata.get(SESSION)
    if not isinstance(session, str) or not session:
        return None
    role: Literal["human", "agent"] = "human" if metadata.get(ROLE) == "human" else "agent"
    actor, purpose = metadata.get(ACTOR), metadata.get(PURPOSE)
    return Place(
        session,
        actor if isinstance(actor, str) and actor else role,
        role,
        purpose if isinstance(purpose, str) and purpose else "act",
    )


def call_id(told: Mapping[str, object]) -> str:
    """LiteLLM's id of a call; empty where there is none."""
    found = told.get("litellm_call_id")
    return found if isinstance(found, str) else ""


def called(
    told: Mapping[str, object], response: object, began: datetime, ended: datetime, attempt: int
) -> ModelCalled:
    """A call that is over as an event.

    Args:
        told: what LiteLLM tells.
        response: its response, whole where it was streamed; None where the call failed.
        began: when the call was made.
        ended: when the answer was there.
        attempt: which one, from 1, of those under the call's id.
    """
    model = _model(told)
    purpose = _metadata(told).get(PURPOSE)
    latency = max(0.0, (ended - began).total_seconds())
    error = told.get("exception")
    reply: JSON = None
    tokens, cost, failure = Tokens(), None, None
    if response is None or isinstance(error, BaseException):
        # What LiteLLM says of the cost of a call that failed may be that of the call before.
        said = error if isinstance(error, BaseException) else ModelBadReply("there is no response")
        failure = failure_text(said if isinstance(said, ModelError) else model_error(said, model))
    else:
        reply, tokens = _answer(response, model, latency)
        cost = _cost(told) if tokens.prompt is not None else None
    return ModelCalled(
        model=model,
        purpose=purpose if isinstance(purpose, str) and purpose else "act",
        request=_digest(told),
        reply=reply,
        tokens=tokens,
        latency=latency,
        cost=cost,
        error=failure,
        attempt=attempt,
    )


def _answer(response: object, model: str, latency: float) -> tuple[JSON, Tokens]:
    try:
        reply = reply_of(response, model, latency, counted=True)
    except (ModelBadReply, AttributeError):  # of another kind: an embedding, an image, ...
        tokens = tokens_of(getattr(response, "usage", None))
        return None, tokens if tokens.prompt else Tokens()
    return reply_json(reply), reply.tokens


def _model(told: Mapping[str, object]) -> str:
    """The model with its provider before it, however it was asked for."""
    model, provider = str(told.get("model") or "unknown"), told.get("custom_llm_provider")
    if not isinstance(provider, str) or not provider or model.startswith(f"{provider}/"):
        return model
    return f"{provider}/{model}"


def _cost(told: Mapping[str, object]) -> float | None:
    cost = told.get("response_cost")
    return float(cost) if isinstance(cost, int | float) else None


def _digest(told: Mapping[str, object]) -> str:
    given = told.get("optional_params")
    parameters = given if isinstance(given, Mapping) else {}
    asked = {name: value for name, value in parameters.items() if name not in _UNIMPORTANT}
    request = {"model": _model(told), "messages": told.get("messages"), "parameters": asked}
    return digest(plain(request))


def _metadata(told: Mapping[str, object]) -> Mapping[str, object]:
    """What the caller passed as ``metadata``."""
    parameters = told.get("litellm_params")
    if isinstance(parameters, Mapping):
        for name in ("metadata", "litellm_metadata"):
            metadata = parameters.get(name)
            if isinstance(metadata, Mapping) and SESSION in metadata:
                return metadata
    return {}
