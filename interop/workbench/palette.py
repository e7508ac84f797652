"""The command palette of a page: its pages, sessions and actions by their names, from the keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...engine.log.ranked import Condition
from ..http.responses import as_json
from .access.roles import readers
from .links import session_address
from .markup.html import Html, tag
from .sessions.rows import title_of
from .state import Workbench

__all__ = ("palette", "palette_routes")

_FOUND: Final = 8  # sessions that are offered
_LENGTH: Final = 200  # characters that are looked for


def palette() -> Html:
    """The dialog, which the page's script fills."""
    field = tag(
        "input",
        id="palette-field",
        type="text",
        role="combobox",
        aria_controls="palette-list",
        aria_expanded="true",
        aria_autocomplete="list",
        aria_label="Go to a page or session, or do something",
        placeholder="Page, session or action",
        autocomplete="off",
        spellcheck="false",
    )
    found = tag("ul", id="palette-list", role="listbox", aria_label="Pages, sessions and actions")
    return tag("dialog", field, found, id="palette", aria_label="Commands")


def palette_routes(workbench: Workbench) -> Sequence[Route]:
    """The route that finds sessions by the beginning of their ids or titles."""

    async def named(request: Request) -> Response:
        begin = request.query_params.get("begin", "")[:_LENGTH].casefold()
        found: list[dict[str, str]] = []
        word = begin.partition(" ")[0]  # a title is made of several properties
        if not word:
            return as_json({"sessions": found})
        named = Condition(by=("session", "task"), part=word)
        async for summary in workbench.sessions.newest(named):
            title, agent = title_of(summary), summary.group.get("agent", "")
            if summary.session.casefold().startswith(begin) or title.casefold().startswith(begin):
                name = f"{title} · {agent}" if agent else title
                to = session_address(summary.session)
                found.append({"name": name, "id": summary.session[:_LENGTH], "to": to})
            if len(found) == _FOUND:
                break
        return as_json({"sessions": found})

    return (Route("/v1/sessions/named", readers(named)),)
