"""What goes on now: the open sessions, those first whose human is about to give up."""

from __future__ import annotations

__all__ = ()
