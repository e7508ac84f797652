"""The log in a SQLite file."""

from __future__ import annotations

__all__ = ()
