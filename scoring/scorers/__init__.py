"""Scorers that ship with Duolog."""

from __future__ import annotations

__all__ = ()
