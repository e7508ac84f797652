"""The people: simulated users and their personas."""

__all__ = ()
