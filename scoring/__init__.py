"""Scoring: utility, effort, progress, tolerance, and what follows from them."""

__all__ = ()
