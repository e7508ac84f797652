"""Contract checks for stores, scorers and importers."""

from __future__ import annotations

__all__ = ()
