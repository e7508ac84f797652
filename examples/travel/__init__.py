"""Travel planning: worlds, tasks, the plan, its score, and policies for all who take part."""

__all__ = ()
