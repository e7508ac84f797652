"""The engine: events, the log and its stores, sessions, rounds; it knows no task and no metric."""

__all__ = ()
