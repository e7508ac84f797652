"""The parts of a context: its inbox, its line to models, and the guard of its turn."""

from __future__ import annotations

__all__ = ()
