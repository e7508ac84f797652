"""Columns: a row per session and a row per round, from any source; all numbers are computed from them."""

__all__ = ()
