"""The planner of the rule-driven agent."""

from __future__ import annotations

__all__ = ()
