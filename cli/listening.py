"""What commands that listen on a port share: the token that they are given, the socket, its limits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from ..engine.errors import DuologError, InvalidInput, MissingExtra

if TYPE_CHECKING:
    from pathlib import Path
    from socket import socket as Socket

    from ..interop.http.server import HttpServer
    from ..scoring.index.sessions import SessionIndex

__all__ = ("SPARE", "address_of", "bind", "follow_sessions", "given_token", "open_files")

SPARE: Final = 128
"""Open files that are reserved for everything but connections."""

_SHORTEST: Final = 16  # characters of a token


def given_token(file: Path | None) -> str | None:
    """The token that clients have to send; it is never shown."""
    import os

    from ..engine.settings import settings_text

    source, token = "DUOLOG_TOKEN", os.environ.get("DUOLOG_TOKEN")
    if file is not None:
        source = str(file)
        token = settings_text(file).strip()
    if token is None:
        return None
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput(
            f"the token in {source} must have at least {_SHORTEST} letters, digits or signs, and "
            "no spaces"
        )
    return token


def bind(host: str, port: int, *, guarded: bool) -> Socket:
    """A listening socket.

    Raises:
        InvalidInput: there is no such address, it is in use, or others can reach it and no token is
            set.
        MissingExtra: the web server is not installed.
    """
    import socket

    try:
        from ..interop.http.auth import is_loopback
        from ..interop.http.server import HttpServer as _  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "httptools"):
            raise
        raise MissingExtra("web", "serving a log") from error
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"unknown host {host!r}") from error
    family, kind, protocol, _name, address = found[0]
    if not guarded and not is_loopback(str(address[0])):
        raise InvalidInput(
            f"{host} can be reached by others: set DUOLOG_TOKEN or give --token-file, so that only "
            "those who have the token are let in; or listen on 127.0.0.1"
        )
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(2048)
    except OSError as error:
        bound.close()
        raise InvalidInput(f"cannot listen on {host}, port {port}: {error.strerror}") from error
    return bound


def address_of(bound: Socket) -> str:
    """The address of a server that listens there."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def open_files(wanted: int) -> int:
    """How many files may be open at once, after the limit was raised to ``wanted`` if possible."""
    if sys.platform == "win32":  # Windows lacks such a limit
        return wanted
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


async def follow_sessions(
    index: SessionIndex, server: HttpServer, failures: list[DuologError]
) -> None:
    """Keeps the list of sessions up to date; if the log can no longer be read, stops the server."""
    try:
        await index.run()
    except DuologError as error:
        failures.append(error)
        server.stop()
