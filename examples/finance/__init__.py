"""Financial advice for a young family: a plan for its money, and a client who learns what they want."""

from __future__ import annotations

__all__ = ()
