"""Conversations of any format: steps, participants, and how both become a session."""

from __future__ import annotations

__all__ = ()
