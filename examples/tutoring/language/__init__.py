"""The messages between tutors and students, and how each reads them."""

__all__ = ()
