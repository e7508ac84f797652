"""Scorers: their protocol, and the code that runs them in a session or over a log."""

from __future__ import annotations

__all__ = ()
