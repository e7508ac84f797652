"""Experiments from options or a file."""

from __future__ import annotations

__all__ = ()
