"""The invented world of the finance task: places, a market, households and what they need."""

from __future__ import annotations

__all__ = ()
