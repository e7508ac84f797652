"""The student: knowledge components, misconceptions, and learning from messages."""

__all__ = ()
