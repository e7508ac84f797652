"""``duolog user``: simulated users for other harnesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import example
from ..listening import address_of, bind, given_token
from ..lookup import log_at, name_of
from ..output import say
from ..root import app
from ..runtime import requests_to_end, run

if TYPE_CHECKING:
    from socket import socket

    from anyio import CancelScope

    from ...interop.http.server import HttpServer
    from ...train.hosted import UserName

__all__ = ("user_command",)


@app.command(
    "user",
    short_help="Lets another harness talk to simulated users.",
    epilog=example(
        "duolog user --log users.db --port 8800",
        "duolog user travel/lazy/0/7 --acp --log users.db",
        note="Over HTTP, the model's name of each request says who the user is: TASK/PERSONA/PROBLEM/SEED, such as "
        "travel/lazy/0/7; this needs the extra duolog[web]. The user's effort is in each reply, and in "
        "the log: duolog report users.db.",
    ),
)
def user_command(
    log: options.LogToWrite,
    user: Annotated[
        str | None,
        typer.Argument(
            metavar="[TASK/PERSONA/PROBLEM/SEED]",
            help="The user for --acp, unless a session names another, as in travel/lazy/0/7.",
            show_default=False,
        ),
    ] = None,
    acp: Annotated[
        bool,
        typer.Option(
            "--acp",
            help="Speak the Agent Client Protocol over standard input and output, as an agent does.",
        ),
    ] = False,
    port: options.Port = 8800,
) -> None:
    """Has simulated users answer another harness, which plays the agent, and records the sessions. The harness
    sends chat completions over HTTP, from this machine only, or prompts the user over the Agent Client Protocol. If
    DUOLOG_TOKEN is set, it has to send that as its API key.
    """
    from ...train.hosted import read_user

    named = None if user is None else read_user(user)
    if acp:
        run(lambda: _speak(log, named))
        return
    if named is not None:
        raise InvalidInput(
            f"{user!r} is for --acp: over HTTP the model's name says who the user is"
        )
    token = given_token(None)
    bound = bind("127.0.0.1", port, guarded=False)
    try:
        run(lambda: _serve(log, bound, token))
    finally:
        bound.close()


async def _speak(where: str, user: UserName | None) -> None:
    """Serves the client at the standard streams until it closes them, or a signal asks to end."""
    import os
    import sys

    import anyio
    from anyio import to_thread

    from ...engine.log.open import open_log
    from ...train.acp_user import AcpUser
    from ...train.hosted import HostedUser

    if user is not None:  # an unknown user is refused before the client begins
        async with open_log("memory://") as aside, HostedUser(aside) as tried:
            await tried.begin(user)
    source, sink = sys.stdin.fileno(), sys.stdout.buffer
    arriving, arrived = anyio.create_memory_object_stream[bytes](0)
    reading = anyio.CancelScope()

    async def read() -> None:
        with reading, arriving:
            while data := await to_thread.run_sync(os.read, source, 65_536, abandon_on_cancel=True):
                await arriving.send(data)

    async def receive() -> bytes:
        try:
            return await arrived.receive()
        except anyio.EndOfStream:
            return b""

    def write(line: bytes) -> None:
        sink.write(line)
        sink.flush()

    async def send(line: bytes) -> None:
        await to_thread.run_sync(write, line)

    async with log_at(where, create=True) as log, anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_on_signal, reading)
        tasks.start_soon(read)
        with arrived:
            await AcpUser(log, user).serve(receive, send)
        tasks.cancel_scope.cancel()


async def _cancel_on_signal(scope: CancelScope) -> None:
    with requests_to_end() as requests:
        async for _ in requests:
            scope.cancel()


async def _serve(where: str, bound: socket, token: str | None) -> None:
    import anyio

    from ...interop.http.limits import HttpLimits
    from ...interop.http.server import HttpServer
    from ...train.hosted import UserEndpoint, user_app

    stopping = anyio.Event()
    async with (
        log_at(where, create=True) as log,
        UserEndpoint(log) as endpoint,
        anyio.create_task_group() as tasks,
    ):
        server = HttpServer(user_app(endpoint, token), stopping, HttpLimits())
        tasks.start_soon(_stop_on_signal, server, address_of(bound), name_of(log))
        await server.run([bound])
        tasks.cancel_scope.cancel()


async def _stop_on_signal(server: HttpServer, address: str, log: str) -> None:
    await server.started()
    say(f"simulated users at {address}/v1, recorded in {log} (end it with Ctrl+C)")
    with requests_to_end() as requests:
        async for _ in requests:
            server.stop()
