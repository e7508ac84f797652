"""Asking models: requests and replies, clients that answer, and the layer that calls them.

A *client* makes one attempt: ``LiteLLMModel``, ``ScriptedModel``, ``RecordedModel``. The sessions
of an experiment share one ``Models``: limits, budget, cache. ``model_actor`` connects an actor's
policy to it, and ``ScorerCaller`` a scorer; both provide a ``Caller``.
"""

from __future__ import annotations

from .calls.actor_caller import ActorCaller, model_actor
from .calls.scorer_caller import ScorerCaller
from .clients import RecordedModel, ScriptedModel
from .gateway import Models, ModelStatistics, Terms
from .litellm.client import LiteLLMModel
from .protocol import (
    Asker,
    Caller,
    Message,
    ModelClient,
    ModelReply,
    ModelRequest,
    Tool,
    ToolCall,
    request_digest,
)
from .traffic.budget import Budget, Spending, spending
from .traffic.cache import ResponseCache
from .traffic.circuit_breaker import Breaker
from .traffic.rate_limit import Rates
from .traffic.retry import Retry

__all__ = (
    "ActorCaller",
    "Asker",
    "Breaker",
    "Budget",
    "Caller",
    "LiteLLMModel",
    "Message",
    "ModelClient",
    "ModelReply",
    "ModelRequest",
    "ModelStatistics",
    "Models",
    "Rates",
    "RecordedModel",
    "ResponseCache",
    "Retry",
    "ScorerCaller",
    "ScriptedModel",
    "Spending",
    "Terms",
    "Tool",
    "ToolCall",
    "model_actor",
    "request_digest",
    "spending",
)
