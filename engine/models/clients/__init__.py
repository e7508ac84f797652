"""Clients that answer without a provider, and one that chooses a client by model."""

from __future__ import annotations

__all__ = ()
