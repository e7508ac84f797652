"""Scorers: their protocol, and what runs them, in a session and beside a log."""

from __future__ import annotations

__all__ = ()
