"""Agents that are separate programs: behind an endpoint, over ACP, or on JSON lines."""

__all__ = ()
