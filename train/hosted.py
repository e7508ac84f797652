"""The simulated user of any task for other harnesses, which talk to it as to a model: by chat completions.

The harness plays the agent. The user's replies and the harness's messages are a session in the log, with the
user's effort.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, final

import anyio
import anyio.abc
import msgspec

from ..engine import codec
from ..engine.budget import Budget
from ..engine.errors import DuologError, InvalidInput, MissingExtra, TooLarge, malformed
from ..engine.log.contract import EventLog
from ..engine.session.decisions import Decision, Say, Submit
from ..scoring.display.texts import shorten
from ..scoring.trajectory.token_estimate import estimate_tokens
from .episode import Episode, EpisodeSetting
from .seat import Observation

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = (
    "STOP",
    "HostedUser",
    "Reply",
    "Talk",
    "UserEndpoint",
    "UserName",
    "WebApp",
    "read_user",
    "user_app",
)

_Event: TypeAlias = MutableMapping[str, Any]

WebApp: TypeAlias = Callable[
    [_Event, Callable[[], Awaitable[_Event]], Callable[[_Event], Awaitable[None]]], Awaitable[None]
]
"""An application that any ASGI server runs."""

STOP: Final = "###STOP###"
"""The text that ends the last reply of a user, as harnesses expect it."""

_SILENCE: Final = "(says nothing)"
_SHOWN: Final = 80  # characters of a name that an error quotes
_REQUEST: Final = Budget(size=8 << 20, objects=1 << 18)
_DIGITS: Final = 18  # of a seed, which every store can keep


class UserName(msgspec.Struct, frozen=True):
    """Which user is talked to, written as ``TASK/PERSONA/PROBLEM/SEED`` or ``TASK/PERSONA/PROBLEM/SEED/TALK``.

    Attributes:
        task: the task's name.
        persona: who they are.
        problem: the instance of the task.
        seed: the seed of the world and of all randomness.
        talk: the caller's own name of the conversation; empty for none.
    """

    task: str
    persona: str
    problem: str
    seed: int = 0
    talk: str = ""

    @property
    def text(self) -> str:
        """As it is written."""
        parts = [self.task, self.persona, self.problem, f"{self.seed}"]
        return "/".join([*parts, self.talk] if self.talk else parts)


def read_user(text: str) -> UserName:
    """The user that a text names.

    Raises:
        InvalidInput: it names none.
    """
    parts = text.split("/", 4)
    seed = "".join(parts[3:4])
    if len(parts) < 4 or not all(parts[:3]) or not seed.isdecimal() or len(seed) > _DIGITS:
        raise InvalidInput(
            f"{shorten(text, _SHOWN)!r} is not a user: write TASK/PERSONA/PROBLEM/SEED, such as travel/proactive/0/7"
        )
    return UserName(parts[0], parts[1], parts[2], int(seed), "".join(parts[4:]))


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

    @property
    def said(self) -> str:
        """Their words, followed by ``STOP`` once the session is over."""
        return f"{self.text} {STOP}".strip() if self.done else self.text


@final
class HostedUser:
    """One simulated user, to be talked to; used with ``async with``.

    Args:
        log: where the session is recorded; it has to be open.
        setting: how it is set up.

    Attributes:
        episode: the session. Its ``step`` takes actions that are not words, such as those of the task.
    """

    def __init__(self, log: EventLog, setting: EpisodeSetting | None = None) -> None:
        self.episode = Episode(log, setting)

    async def __aenter__(self) -> HostedUser:
        """Opens what runs the session."""
        await self.episode.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """Closes an open session as ``cancelled``."""
        return await self.episode.__aexit__(kind, error, trace)

    async def begin(self, user: UserName) -> Reply:
        """Begins a session; the reply is the user's request. See ``Episode.reset``."""
        return self._reply(
            await self.episode.reset(user.task, user.problem, persona=user.persona, seed=user.seed)
        )

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
        return self._reply(await self.episode.step(Decision((*put, Say(text)))))

    def _reply(self, seen: Observation) -> Reply:
        words = [one.content for one in seen.messages if one.author == "human"]
        return Reply(
            text="\n".join(words) or ("" if seen.done else _SILENCE),
            session=self.episode.session,
            done=seen.done,
            ended=seen.ended,
            effort=self.episode.effort,
        )


@final
class Talk:
    """A conversation that is under way, in a task that opens and closes what runs its session.

    Args:
        user: who is talked to.

    Attributes:
        left: set it to end the conversation.
        waits_at: the key by which an endpoint finds it for the agent's next message.
    """

    def __init__(self, user: HostedUser) -> None:
        self.user = user
        self.left = anyio.Event()
        self.waits_at: str | None = None

    async def live(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Keeps the session open until the conversation is left."""
        async with self.user:
            task_status.started()
            await self.left.wait()


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
    conversation with the agent's next message at its end, as chat completions do, and is known by that. If the
    model's name ends with a name for the conversation (``TASK/PERSONA/PROBLEM/SEED/TALK``), it is known by
    that instead, so that earlier messages may be shortened or left out.

    Args:
        log: where the sessions are recorded; it has to be open.
        setting: how they are set up.
        most: how many sessions are open at once; beyond it the oldest is closed as ``cancelled``. As many
            replies are kept for requests that are repeated.
    """

    def __init__(
        self, log: EventLog, setting: EpisodeSetting | None = None, *, most: int = 1000
    ) -> None:
        if most < 1:
            raise InvalidInput(f"an endpoint has room for at least one session, not {most}")
        self._log = log
        self._setting = setting
        self._most = most
        self._waiting: dict[str, deque[Talk]] = {}
        self._talks: dict[str, Talk] = {}
        self._named: dict[str, Talk] = {}
        self._replies: dict[str, Reply] = {}
        self._tasks: anyio.abc.TaskGroup | None = None

    async def __aenter__(self) -> UserEndpoint:
        """Opens what runs the sessions."""
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """Closes open sessions as ``cancelled``."""
        assert self._tasks is not None
        tasks, self._tasks = self._tasks, None
        for talk in self._talks.values():
            talk.left.set()
        if kind is None or issubclass(kind, Exception):  # the error is passed on as it is
            await tasks.__aexit__(None, None, None)
            return None
        return await tasks.__aexit__(kind, error, trace)

    def user(self, model: str) -> HostedUser | None:
        """The user of a conversation that has a name, by the model's name; None if none has begun."""
        talk = self._named.get(model)
        return None if talk is None else talk.user

    def dismiss(self, model: str) -> None:
        """Ends a conversation that has a name; an open session is closed as ``cancelled``."""
        talk = self._named.pop(model, None)
        self._waiting.pop(model, None)
        if talk is not None:
            self._end(talk)

    async def complete(self, body: bytes) -> Mapping[str, object]:
        """Answers the body of a request with that of a completion.

        Raises:
            InvalidInput: the request cannot be read, the user is unknown, or the conversation is.
            TooLarge: the request is.
        """
        _REQUEST.check_json(body)
        try:
            asked = msgspec.json.decode(body, type=_Asked)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise InvalidInput(
                f"the request cannot be read as a chat completion: {malformed(error)}"
            ) from None
        if asked.stream:
            raise InvalidInput("this endpoint does not stream: leave 'stream' out")
        user = read_user(asked.model)
        said = [(one.role, _text(one)) for one in asked.messages if one.role != "system"]
        whole = codec.digest([asked.model, said])
        begins = not any(role == "assistant" for role, _ in said)
        reply = self._replies.get(whole)
        if begins and (reply is None or not user.talk):
            reply = await self._begin(asked.model, user, said)
        elif not begins and (reply is None or not user.talk):
            talk = self._take(asked.model, user, said)
            if talk is not None:
                reply = await talk.user.say(said[-1][1], output=asked.output)
                self._keep(talk, reply, asked.model, user, said)
        if reply is None:
            raise InvalidInput(
                "this conversation is unknown: it began elsewhere, was changed on the way, or is over"
            )
        self._replies[whole] = reply
        _shorten(self._replies, self._most)
        return _completion(asked.model, said, reply)

    async def _begin(self, model: str, user: UserName, said: _Chat) -> Reply:
        if self._tasks is None:
            raise InvalidInput("an endpoint is used as: async with UserEndpoint(log) as endpoint")
        talk = Talk(HostedUser(self._log, self._setting))
        while len(self._talks) >= self._most:
            self._end(next(iter(self._talks.values())))
        await self._tasks.start(talk.live)
        try:
            reply = await talk.user.begin(user)
        except BaseException:
            talk.left.set()
            raise
        self._talks[reply.session] = talk
        if user.talk:
            self._named[model] = talk
            _shorten(self._named, self._most)
        self._keep(talk, reply, model, user, said)
        return reply

    def _end(self, talk: Talk) -> None:
        talk.left.set()
        self._talks.pop(talk.user.episode.session, None)
        key, talk.waits_at = talk.waits_at, None
        waiting = self._waiting.get(key or "")
        if key is not None and waiting is not None and talk in waiting:
            waiting.remove(talk)
            if not waiting:
                del self._waiting[key]

    def _take(self, model: str, user: UserName, said: _Chat) -> Talk | None:
        """The conversation that waits for this message of the agent's; None if there is none."""
        if said[-1][0] != "user":
            raise InvalidInput("the last message must be the agent's, with the role 'user'")
        key = _key(model, user, said[:-1])
        talks = self._waiting.pop(key, deque())
        if not talks:
            return None
        talk = talks.popleft()
        talk.waits_at = None
        if talks:
            self._waiting[key] = talks
        return talk

    def _keep(self, talk: Talk, reply: Reply, model: str, user: UserName, said: _Chat) -> None:
        """Keeps a conversation for the agent's next message, or ends it."""
        if reply.done or talk.left.is_set():  # it may have made room meanwhile
            self._end(talk)
        else:
            talk.waits_at = key = _key(model, user, [*said, ("assistant", reply.said)])
            self._waiting.setdefault(key, deque()).append(talk)


_V = TypeVar("_V")
_Chat: TypeAlias = Sequence[tuple[str, str]]


def _shorten(kept: dict[str, _V], most: int) -> None:
    """Removes the oldest, until as many are left."""
    while len(kept) > most:
        del kept[next(iter(kept))]


def _key(model: str, user: UserName, said: _Chat) -> str:
    """The key of a conversation: its name, or else a digest of all that was said."""
    return model if user.talk else codec.digest([model, said])


def user_app(endpoint: UserEndpoint, token: str | None = None) -> WebApp:
    """The web application with ``POST /v1/chat/completions``; for any ASGI server.

    Args:
        endpoint: answers; it has to be entered.
        token: required from clients, as their API key; None admits every client that addresses this
            machine by a local name.

    Raises:
        MissingExtra: Starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware
        from starlette.responses import Response
        from starlette.routing import Route

        from ..interop.http.auth import RequestGuard
        from ..interop.http.bodies import receive
    except ModuleNotFoundError as error:
        raise MissingExtra("web", "serving simulated users") from error

    async def completions(request: Request) -> Response:
        # A page of another site can send any other kind without asking this server first.
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return refusal("a request must be application/json", "invalid_request_error", 415)
        try:
            return answer(await endpoint.complete(await receive(request, _REQUEST)), 200)
        except HTTPException as error:
            return refusal(error.detail, "invalid_request_error", error.status_code)
        except TooLarge as error:
            return refusal(str(error), "invalid_request_error", 413)
        except InvalidInput as error:
            return refusal(str(error), "invalid_request_error", 400)
        except DuologError as error:
            return refusal(str(error), "server_error", 500)

    def refusal(why: str, kind: str, status: int) -> Response:
        return answer({"error": {"message": why, "type": kind, "code": None}}, status)

    def answer(value: object, status: int) -> Response:
        return Response(msgspec.json.encode(value), status, media_type="application/json")

    return Starlette(
        routes=[Route("/v1/chat/completions", completions, methods=["POST"])],
        middleware=[Middleware(RequestGuard, token=token)],
    )


def _text(said: _Said) -> str:
    if isinstance(said.content, list):
        return "".join(str(part.get("text") or "") for part in said.content)
    return said.content or ""


def _completion(model: str, said: _Chat, reply: Reply) -> Mapping[str, object]:
    text = reply.said
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
