"""Clients that reach no model, and one made of clients: recorded replies, scripted ones, one client per model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import final

import anyio
import anyio.lowlevel

from ..errors import Divergence, InvalidInput
from ..events import ModelCalled
from ..log.contract import EventLog
from ..records import TRACE, Record
from .calls.call_records import recorded_failure, recorded_reply
from .protocol import ModelClient, ModelReply, ModelRequest, request_digest

__all__ = (
    "ClientPerModel",
    "RecordedModel",
    "ScriptedModel",
)


@final
class RecordedModel:
    """Answers each actor of each session as the log says that it was answered, in order.

    Failed attempts fail again. To see the same session come out, ask on terms that allow as many
    attempts as were made then, and without waits: ``Terms(retry=Retry(attempts=None, first=0))``.

    Args:
        log: holds the sessions, under the ids that they are run again with (in another log).
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._calls: dict[str, dict[str, deque[Record]]] = {}
        self._ends: dict[str, int] = {}
        self._reading = anyio.Lock(fast_acquire=True)  # a session must not be read twice

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next recorded reply to this actor.

        Raises:
            Divergence: the log holds a reply to another request there, or none.
            InvalidInput: the request does not say who asks.
            ModelError: the recorded call failed.
        """
        asker = request.asker
        if asker is None:
            raise InvalidInput("a recorded model has to know who asks; ask through a caller")
        calls = (await self._of(asker.session)).get(asker.actor)
        if not calls:
            what = f"it holds no further reply to {asker.actor!r}, who now asks {request.model!r}"
            raise Divergence(asker.session, self._ends[asker.session] + 1, what)
        record = calls.popleft()
        event = record.event
        digest = request_digest(request)
        if not isinstance(event, ModelCalled) or event.request != digest:
            held = event.request if isinstance(event, ModelCalled) else record.kind
            what = f"{asker.actor!r} was answered to request {held} then, and asks {digest} now"
            raise Divergence(asker.session, record.version, what)
        if event.error is not None:
            raise recorded_failure(event.error)
        return recorded_reply(event.reply, event.tokens, event.cost, event.latency)

    async def _of(self, session: str) -> dict[str, deque[Record]]:
        """The recorded calls of a session, by caller: an actor, or the stream of a scorer."""
        async with self._reading:
            calls = self._calls.get(session)
            if calls is None:
                calls, end = {}, 0
                async for record in self._log.read_all(session=session):
                    if record.stream == TRACE:
                        end = record.version
                    if record.kind == "ModelCalled":
                        asker = record.actor if record.stream == TRACE else record.stream
                        calls.setdefault(asker, deque()).append(record)
                self._calls[session], self._ends[session] = calls, end  # whole, or not at all
            return calls


@final
class ScriptedModel:
    """Answers as a function says.

    Args:
        answer: gives the reply, or just its text; what it raises is raised. (A ``ModelError`` counts
            as a call that failed.)
    """

    def __init__(self, answer: Callable[[ModelRequest], ModelReply | str]) -> None:
        self._answer = answer

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answers at once."""
        await anyio.lowlevel.checkpoint()
        reply = self._answer(request)
        return ModelReply(text=reply, finish="stop") if isinstance(reply, str) else reply


@final
class ClientPerModel:
    """A client made of clients.

    Args:
        clients: by the name of the model.
        otherwise: for all other models.
    """

    def __init__(self, clients: Mapping[str, ModelClient], otherwise: ModelClient) -> None:
        self._clients = dict(clients)
        self._otherwise = otherwise

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Asks once; see ``ModelClient``."""
        return await self._clients.get(request.model, self._otherwise).complete(request)
