"""An agent behind an endpoint that speaks OpenAI's chat completions, without any of its libraries."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from ...engine.budget import MESSAGE
from ...engine.errors import (
    MissingExtra,
    ModelBadReply,
    ModelDenied,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    TooLarge,
    malformed,
)
from ...engine.events import Tokens
from ...engine.models.protocol import ModelReply, ModelRequest, ToolCall
from ...engine.redaction import redact
from .address import Address

if TYPE_CHECKING:
    import httpx

__all__ = ("KEY", "Endpoint", "EndpointAgent")

KEY: Final = "DUOLOG_AGENT_KEY"
"""The variable of the environment with the key that endpoints are given, if they want one."""

_MOST = 8 * 1024 * 1024  # bytes of a reply
_CONNECT = 10.0  # seconds until a server has to have accepted a connection
_SHOWN = 300


class _Function(msgspec.Struct, frozen=True):
    name: str
    arguments: str | dict[str, Any] = ""


class _Call(msgspec.Struct, frozen=True):
    function: _Function
    id: str | None = None


class _Said(msgspec.Struct, frozen=True):
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Said
    finish_reason: str | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct, frozen=True):
    choices: list[_Choice]
    usage: _Usage | None = None
    model: str | None = None


@final
class Endpoint:
    """The connection to the endpoint of an address; made once, for all sessions.

    Args:
        address: the address of the agent.

    Raises:
        MissingExtra: httpx is not installed.
    """

    def __init__(self, address: Address) -> None:
        if find_spec("httpx") is None:
            raise MissingExtra("agents", "an agent behind an endpoint")
        import httpx

        self.address = address
        secure = address.url.startswith("https:")
        self._verify: ssl.SSLContext | bool = httpx.create_ssl_context() if secure else False
        self.key = os.environ.get(KEY, "")

    def client(self) -> httpx.AsyncClient:
        """A separate client for one actor."""
        import httpx

        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        timeout = httpx.Timeout(None, connect=_CONNECT)
        return httpx.AsyncClient(headers=headers, timeout=timeout, verify=self._verify)


@final
class EndpointAgent:
    """The endpoint as one actor in one session asks it; see ``ModelClient``.

    Args:
        endpoint: reaches it.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client = endpoint.client()
        self._where = endpoint.address.url

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Asks once."""
        import httpx

        began = time.perf_counter()
        body = msgspec.json.encode(_body(request, self._endpoint.address.model))
        try:
            async with self._client.stream(
                "POST",
                f"{self._where}/chat/completions",
                content=body,
                headers={"Content-Type": "application/json"},
            ) as response:
                content = await self._read(response)
        except httpx.TimeoutException as error:
            raise ModelTimeout(self._said("does not answer", error)) from None
        except httpx.HTTPError as error:
            raise ModelUnavailable(self._said("cannot be reached", error)) from None
        if response.status_code != 200:
            raise self._error(response, content)
        return self._reply(content, time.perf_counter() - began)

    async def close(self) -> None:
        """Closes its connections."""
        await self._client.aclose()

    async def _read(self, response: httpx.Response) -> bytes:
        content = bytearray()
        async for part in response.aiter_bytes():
            content += part
            if len(content) > _MOST:
                raise ModelBadReply(f"{self._where} answers with more than {_MOST // 2**20} MB")
        return bytes(content)

    def _reply(self, content: bytes, seconds: float) -> ModelReply:
        try:
            MESSAGE.check_json(content)
            found = msgspec.json.decode(content, type=_Completion)
        except (msgspec.DecodeError, RecursionError, UnicodeError, TooLarge) as error:
            raise ModelBadReply(
                f"{self._where} answers {self._quoted(content)!r}, which is not a completion: {malformed(error)}"
            ) from None
        if not found.choices:
            raise ModelBadReply(f"{self._where} answers with no choice")
        choice, usage = found.choices[0], found.usage or _Usage()
        return ModelReply(
            text=_text(choice.message.content),
            tool_calls=tuple(_calls(choice.message.tool_calls or ())),
            finish=choice.finish_reason,
            tokens=Tokens(prompt=usage.prompt_tokens, completion=usage.completion_tokens),
            latency=seconds,
            model=found.model,
        )

    def _error(self, response: httpx.Response, content: bytes) -> ModelError:
        code = response.status_code
        said = f"{self._where} answers with status {code}: {self._quoted(content)}"
        if code == 429:
            return ModelRateLimited(said, _seconds(response.headers.get("retry-after")))
        if code in (408, 425) or code >= 500:
            return ModelUnavailable(said)
        if code in (401, 403):
            return ModelDenied(f"{said}; a key is read from the environment, as {KEY}")
        if code == 404:
            return ModelDenied(f"{said}; the address ends before /chat/completions, with #MODEL")
        if code < 400:
            return ModelDenied(f"{said}; say the address that it redirects to")
        return ModelRefused(said)

    def _said(self, what: str, error: Exception) -> str:
        return f"{self._where} {what}: {self._quoted(f'{type(error).__name__} {error}'.encode())}"

    def _quoted(self, content: bytes) -> str:
        secrets = [self._endpoint.key] if self._endpoint.key else []
        text = redact(content[: 4 * _SHOWN].decode("utf-8", "replace"), secrets)
        return " ".join(text.split())[:_SHOWN]


def _body(request: ModelRequest, model: str) -> Mapping[str, object]:
    """A request in the endpoint's format, without unset fields."""
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": one.role, "content": one.content} for one in request.messages],
    }
    if request.tools:
        body["tools"] = [tool.schema for tool in request.tools]
    return body


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    return content or ""


def _calls(calls: Sequence[_Call]) -> list[ToolCall]:
    return [
        ToolCall(
            id=call.id or str(number),
            name=call.function.name,
            arguments=call.function.arguments
            if isinstance(call.function.arguments, str)
            else msgspec.json.encode(call.function.arguments).decode(),
        )
        for number, call in enumerate(calls, start=1)
    ]


def _seconds(text: str | None) -> float | None:
    """The delay in Retry-After; None if it is not a number of seconds."""
    return float(text) if text is not None and text.isascii() and text.isdecimal() else None
