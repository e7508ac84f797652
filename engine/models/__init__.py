"""The door to models: requests and replies, clients that answer, and the layer that calls them.

A *client* makes one attempt: ``LiteLLMModel``, ``ScriptedModel``, ``RecordedModel``. ``Models`` is
what the sessions of an experiment share: limits, budget, cache. ``calling`` connects an actor's
policy with it, ``ScorerCaller`` a scorer; what they give is a ``Caller``.
"""

from __future__ import annotations

from .budget import Budget, Spending, spending
from .cache import ResponseCache
from .caller import DeskCaller, calling
from .circuit import Breaker
from .judging import ScorerCaller
from .lite import LiteLLMModel
from .models import Models, ModelStatistics, Terms
from .rates import Rates
from .recorded import RecordedModel
from .retry import Retry
from .scripted import ScriptedModel
from .types import (
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
