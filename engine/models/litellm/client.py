"""Models through LiteLLM: any provider that it reaches, one attempt per call, facts from the reply.

LiteLLM takes seconds to import and belongs to the extra ``llm``: it is imported at the first call,
in a thread. Keys come from the environment, where LiteLLM looks for them (``OPENAI_API_KEY``, ...).
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Coroutine, Generator, Mapping, Sequence
from importlib.util import find_spec
from typing import Generic, Protocol, TypeVar, cast, final

import anyio.to_thread

from ...errors import InvalidInput, MissingExtra, ModelBadReply, ModelError
from ...events import JSON
from ..protocol import Message, ModelReply, ModelRequest
from .errors import model_error
from .load import load_litellm
from .replies import reply_of

__all__ = (
    "Cancellable",
    "LiteLLMModel",
    "check_options",
)


T = TypeVar("T")

_LITELLM = "litellm.main"


@final
class Cancellable(Generic[T]):
    """A call to be awaited in place of LiteLLM's coroutine; it runs in the same task.

    LiteLLM prepares each call in a thread, whose result is the coroutine that makes the call. If the
    caller is cancelled meanwhile, the thread runs to its end, and the coroutine is closed: one that is
    never awaited makes Python warn on the terminal.

    Args:
        call: the coroutine of ``litellm.acompletion``.
    """

    def __init__(self, call: Coroutine[object, object, T]) -> None:
        self._call = call

    def __await__(self) -> Generator[object, object, T]:
        """Runs the call step by step, and intercepts its waits for results from threads."""
        raised: BaseException | None = None
        while True:
            try:
                wait = self._call.send(None) if raised is None else self._call.throw(raised)
            except StopIteration as ended:
                return cast(T, ended.value)
            raised = None
            try:
                if isinstance(wait, asyncio.Future) and _prepares_in_thread(self._call):
                    yield from _abandonable(wait)
                else:
                    yield wait
            except BaseException as error:  # noqa: BLE001  (raised in the call, as Python would)
                raised = error


def _abandonable(prepared: asyncio.Future[object]) -> Generator[object, object, None]:
    """Waits for a future; a cancellation does not reach it, but closes the resulting coroutine."""
    prepared._asyncio_future_blocking = False  # it is not this future that the task waits for
    try:
        yield from asyncio.shield(prepared).__await__()
    except asyncio.CancelledError:
        if prepared.cancelled():  # from elsewhere: the call's own coroutine raises that
            return
        prepared.add_done_callback(_close)
        raise
    except Exception:  # noqa: BLE001  (the call takes it from the future itself)
        return


def _close(prepared: asyncio.Future[object]) -> None:
    if not prepared.cancelled() and prepared.exception() is None:
        result = prepared.result()
        if inspect.iscoroutine(result):
            result.close()


def _prepares_in_thread(call: Coroutine[object, object, object]) -> bool:
    """Whether LiteLLM's entry point itself waits: the only thing it awaits directly is its thread."""
    innermost: object = call
    while True:
        further = getattr(innermost, "cr_await", None)
        if not inspect.iscoroutine(further):
            break
        innermost = further
    frame = getattr(innermost, "cr_frame", None)
    return frame is not None and frame.f_globals.get("__name__") == _LITELLM


_FORBIDDEN = ("api_key", "callbacks", "num_retries", "max_retries", "stream", "fallbacks")


class _LiteLLM(Protocol):
    """The part of LiteLLM that is used here."""

    def acompletion(self, **arguments: object) -> Coroutine[object, object, object]: ...

    def stream_chunk_builder(self, chunks: Sequence[object]) -> object: ...


class _ReplyStream(Protocol):
    """The part of a streamed response that is used here."""

    chunks: Sequence[object]

    def __aiter__(self) -> AsyncIterator[object]: ...


@final
class LiteLLMModel:
    """Reaches models through LiteLLM.

    It sets up no callbacks and lets LiteLLM try once. The first use sets two things for the whole
    process: LiteLLM's price map is the one that it ships, not one fetched from the network (unless
    the environment variable LITELLM_LOCAL_MODEL_COST_MAP says otherwise), and its advice on errors
    is not printed.

    Args:
        api_base: base URL of the models, for your own servers; None for the provider's.
        stream: whether replies are streamed. It changes nothing in what comes out.
        options: further arguments of ``litellm.acompletion``, e.g. ``input_cost_per_token`` and
            ``output_cost_per_token`` for a model whose price it does not know.

    Raises:
        MissingExtra: LiteLLM is not installed.
        InvalidInput: an option that is Duolog's own to set, or a key.
    """

    def __init__(
        self,
        *,
        api_base: str | None = None,
        stream: bool = False,
        options: Mapping[str, JSON] | None = None,
    ) -> None:
        if find_spec("litellm") is None:
            raise MissingExtra("llm", "asking models through LiteLLM")
        self._options: dict[str, JSON] = dict(options or {})
        check_options(self._options)
        if api_base is not None:
            self._options["api_base"] = api_base
        self._stream = stream
        self._litellm: _LiteLLM | None = None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Asks once; see ``ModelClient``."""
        litellm = self._litellm or await self._load()
        check_options(request.options)
        arguments = {**self._options, **_arguments(request)}
        if self._stream:
            arguments |= {"stream": True, "stream_options": {"include_usage": True}}
        began = time.perf_counter()
        try:
            response = await Cancellable(litellm.acompletion(**arguments))
            counted = True
            if self._stream:
                response, counted = await _whole(litellm, cast(_ReplyStream, response))
            if response is None:
                raise ModelBadReply(f"{request.model!r}: the stream ended before the answer did")
            return reply_of(response, request.model, time.perf_counter() - began, counted=counted)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001  (named, or raised as it is, by model_error)
            # Without its cause: that may quote the key, and tracebacks are logged too.
            raise model_error(error, request.model, arguments) from None

    async def prepare(self) -> None:
        """Imports LiteLLM, which takes seconds."""
        if self._litellm is None:
            await self._load()

    async def _load(self) -> _LiteLLM:
        litellm = cast(_LiteLLM, await anyio.to_thread.run_sync(load_litellm))
        self._litellm = litellm
        return litellm


def check_options(options: Mapping[str, JSON]) -> None:
    """Refuses options of a call that are Duolog's own to set, and keys.

    Raises:
        InvalidInput: there is such an option. Its value is not repeated.
    """
    for name in _FORBIDDEN:
        if name in options:
            hint = "set it in the environment" if name == "api_key" else "leave it to Duolog"
            raise InvalidInput(f"{name} is not an option of a model call: {hint}")


def _arguments(request: ModelRequest) -> dict[str, object]:
    """A request as LiteLLM expects it, without the parts that are unset."""
    arguments: dict[str, object] = {
        **request.options,
        "model": request.model,
        "messages": [_message(message) for message in request.messages],
        "num_retries": 0,
        "max_retries": 0,
    }
    if request.tools:
        # Before it sends tools, LiteLLM looks for some that are its own business, and imports a
        # package for that which it does not require.
        arguments["_skip_mcp_handler"] = True
        arguments["tools"] = [tool.schema for tool in request.tools]
    for name in ("tool_choice", "temperature", "max_tokens", "seed"):
        value = getattr(request, name)
        if value is not None:
            arguments[name] = value
    if request.stop:
        arguments["stop"] = list(request.stop)
    return arguments


def _message(message: Message) -> dict[str, object]:
    said: dict[str, object] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        said["content"] = message.content or None
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        said["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        said["name"] = message.name
    return said


async def _whole(litellm: _LiteLLM, stream: _ReplyStream) -> tuple[object, bool]:
    """The response built from a stream (None if the stream broke off early), and whether the
    provider counted its tokens.

    If the provider omits the finish reason or the usage, LiteLLM makes it up in the response. The
    chunks are as received, so this looks there.
    """
    response = litellm.stream_chunk_builder([chunk async for chunk in stream])
    came = stream.chunks
    choices = [choice for chunk in came for choice in getattr(chunk, "choices", ())]
    if not any(getattr(choice, "finish_reason", None) for choice in choices):
        return None, False
    return response, any(getattr(chunk, "usage", None) for chunk in came)
