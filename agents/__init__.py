"""The agents: auto, one-stage and two-stage, each on any policy."""

__all__ = ()
