"""The rule-driven tutor: its beliefs about the student, and its next lesson."""

__all__ = ()
