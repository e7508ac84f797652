"""The rule-driven tutor: what it believes of the student, and its next lesson."""

__all__ = ()
