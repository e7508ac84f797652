"""The files that pages export: lists of sessions, and sessions."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Sequence
from typing import Final, final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ...engine.errors import InvalidInput, SessionNotFound
from ...engine.log.contract import SessionSummary
from ...engine.log.exchange.jsonl_export import to_jsonl
from ...engine.records import Record
from ...scoring.index.lines import AT_ONCE, ListedSession, listed
from ...scoring.report.export import flat_row
from .access.disclosure import Disclosure
from .access.guard import identity_of
from .access.roles import readers
from .session.markdown import SessionMarkdown
from .sessions.address import parse_address
from .sessions.searching import searched
from .state import Workbench

__all__ = ("as_file", "export_routes")

_MOST: Final = 100_000  # sessions in one file
_NAME: Final = 1000  # characters of a session's id
_TYPES: Final = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
_OF_SESSIONS: Final = {
    "jsonl": "application/x-ndjson",
    "json": "application/json",
    "md": "text/markdown; charset=utf-8",
}


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
            summaries = await index.read([*found.places(start, start + AT_ONCE)])
            await lists.lines.prefetch(summaries)
            rows += [listed(one, await lists.lines.line(one)) for one in summaries]
        data = msgspec.json.encode(rows) if form == "json" else _csv(rows)
        return as_file(data, f"sessions.{form}", _TYPES[form])

    async def session(self, request: Request) -> Response:
        """A session as far as the user may see it: its records, or a transcript in Markdown."""
        session = request.query_params.get("id", "")[:_NAME]
        form = request.query_params.get("format", "jsonl")
        if form not in _OF_SESSIONS:
            forms = ", ".join(_OF_SESSIONS)
            raise InvalidInput(f"a session is exported as {forms}, not as {form[:40]!r}")
        try:
            summary = await self._workbench.log.summary(session)
        except SessionNotFound as error:
            raise HTTPException(404, str(error)) from None
        records = self._seen(session, Disclosure(identity_of(request)))
        data = self._markdown(summary, records) if form == "md" else _json(records, form)
        headers = _named(f"session.{form}")
        # Record by record, since a session may be larger than the memory for it.
        return StreamingResponse(data, headers=headers, media_type=_OF_SESSIONS[form])

    async def _seen(self, session: str, disclosure: Disclosure) -> AsyncIterator[Record]:
        async for record in self._workbench.log.read_all(session=session):
            seen = disclosure.see(record)
            if seen is not None:
                yield seen

    async def _markdown(
        self, summary: SessionSummary, records: AsyncIterator[Record]
    ) -> AsyncIterator[bytes]:
        markdown = SessionMarkdown(self._workbench.options.rounds)
        yield markdown.head(summary, await self._workbench.lists.lines.line(summary)).encode()
        async for record in records:
            yield markdown.told(record).encode()


async def _json(records: AsyncIterator[Record], form: str) -> AsyncIterator[bytes]:
    """Records as JSON Lines, or as one array of them."""
    begin, between, end = (b"", b"", b"") if form == "jsonl" else (b"[\n", b",", b"]\n")
    async for record in records:
        yield begin + to_jsonl(record)
        begin = between
    yield (b"" if begin == between else begin) + end


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


def as_file(data: bytes, name: str, media_type: str) -> Response:
    """The answer that a browser saves under a name."""
    return Response(data, headers=_named(name), media_type=media_type)


def _named(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
