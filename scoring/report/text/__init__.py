"""A report as JSON, CSV, Markdown, data frame, and as a table in the terminal."""

__all__ = ()
