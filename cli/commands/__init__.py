"""The commands, a module each."""

from __future__ import annotations

__all__ = ()
