"""Prompts, the actions that a model is offered, and how its replies are read."""

from __future__ import annotations

__all__ = ()
