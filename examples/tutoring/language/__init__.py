"""What tutors and students say to each other, and how each reads it."""

__all__ = ()
