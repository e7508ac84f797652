"""Models through LiteLLM."""

from __future__ import annotations

__all__ = ()
