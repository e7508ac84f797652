"""Exact arithmetic: polynomials in one variable over the integers, and classes of integers."""

__all__ = ()
