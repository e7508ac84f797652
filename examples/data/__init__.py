"""Data analysis: survey tables with patterns and decoys, a report, and a reader who tires."""

__all__ = ()
