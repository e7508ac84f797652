"""Layers between a caller and a provider: cache, budget, rates, retries, circuit breakers."""

from __future__ import annotations

__all__ = ()
