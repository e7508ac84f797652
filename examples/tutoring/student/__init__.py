"""The student: knowledge components, misconceptions, what they learn from what they are told."""

__all__ = ()
