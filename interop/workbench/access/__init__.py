"""Access control: tokens, roles, the guard in front of all pages, and disclosure."""

from __future__ import annotations

__all__ = ()
