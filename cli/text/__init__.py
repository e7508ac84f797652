"""What a person reads at the terminal."""

from __future__ import annotations

__all__ = ()
