"""The log in a PostgreSQL database, for more than one machine."""

from __future__ import annotations

__all__ = ()
