"""The index of a log's sessions: which sessions a query finds, in which order, page by page, as they change."""

from __future__ import annotations

__all__ = ()
