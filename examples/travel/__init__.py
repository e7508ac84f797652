"""Travel planning: worlds, tasks, the plan, its score, and policies for agents and users."""

__all__ = ()
