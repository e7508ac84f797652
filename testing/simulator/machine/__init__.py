"""What a simulated process runs on: its disk, its threads, its clock, and who else is there."""

from __future__ import annotations

__all__ = ()
