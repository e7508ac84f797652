"""One session: its transcript, its drafts, its measures, and how all of it was at any record."""

from __future__ import annotations

__all__ = ()
