"""The report of the sessions that a list shows: its table, its figures, and agents beside each other."""

from __future__ import annotations

__all__ = ()
