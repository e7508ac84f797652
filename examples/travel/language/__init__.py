"""Writes and reads the messages of rule-driven travellers and agents."""

from __future__ import annotations

__all__ = ()
