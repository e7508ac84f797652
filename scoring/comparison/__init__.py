"""Agents beside each other, judges beside each other, and the drop under other readings."""

from __future__ import annotations

__all__ = ()
