"""The invented world of the finance task: places, a market, and households with their needs."""

from __future__ import annotations

__all__ = ()
