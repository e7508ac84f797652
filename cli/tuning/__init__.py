"""Fits the rules of the adaptive agent to a task: what they are worth, sessions to see it, and the search."""

from __future__ import annotations

__all__ = ()
