"""The version of Duolog: on the ground, where every module may read it."""

from __future__ import annotations

__all__ = ("__version__",)

__version__ = "0.1.0"
"""The version of the distribution."""
