"""School mathematics: expressions and equations, read from text and solved by right or wrong rules."""

__all__ = ()
