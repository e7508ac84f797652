"""The trajectory of a session: a fold of its records."""

from __future__ import annotations

__all__ = ()
