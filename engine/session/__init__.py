"""One session: concurrent actors on one clock, in one order."""

from __future__ import annotations

__all__ = ()
