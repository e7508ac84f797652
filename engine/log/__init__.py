"""The append-only log: its contract, and the stores that keep it."""

from __future__ import annotations

__all__ = ()
