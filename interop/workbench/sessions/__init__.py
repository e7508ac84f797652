"""The sessions of a log: a table that is searched, filtered and sorted, and whose rows are live."""

from __future__ import annotations

__all__ = ()
