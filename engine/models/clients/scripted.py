"""A model that is a function: for tests, and to try things out without a provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import anyio.lowlevel

from ..protocol import ModelReply, ModelRequest

__all__ = ("ScriptedModel",)


@final
class ScriptedModel:
    """Answers as a function says.

    Args:
        answer: gives the reply, or just its text; what it raises is raised. (A ``ModelError`` counts
            as a call that failed.)
    """

    def __init__(self, answer: Callable[[ModelRequest], ModelReply | str]) -> None:
        self._answer = answer

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answers at once."""
        await anyio.lowlevel.checkpoint()
        reply = self._answer(request)
        return ModelReply(text=reply, finish="stop") if isinstance(reply, str) else reply
