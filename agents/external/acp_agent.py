"""An agent that speaks the Agent Client Protocol: JSON-RPC over its standard streams, Duolog its client.

See https://agentclientprotocol.com. Duolog prompts the agent, and whatever it writes in a turn is its
reply. A request for permission is also a reply; Duolog answers it when the prompt continues.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, final

import anyio
import msgspec

from ..._version import __version__
from ...engine.errors import (
    InvalidInput,
    ModelBadReply,
    ModelDenied,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from ...engine.events import JSON
from ...engine.models.protocol import ModelReply, ModelRequest, ToolCall
from ...engine.session.view import View
from ...engine.task import Brief
from .address import Address
from .json_rpc import (
    BAD_PARAMETERS,
    NO_METHOD,
    Object,
    call,
    failure,
    object_at,
    read_message,
    response,
)
from .process import LineProcess
from .workspace import Workspace

__all__ = ("PERMISSION", "AcpAgent")

PERMISSION: Final = "permission"
"""How a reply finishes that asks for a permission in the middle of a turn."""

_PROTOCOL = 1
_NOT_LOGGED_IN = -32000
_SHOWN = 300


@final
class AcpAgent:
    """The agent of one actor in one session; see ``ModelClient``.

    A request has the whole situation first, for an agent that knows nothing yet, and then what is
    new, for one that is asked again.

    Args:
        address: the address of the agent.
        view: the actor's.
        brief: the brief of the task.
        passed: names of environment variables that it gets.
    """

    def __init__(
        self, address: Address, view: View, brief: Brief, passed: Sequence[str] = ()
    ) -> None:
        self._address = address
        self._passed = passed
        self._view = view
        self._brief = brief
        self._process: LineProcess | None = None
        self._workspace: Workspace | None = None
        self._session = ""
        self._calls = 0
        self._prompt = 0
        self._asked: Object | None = None
        self._said: list[str] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Prompts the agent, or answers its last request; returns its reply."""
        messages = request.messages
        correction = messages[-1].content if messages[-2:][0].role == "assistant" else None
        answer = next((one.content for one in messages if one.role == "tool"), None)
        if self._process is None or not self._process.alive or self._workspace is None:
            await self.close()
            await self._start()
            parts = [
                messages[0].content,
                answer and f"You had asked for leave: {answer}.",
                correction,
            ]
            text = "\n\n".join(part for part in parts if part)
        elif answer is not None and self._asked is not None and correction is None:
            return await self._go_on(allowed=answer.startswith("allowed"))
        else:
            text = correction or messages[1].content
        workspace = self._workspace
        if workspace is None:
            raise ModelUnavailable(f"{self._address.text} is not running")
        if correction is None:
            await workspace.put_output(self._view)
        self._said = []
        self._calls += 1
        self._prompt = self._calls
        prompt: JSON = [{"type": "text", "text": text}]
        parameters = {"sessionId": self._session, "prompt": prompt}
        return await self._turn(call(self._prompt, "session/prompt", parameters))

    async def close(self) -> None:
        """Ends the agent, and removes its directory."""
        process, self._process = self._process, None
        workspace, self._workspace = self._workspace, None
        self._asked = None
        with anyio.CancelScope(shield=True):
            if process is not None:
                await process.stop()
            if workspace is not None:
                await workspace.remove()

    # --- the protocol ----------------------------------------------------------------------------

    async def _start(self) -> None:
        self._process = LineProcess(self._address.command, self._address.text, self._passed)
        self._workspace = workspace = await Workspace.make(self._brief)
        await workspace.put_output(self._view)
        await self._process.start()
        capabilities: JSON = {
            "fs": {"readTextFile": True, "writeTextFile": True},
            "terminal": False,
        }
        await self._call(
            "initialize",
            {
                "protocolVersion": _PROTOCOL,
                "clientCapabilities": capabilities,
                "clientInfo": {"name": "duolog", "version": __version__},
            },
        )
        made = await self._call("session/new", {"cwd": str(workspace.path), "mcpServers": []})
        session = made.get("sessionId")
        if not isinstance(session, str):
            raise ModelBadReply(f"{self._address.text} answers session/new without a sessionId")
        self._session = session

    async def _call(self, method: str, parameters: Object) -> Object:
        """Calls a method, and waits for its result."""
        self._calls += 1
        number = self._calls
        found: list[Object] = []

        async def take(line: bytes) -> bool:
            message = self._read(line)
            if message.get("id") == number and "method" not in message:
                found.append(self._result(method, message))
                return True
            await self._serve(message)
            return False

        await self._exchange(call(number, method, parameters), take)
        return found[0]

    async def _turn(self, line: bytes) -> ModelReply:
        """Sends a line, and waits until the turn ends, or a permission is asked for."""
        finish: list[str] = []

        async def take(line: bytes) -> bool:
            message = self._read(line)
            if message.get("id") == self._prompt and "method" not in message:
                finish.append(str(self._result("session/prompt", message).get("stopReason")))
                return True
            if message.get("method") == "session/request_permission" and self._has_human():
                self._asked = message
                finish.append(PERMISSION)
                return True
            await self._serve(message)
            return False

        await self._exchange(line, take)
        text, self._said = "".join(self._said).strip(), []
        if finish[0] == "refusal" and not text:
            raise ModelRefused(f"{self._address.text} refuses to continue")
        if finish[0] == PERMISSION and self._asked is not None:
            calls = [ToolCall(id="ask", name="ask", arguments=_question(self._asked))]
        else:
            calls = await self._submission()
        return ModelReply(text=text, tool_calls=tuple(calls), finish=finish[0])

    async def _submission(self) -> list[ToolCall]:
        """The output's file, if the agent changed it."""
        changed = None if self._workspace is None else await self._workspace.changed_output()
        if changed is None:
            return []
        return [ToolCall(id="submit", name="submit", arguments=_json({"content": changed}))]

    async def _go_on(self, *, allowed: bool) -> ModelReply:
        """Answers the permission that was asked for, and waits for the rest of the turn."""
        asked, self._asked = self._asked, None
        return await self._turn(response(asked or {}, _outcome(asked or {}, allowed=allowed)))

    async def _exchange(self, line: bytes, take: Callable[[bytes], Awaitable[bool]]) -> None:
        if self._process is None:
            raise ModelUnavailable(f"{self._address.text} is not running")
        await self._process.exchange(line, take)

    def _read(self, line: bytes) -> Object:
        try:
            return read_message(line)
        except InvalidInput as error:
            raise ModelBadReply(f"{self._address.text} writes {error}") from None

    def _result(self, method: str, message: Object) -> Object:
        """The result of a call.

        Raises:
            ModelError: the agent answers with an error.
        """
        error = message.get("error")
        if isinstance(error, Mapping):
            said = f"{self._address.text} answers {method} with an error: {error.get('message')}"
            raise self._error(error.get("code"), said[:_SHOWN])
        result = message.get("result")
        return result if isinstance(result, Mapping) else {}

    def _error(self, code: JSON, said: str) -> ModelError:
        if code == _NOT_LOGGED_IN:
            return ModelDenied(f"{said}; log in with the agent's own program first")
        return ModelUnavailable(said)

    async def _serve(self, message: Object) -> None:
        """Takes a notification, or answers a request of the agent's."""
        method, parameters = message.get("method"), object_at(message, "params")
        if method == "session/update":
            update = object_at(parameters, "update")
            if update.get("sessionUpdate") == "agent_message_chunk":
                self._said.append(str(object_at(update, "content").get("text") or ""))
        if "id" not in message or self._process is None or method is None:
            return
        try:
            answer = await self._answer(str(method), parameters, message)
        except InvalidInput as error:
            answer = failure(message, BAD_PARAMETERS, str(error))
        self._process.send(answer)

    async def _answer(self, method: str, parameters: Object, message: Object) -> bytes:
        workspace = self._workspace
        if method == "session/request_permission":  # there is no human to ask
            return response(message, _outcome(message, allowed=True))
        if method == "fs/read_text_file" and workspace is not None:
            line, limit = parameters.get("line"), parameters.get("limit")
            content = await workspace.read(
                str(parameters.get("path")),
                line if isinstance(line, int) else None,
                limit if isinstance(limit, int) else None,
            )
            return response(message, {"content": content})
        if method == "fs/write_text_file" and workspace is not None:
            await workspace.write(str(parameters.get("path")), str(parameters.get("content")))
            return response(message, None)
        return failure(message, NO_METHOD, f"Duolog does not do {method}")

    def _has_human(self) -> bool:
        return any(one.role == "human" for one in self._view.participants)


def _json(value: JSON) -> str:
    return msgspec.json.encode(value).decode()


def _question(message: Object) -> str:
    """The arguments of ``Ask`` for a request for permission."""
    call = object_at(object_at(message, "params"), "toolCall")
    title = str(call.get("title") or call.get("kind") or "something")
    return _json(
        {
            "question": f"May I do this: {title}?",
            "action": str(call.get("kind") or "other"),
            "arguments": dict(object_at(call, "rawInput")),
        }
    )


def _outcome(message: Object, *, allowed: bool) -> JSON:
    """The option of a request for permission that allows it once, or refuses it."""
    offered = object_at(message, "params").get("options")
    listed = offered if isinstance(offered, list) else []
    options = [one for one in listed if isinstance(one, Mapping)]
    kinds = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
    for kind in kinds:
        for option in options:
            if option.get("kind") == kind:
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return {"outcome": {"outcome": "cancelled"}}
