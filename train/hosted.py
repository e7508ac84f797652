"""The simulated user of any task for other harnesses, which talk to it as to a model: by chat completions.

The harness plays the agent. The user's replies and the harness's messages are a session in the log, with the
user's effort.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import anyio
import anyio.abc
import msgspec

from ..engine import codec
from ..engine.errors import DuologError, InvalidInput, MissingExtra
from ..engine.log.contract import EventLog
from ..engine.session.decisions import Decision, Say, Submit
from ..engine.task import Task
from ..scoring.trajectory.token_estimate import estimate_tokens
from .episode import Episode, EpisodeSetting
from .seat import Observation

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ("STOP", "HostedUser", "Reply", "UserEndpoint", "WebApp", "user_app")

_Event: TypeAlias = MutableMapping[str, Any]

WebApp: TypeAlias = Callable[
    [_Event, Callable[[], Awaitable[_Event]], Callable[[_Event], Awaitable[None]]], Awaitable[None]
]
"""An application that any ASGI server runs."""

STOP: Final = "###STOP###"
"""The text that ends the last reply of a user, as harnesses expect it."""

_SILENCE: Final = "(says nothing)"
_LARGEST: Final = 8 * 1024 * 1024  # bytes of a request


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of a user.

    Attributes:
        text: their words.
        session: id of the session in the log.
        done: the session is over.
        ended: why it was closed; None while it is open.
        effort: the user's effort so far, by measure.
    """

    text: str
    session: str
    done: bool = False
    ended: str | None = None
    effort: Mapping[str, float | None] = {}


@final
class HostedUser:
    """One simulated user, to be talked to; used with ``async with``.

    Args:
        log: where the session is recorded; it has to be open.
        setting: how it is set up.
    """

    def __init__(self, log: EventLog, setting: EpisodeSetting | None = None) -> None:
        self._episode = Episode(log, setting)

    async def __aenter__(self) -> HostedUser:
        """Opens what runs the session."""
        await self._episode.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """Closes an open session as ``cancelled``."""
        return await self._episode.__aexit__(kind, error, trace)

    async def begin(self, task: str | Task, problem: str, *, persona: str, seed: int = 0) -> Reply:
        """Begins a session; the reply is the user's request. See ``Episode.reset``."""
        return self._reply(await self._episode.reset(task, problem, persona=persona, seed=seed))

    async def say(self, text: str, *, output: str | None = None) -> Reply:
        """Says something to the user, and waits for their reply.

        Args:
            text: the message.
            output: a new version of the shared output, put up together with it.

        Raises:
            InvalidInput: the message is empty.
            SessionClosedError: the session is over.
        """
        if not text.strip():
            raise InvalidInput("a message to a user needs a text")
        put = () if output is None else (Submit(output),)
        return self._reply(await self._episode.step(Decision((*put, Say(text)))))

    def _reply(self, seen: Observation) -> Reply:
        words = [one.content for one in seen.messages if one.author == "human"]
        return Reply(
            text="\n".join(words) or ("" if seen.done else _SILENCE),
            session=self._episode.session,
            done=seen.done,
            ended=seen.ended,
            effort=self._episode.effort,
        )


class _Said(msgspec.Struct, frozen=True):
    role: str
    content: str | list[dict[str, Any]] | None = None


class _Asked(msgspec.Struct, frozen=True):
    model: str
    messages: list[_Said]
    stream: bool = False
    output: str | None = None


@final
class UserEndpoint:
    """Answers chat completions in the part of the user; used with ``async with``.

    The model's name says who it is: ``TASK/PERSONA/PROBLEM/SEED``. A conversation begins with a request that holds
    no assistant's message; its reply is the user's request, whatever the greeting. A later request repeats the
    conversation with the agent's next message at its end, as chat completions do, and is known by that.

    Args:
        log: where the sessions are recorded; it has to be open.
        setting: how they are set up.
        most: how many sessions are open at once; beyond it the oldest is closed as ``cancelled``.
    """

    def __init__(
        self, log: EventLog, setting: EpisodeSetting | None = None, *, most: int = 1000
    ) -> None:
        self._log = log
        self._setting = setting
        self._most = most
        self._open: dict[str, deque[_Talk]] = {}
        self._talks: deque[_Talk] = deque()
        self._replies: dict[str, Reply] = {}
        self._stack = AsyncExitStack()
        self._tasks: anyio.abc.TaskGroup | None = None

    async def __aenter__(self) -> UserEndpoint:
        """Opens what runs the sessions."""
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """Closes open sessions as ``cancelled``."""
        for talk in self._talks:
            talk.left.set()
        return await self._stack.__aexit__(kind, error, trace)

    async def complete(self, body: bytes) -> Mapping[str, object]:
        """Answers the body of a request with that of a completion.

        Raises:
            InvalidInput: the request cannot be read, the user is unknown, or the conversation is.
        """
        try:
            asked = msgspec.json.decode(body, type=_Asked)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise InvalidInput(
                f"the request cannot be read as a chat completion: {error}"
            ) from None
        if asked.stream:
            raise InvalidInput("this endpoint does not stream: leave 'stream' out")
        said = [(one.role, _text(one)) for one in asked.messages if one.role != "system"]
        whole = codec.digest([asked.model, [list(one) for one in said]])
        if any(role == "assistant" for role, _ in said):
            reply, talk = await self._go_on(asked, said, whole)
        else:
            reply, talk = await self._begin(asked.model)
        text = f"{reply.text} {STOP}".strip() if reply.done else reply.text
        self._replies[whole] = reply
        if talk is not None:
            if reply.done:
                talk.left.set()
                self._talks.remove(talk)
            else:
                known = [*said, ("assistant", text)]
                key = codec.digest([asked.model, [list(one) for one in known]])
                self._open.setdefault(key, deque()).append(talk)
        return _completion(asked.model, said, text, reply)

    async def _begin(self, model: str) -> tuple[Reply, _Talk]:
        parts = model.split("/")
        if len(parts) != 4 or not parts[3].isdecimal():
            raise InvalidInput(
                f"model {model!r} names no user: write TASK/PERSONA/PROBLEM/SEED, such as "
                "travel/proactive/0/7"
            )
        task, persona, problem, seed = parts
        talk = _Talk(HostedUser(self._log, self._setting))
        if self._tasks is None:
            raise InvalidInput("an endpoint is used as: async with UserEndpoint(log) as endpoint")
        while len(self._talks) >= self._most:
            self._talks.popleft().left.set()
        await self._tasks.start(talk.live)
        self._talks.append(talk)
        try:
            return await talk.user.begin(task, problem, persona=persona, seed=int(seed)), talk
        except DuologError:
            talk.left.set()
            self._talks.remove(talk)
            raise

    async def _go_on(
        self, asked: _Asked, said: Sequence[tuple[str, str]], whole: str
    ) -> tuple[Reply, _Talk | None]:
        if said[-1][0] != "user":
            raise InvalidInput("the last message has to be the agent's, with the role 'user'")
        key = codec.digest([asked.model, [list(one) for one in said[:-1]]])
        talks = self._open.get(key, deque())
        while talks and talks[0].left.is_set():
            talks.popleft()
        if talks:
            talk = talks.popleft()
            if not talks:
                self._open.pop(key, None)
            return await talk.user.say(said[-1][1], output=asked.output), talk
        if whole in self._replies:  # asked again, since the reply was lost on the way
            return self._replies[whole], None
        raise InvalidInput(
            "this conversation is unknown: it began elsewhere, was changed on the way, or is over"
        )


@final
class _Talk:
    """A conversation that is under way, in a task that opens and closes what runs its session."""

    def __init__(self, user: HostedUser) -> None:
        self.user = user
        self.left = anyio.Event()

    async def live(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with self.user:
            task_status.started()
            await self.left.wait()


def user_app(endpoint: UserEndpoint) -> WebApp:
    """The web application with ``POST /v1/chat/completions``; for any ASGI server.

    Args:
        endpoint: answers; it has to be entered.

    Raises:
        MissingExtra: Starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.responses import Response
        from starlette.routing import Route
    except ModuleNotFoundError as error:
        raise MissingExtra("web", "serving simulated users") from error

    async def completions(request: Request) -> Response:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST:
                return answer({"error": {"message": "the request is too large"}}, 413)
        try:
            return answer(await endpoint.complete(bytes(body)), 200)
        except InvalidInput as error:
            said = {"message": str(error), "type": "invalid_request_error", "code": None}
            return answer({"error": said}, 400)

    def answer(value: object, status: int) -> Response:
        return Response(msgspec.json.encode(value), status, media_type="application/json")

    return Starlette(routes=[Route("/v1/chat/completions", completions, methods=["POST"])])


def _text(said: _Said) -> str:
    if isinstance(said.content, list):
        return "".join(str(part.get("text") or "") for part in said.content)
    return said.content or ""


def _completion(
    model: str, said: Sequence[tuple[str, str]], text: str, reply: Reply
) -> Mapping[str, object]:
    read = sum(estimate_tokens(one) for _, one in said)
    written = estimate_tokens(text)
    return {
        "id": f"chatcmpl-{reply.session}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        },
        "duolog": msgspec.to_builtins(reply),
    }
