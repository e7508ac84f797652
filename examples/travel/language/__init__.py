"""How rule-driven travellers and agents write and read messages."""

from __future__ import annotations

__all__ = ()
