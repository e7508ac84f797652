"""Invented worlds, from a seed."""

from __future__ import annotations

__all__ = ()
