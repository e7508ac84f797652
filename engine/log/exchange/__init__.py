"""A log's ways in and out: JSON Lines, copies into another store, and output files of any kind."""

from __future__ import annotations

__all__ = ()
