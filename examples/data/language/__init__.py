"""The messages between analysts and agents, and how each reads them."""

__all__ = ()
