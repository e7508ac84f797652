"""What analysts and agents say to each other, and how each reads the other."""

__all__ = ()
