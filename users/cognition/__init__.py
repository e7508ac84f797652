"""Human limits for simulated users: attention, memory, misreading, understanding, trust, mood."""

__all__ = ()
