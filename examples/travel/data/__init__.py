"""Instances and sandboxes: the tables, TravelPlanner's files, and invented worlds."""

from __future__ import annotations

__all__ = ()
