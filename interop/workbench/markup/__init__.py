"""HTML that is escaped by construction, and texts from a log in it: as they are, or as Markdown."""

from __future__ import annotations

__all__ = ()
