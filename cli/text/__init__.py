"""Text for people at the terminal."""

from __future__ import annotations

__all__ = ()
