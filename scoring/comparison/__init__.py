"""Compares agents and judges with each other, and the drop under different conventions."""

from __future__ import annotations

__all__ = ()
