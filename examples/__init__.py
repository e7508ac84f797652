"""Complete tasks that ship with the package, and short programs that embed the engine."""

__all__ = ()
