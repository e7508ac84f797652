"""Collaborative Gym."""

from __future__ import annotations

__all__ = ()
