"""The door to models: requests and replies, clients that answer, and the layer that calls them.

A *client* makes one attempt: ``LiteLLMModel``, ``ScriptedModel``, ``RecordedModel``. ``Models`` is
what the sessions of an experiment share: limits, budget, cache. ``calling`` connects an actor's
policy with it, ``ScorerCaller`` a scorer; what they give is a ``Caller``.
"""

from __future__ import annotations

from .actor_caller import DeskCaller, calling
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
from .recorded import RecordedModel
from .scorer_caller import ScorerCaller
from .scripted import ScriptedModel
from .traffic.budget import Budget, Spending, spending
from .traffic.cache import ResponseCache
from .traffic.circuit_breaker import Breaker
from .traffic.rate_limit import Rates
from .traffic.retry import Retry

__all__ = (
    "Asker",
    "Breaker",
    "Budget",
    "Caller",
    "DeskCaller",
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
    "calling",
    "request_digest",
    "spending",
)
