"""Taking part in a session from the browser."""

from __future__ import annotations

__all__ = ()
