"""The files that pages load: style, scripts, icon. They are the same for all users."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...scoring.report import page
from ..http.responses import problem

__all__ = ("asset_route",)

_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class _Asset(NamedTuple):
    data: bytes
    media_type: str
    tag: str


def asset_route() -> Route:
    """The route of the files, which are read once."""
    held: dict[str, _Asset] = {}

    async def asset(request: Request) -> Response:
        if not held:
            held.update(await anyio.to_thread.run_sync(_read))
        found = held.get(request.path_params["name"])
        if found is None:
            return problem(404, f"there is nothing at {request.url.path}")
        headers = {"Cache-Control": "no-cache", "ETag": found.tag}
        if request.headers.get("if-none-match") == found.tag:
            return Response(status_code=304, headers=headers)
        return Response(found.data, headers=headers, media_type=found.media_type)

    return Route("/assets/{name}", asset)


def _read() -> dict[str, _Asset]:
    held: dict[str, _Asset] = {}
    own = files(__package__).joinpath("assets").iterdir()
    report = files(page).iterdir()  # script and style of reports
    for file in (*own, *report):
        media_type = _TYPES.get(file.name[file.name.rfind(".") :])
        if media_type is not None:
            data = file.read_bytes()
            held[file.name] = _Asset(data, media_type, f'"{sha256(data).hexdigest()[:16]}"')
    return held
