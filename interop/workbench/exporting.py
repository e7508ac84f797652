"""Exports from the pages: the list of sessions as CSV or JSON, and a session as JSON Lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Final, final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...engine.errors import InvalidInput, SessionNotFound
from ...engine.log.exchange.jsonl_export import to_jsonl
from ...scoring.index.lines import AT_ONCE, ListedSession, listed
from ...scoring.report.export import flat_row
from .access.disclosure import Disclosure
from .access.guard import identity_of
from .access.roles import readers
from .sessions.address import parse_address
from .sessions.searching import searched
from .state import Workbench

__all__ = ("export_routes",)

_MOST: Final = 100_000  # sessions in one file
_NAME: Final = 1000  # characters of a session's id
_TYPES: Final = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


def export_routes(workbench: Workbench) -> Sequence[Route]:
    """The routes."""
    routes = _Routes(workbench)
    return (
        Route("/v1/export/sessions", readers(routes.sessions)),
        Route("/v1/export/session", readers(routes.session)),
    )


@final
class _Routes:
    """The endpoints."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    async def sessions(self, request: Request) -> Response:
        """The sessions of a list, in its order, all pages of it."""
        given = request.query_params.multi_items()
        form = request.query_params.get("format", "csv")
        if form not in _TYPES:
            raise InvalidInput(f"a list is exported as csv or json, not as {form[:40]!r}")
        address = parse_address((key, one) for key, one in given if key != "format").first_page()
        query, _ = await searched(self._workbench, address)
        lists, index = self._workbench.lists, self._workbench.sessions
        found = lists.of(query, address.order)
        await found.refresh()
        if len(found) > _MOST:
            raise InvalidInput(
                f"{len(found):,} sessions are more than the {_MOST:,} that a page exports: use "
                "duolog export, or a filter"
            )
        rows: list[ListedSession] = []
        for start in range(0, len(found), AT_ONCE):
            summaries = [index.summaries[at] for at in found.places(start, start + AT_ONCE)]
            await lists.lines.prefetch(summaries)
            rows += [listed(one, await lists.lines.line(one)) for one in summaries]
        data = msgspec.json.encode(rows) if form == "json" else _csv(rows)
        return _file(data, f"sessions.{form}", _TYPES[form])

    async def session(self, request: Request) -> Response:
        """The records of a session as JSON Lines, as far as the user may see them."""
        session = request.query_params.get("id", "")[:_NAME]
        disclosure = Disclosure(identity_of(request))
        try:
            await self._workbench.log.summary(session)
        except SessionNotFound as error:
            raise HTTPException(404, str(error)) from None
        parts: list[bytes] = []
        async for record in self._workbench.log.read_all(session=session):
            seen = disclosure.see(record)
            if seen is not None:
                parts.append(to_jsonl(seen))
        return _file(b"".join(parts), "session.jsonl", "application/x-ndjson")


def _csv(rows: Sequence[ListedSession]) -> bytes:
    """A row per session; its labels are columns, and tags and reviewers are separated by semicolons."""
    flat = []
    for one in rows:
        row = flat_row(one)
        row |= {"tags": ";".join(one.tags), "reviewers": ";".join(one.reviewers)}
        flat.append(row)
    names = list(dict.fromkeys(name for row in flat for name in row))
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return file.getvalue().encode()


def _file(data: bytes, name: str, media_type: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, headers=headers, media_type=media_type)
