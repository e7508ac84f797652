"""A callback for products that call models through LiteLLM."""

from __future__ import annotations

__all__ = ()
