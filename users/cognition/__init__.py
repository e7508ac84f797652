"""What limits simulated users as it limits people: attention, memory, misreading, understanding, trust, mood."""

__all__ = ()
