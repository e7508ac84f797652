"""The addresses within the workbench."""

from __future__ import annotations

from urllib.parse import urlencode

from .markup.html import Html, tag

__all__ = ("session_address", "session_link")


def session_address(session: str, at: str | None = None) -> str:
    """The address of a session, or of one of its moments: after a record, by its trace version or as ``45.1``."""
    parameters = [("id", session)] if at is None else [("id", session), ("at", at)]
    return f"/session?{urlencode(parameters)}"


def session_link(session: str, text: str) -> Html:
    """A link to a session."""
    return tag("a", text, href=session_address(session), dir="auto")
