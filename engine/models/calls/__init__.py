"""How actors and scorers call models: attempt after attempt, each of them recorded."""

from __future__ import annotations

__all__ = ()
