"""Writes and reads what clients and advisers say to each other about a plan for a household's money."""

from __future__ import annotations

__all__ = ()
