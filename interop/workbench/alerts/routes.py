"""The routes of what alert rules have fired for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import Final, final

import anyio
import msgspec
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....engine.errors import InvalidInput
from ....scoring.display.texts import shorten
from ....scoring.index.sessions import SessionIndex
from ...http.responses import as_json
from ...http.sse import EventStream
from ..access.body import decoded_body
from ..access.guard import identity_of
from ..access.roles import operators, readers
from ..events import message, streaming
from ..frame import page
from ..sessions.rows import title_of
from ..state import Workbench
from .history import AlertHistory
from .page import alert_contents, fired_row, history_note, rule_list

__all__ = ("alert_messages", "alert_routes")

_AGENT: Final = 30
_SLOWER: Final = 5  # times the pace of other pages: there is more to be computed


def alert_routes(workbench: Workbench) -> Sequence[Route]:
    """The routes."""
    changing = _Changing(workbench)
    history = AlertHistory(workbench.log, workbench.sessions, workbench.alerts, workbench.options)

    async def shown(request: Request) -> Response:
        identity = identity_of(request)
        makes = identity.role == "operator" and not workbench.access.read_only
        contents = alert_contents(workbench.alerts, _before(request), makes=makes)
        return page(workbench, identity, "Alerts", *contents, script="alerts.js", at="/alerts")

    async def stream(request: Request) -> EventStream:
        return streaming(workbench, alert_messages(workbench, history, _before(request)))

    return (
        Route("/alerts", readers(shown)),
        Route("/v1/alerts/stream", readers(stream)),
        Route("/v1/alerts/add", operators(changing.add), methods=["POST"]),
        Route("/v1/alerts/remove", operators(changing.remove), methods=["POST"]),
    )


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that is to be added or removed."""

    rule: str


_decode = msgspec.json.Decoder(_Rule).decode


@final
class _Changing:
    """The endpoints by which operators change the rules."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    async def add(self, request: Request) -> Response:
        """Adds a rule."""
        index, text = self._workbench.sessions, await self._asked(request)
        rule = self._workbench.alerts.add(text, index.labels if len(index) else None)
        return as_json({"rule": rule.text})

    async def remove(self, request: Request) -> Response:
        """Removes a rule that was added."""
        text = await self._asked(request)
        self._workbench.alerts.remove(text)
        return as_json({"removed": text})

    async def _asked(self, request: Request) -> str:
        return (await decoded_body(request, _decode, self._workbench.limits.body)).rule


async def alert_messages(
    workbench: Workbench, history: AlertHistory, before: int | None
) -> AsyncGenerator[ServerSentEvent, None]:
    """A page of what fired, whatever the client had, and then what changes in it."""
    index, size = workbench.sessions, workbench.limits.page
    shown: dict[str, str] = {}
    known: dict[str, object] = {}
    revision = -1
    earlier: str | None = None
    while True:
        position = index.position
        await history.soon()
        if revision != history.revision:
            revision = history.revision
            found = history.page(size, before)
            titles = await _titles(index, {row.firing.session for row in found})
            rows = {
                _name(row.firing.key, row.firing.session): fired_row(
                    row, titles.get(row.firing.session, "")
                ).text
                for row in found
            }
            changed = {name: html for name, html in rows.items() if shown.get(name) != html}
            gone = [name for name in shown if name not in rows]
            last = found[-1].firing.position if found else 0
            earlier = f"/alerts?before={last}" if history.has_before(last) else None
            shown = rows
        else:
            changed, gone = {}, []
        about: dict[str, object] = {
            "rules": rule_list(history, workbench.alerts.added).text,
            "note": history_note(history, len(shown), len(index)),
            "next": earlier,
        }
        if changed or gone or about != known:
            known = about
            yield message("alerts", {"rows": changed, "gone": gone} | about, position)
        if history.complete and index.position == history.position:
            with anyio.move_on_after(workbench.limits.heartbeat):  # rules may change, too
                await index.wait()
        await anyio.sleep(_SLOWER * workbench.limits.pace)


async def _titles(index: SessionIndex, sessions: Collection[str]) -> Mapping[str, str]:
    """The short titles of those sessions that the list has come to, each with its agent."""
    places = [place for name in sessions if (place := index.place(name)) is not None]
    found: dict[str, str] = {}
    for summary in await index.read(places):
        agent = shorten(summary.group.get("agent", ""), _AGENT)
        found[summary.session] = f"{title_of(summary)}{agent and f', {agent}'}"
    return found


def _name(*parts: object) -> str:
    return msgspec.json.encode(parts).decode()


def _before(request: Request) -> int | None:
    text = request.query_params.get("before", "")
    if text and not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise InvalidInput(f"a position is a whole number, not {text[:40]!r}")
    return int(text) if text else None
