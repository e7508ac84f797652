"""The messages between the mathematician and the agent, and how each reads them."""

__all__ = ()
