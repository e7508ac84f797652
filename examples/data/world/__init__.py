"""Survey data: instances, their tables, and what is true of them."""

__all__ = ()
