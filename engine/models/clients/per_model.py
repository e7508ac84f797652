"""Reaches each model through a separate client: some at a provider, some on your own server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from ..protocol import ModelClient, ModelReply, ModelRequest

__all__ = ("ClientPerModel",)


@final
class ClientPerModel:
    """A client made of clients.

    Args:
        clients: by the name of the model.
        otherwise: for all other models.
    """

    def __init__(self, clients: Mapping[str, ModelClient], otherwise: ModelClient) -> None:
        self._clients = dict(clients)
        self._otherwise = otherwise

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Asks once; see ``ModelClient``."""
        return await self._clients.get(request.model, self._otherwise).complete(request)
