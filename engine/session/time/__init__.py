"""The time of a session: its clock, how long things take, and whose turn it is."""

from __future__ import annotations

__all__ = ()
