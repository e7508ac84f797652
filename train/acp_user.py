"""The simulated user of any task for other harnesses, over the Agent Client Protocol: JSON-RPC on two streams.

See https://agentclientprotocol.com. The harness is the client, and prompts the user as it would prompt an
agent: a prompt is what the harness's own agent says, and the user's reply comes back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, final

import anyio
import anyio.abc
import msgspec

from .._version import __version__
from ..agents.external.json_rpc import (
    BAD_PARAMETERS,
    NO_METHOD,
    UNREADABLE,
    Object,
    failure,
    notification,
    object_at,
    read_message,
    response,
)
from ..engine.errors import DuologError, InvalidInput
from ..engine.events import JSON
from ..engine.log.contract import EventLog
from ..interop.acp.content import prompt_of
from ..interop.acp.lines import Lines
from ..interop.json_parts import items_at, mapping_at, text_at
from .episode import EpisodeSetting
from .hosted import HostedUser, Reply, Talk, UserName, read_user

__all__ = ("AcpUser",)

_PROTOCOL: Final = 1
_FAILED: Final = -32603
_KEY: Final = "duolog"


class _Held:
    """A session of the protocol.

    Attributes:
        talk: with whom.
        request: the user's first words, until they are given out.
        prompting: the prompt that is being answered, to be cancelled; None if there is none.
    """

    def __init__(self, talk: Talk, request: Reply) -> None:
        self.talk = talk
        self.request: Reply | None = request
        self.prompting: anyio.CancelScope | None = None


@final
class AcpUser:
    """Serves simulated users to one client of the Agent Client Protocol.

    The reply to the first prompt of a session is the user's request, whatever the prompt. A resource that is embedded
    in a prompt is put up as the shared output. The result of each prompt has ``_meta.duolog`` with the user's effort
    so far; the last reply ends with ``###STOP###``. A session is for the user that its ``session/new`` names in
    ``_meta.duolog.user``, as ``TASK/PERSONA/PROBLEM/SEED``, or else for the one given here.

    Args:
        log: where the sessions are recorded; it has to be open.
        user: who is talked to unless the client names another; None if it has to.
        setting: how the sessions are set up.
    """

    def __init__(
        self,
        log: EventLog,
        user: UserName | None = None,
        setting: EpisodeSetting | None = None,
    ) -> None:
        self._log = log
        self._user = user
        self._setting = setting
        self._held: dict[str, _Held] = {}
        self._send: Callable[[bytes], Awaitable[None]] | None = None
        self._tasks: anyio.abc.TaskGroup | None = None

    async def serve(
        self,
        receive: Callable[[], Awaitable[bytes]],
        send: Callable[[bytes], Awaitable[None]],
    ) -> None:
        """Answers messages until the client's stream ends; then closes open sessions as ``cancelled``.

        Args:
            receive: gives the next bytes of the client; none at the end.
            send: takes a line for the client, with its end.
        """
        lines = Lines()
        sending = anyio.Lock()

        async def one_at_a_time(line: bytes) -> None:
            async with sending:
                await send(line + b"\n")

        self._send = one_at_a_time
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            while data := await receive():
                for line in lines.feed(data):
                    await self._take(line)
            for held in self._held.values():
                if held.prompting is not None:
                    held.prompting.cancel()
                held.talk.left.set()
        self._held.clear()

    async def _take(self, line: bytes) -> None:
        assert self._tasks is not None
        try:
            message = read_message(line)
        except InvalidInput as error:
            await self._say(failure({}, UNREADABLE, f"the client writes {error}"))
            return
        method = message.get("method")
        if method == "session/cancel":
            held = self._held.get(text_at(object_at(message, "params"), "sessionId"))
            if held is not None and held.prompting is not None:
                held.prompting.cancel()
        elif method is not None and "id" in message:
            self._tasks.start_soon(self._answer, str(method), message)

    async def _answer(self, method: str, message: Object) -> None:
        parameters = object_at(message, "params")
        try:
            if method == "initialize":
                answer = response(message, _abilities())
            elif method == "session/new":
                answer = response(message, await self._open(parameters))
            elif method == "session/prompt":
                answer = response(message, await self._prompt(parameters))
            else:
                answer = failure(message, NO_METHOD, f"a simulated user does not do {method}")
        except InvalidInput as error:
            answer = failure(message, BAD_PARAMETERS, str(error))
        except DuologError as error:
            answer = failure(message, _FAILED, str(error))
        await self._say(answer)

    async def _open(self, parameters: Object) -> JSON:
        """Opens a session, and begins the user's."""
        assert self._tasks is not None
        named = text_at(mapping_at(mapping_at(parameters, "_meta"), _KEY), "user")
        user = read_user(named) if named else self._user
        if user is None:
            raise InvalidInput(
                "no user is named: set _meta.duolog.user to TASK/PERSONA/PROBLEM/SEED, such as "
                "travel/proactive/0/7"
            )
        talk = Talk(HostedUser(self._log, self._setting))
        await self._tasks.start(talk.live)
        try:
            request = await talk.user.begin(user)
        except BaseException:
            talk.left.set()
            raise
        self._held[request.session] = _Held(talk, request)
        return {"sessionId": request.session}

    async def _prompt(self, parameters: Object) -> JSON:
        """Has the user answer a prompt."""
        name = text_at(parameters, "sessionId")
        held = self._held.get(name)
        if held is None:
            raise InvalidInput(f"session {name!r} is not open")
        if held.prompting is not None:
            raise InvalidInput(f"session {name!r} has not answered the prompt before: wait for it")
        with anyio.CancelScope() as held.prompting:
            try:
                reply = await self._reply(held, parameters)
            finally:
                held.prompting = None
            if reply.done:
                held.talk.left.set()
                del self._held[name]
            await self._say(_chunk(name, reply.said))
            return {"stopReason": "end_turn", "_meta": {_KEY: msgspec.to_builtins(reply)}}
        return {"stopReason": "cancelled"}

    async def _reply(self, held: _Held, parameters: Object) -> Reply:
        request, held.request = held.request, None
        if request is not None:
            return request
        blocks = items_at(parameters, "prompt")
        text = prompt_of([one for one in blocks if text_at(one, "type") != "resource"]).text
        output = prompt_of(blocks).context
        return await held.talk.user.say(
            text, output=output[-1].partition("\n")[2] if output else None
        )

    async def _say(self, line: bytes) -> None:
        assert self._send is not None
        with suppress(anyio.BrokenResourceError, BrokenPipeError):  # the client has gone
            await self._send(line)


def _abilities() -> JSON:
    return {
        "protocolVersion": _PROTOCOL,
        "agentCapabilities": {
            "loadSession": False,
            "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
        },
        "agentInfo": {"name": "duolog-user", "version": __version__},
        "authMethods": [],
    }


def _chunk(session: str, text: str) -> bytes:
    update: JSON = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": text},
    }
    return notification("session/update", {"sessionId": session, "update": update})
