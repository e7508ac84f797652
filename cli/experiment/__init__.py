"""Experiments: from options or a file to sessions in a log."""

from __future__ import annotations

__all__ = ()
