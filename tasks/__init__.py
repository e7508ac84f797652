"""For authors of tasks: a task from a few functions, and the kit that the shipped tasks are made of."""

__all__ = ()
