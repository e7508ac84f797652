"""What the mathematician and the agent say to each other, and how each reads it."""

__all__ = ()
