"""What every shipped task is made of: a task by composition, rules for agents and people, actions, phrases."""

__all__ = ()
