"""Running the sessions in which people take part from the browser."""

from __future__ import annotations

__all__ = ()
