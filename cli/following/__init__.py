"""``duolog score --follow``: scores a log as it grows, by one process or several."""

from __future__ import annotations

__all__ = ()
