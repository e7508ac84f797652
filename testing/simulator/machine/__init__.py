"""The machine of a simulated process: its disk, its threads, its clock, and other processes."""

from __future__ import annotations

__all__ = ()
