"""The routes of a session."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import Route

from ..bench import Bench

__all__ = ("session_routes",)


def session_routes(bench: Bench) -> Sequence[Route]:
    """The routes."""
    return ()
