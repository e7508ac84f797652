"""The travel plan: its form, its text, its values."""

from __future__ import annotations

__all__ = ()
