"""How scorers ask models: each attempt is a measurement, recorded together with its results."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn, final

from ... import codec
from ...errors import Divergence, SessionInterrupted
from ...events import ModelCalled, ScorerRef
from ...records import Record
from ...scorers.protocol import Measurement, stream_of
from ...session.context import Reply
from ..gateway import Models
from ..protocol import Asker, ModelReply, ModelRequest
from .attempts import RetryingCaller

__all__ = ("ScorerCaller",)


@final
class ScorerCaller:
    """Asks models for one scorer's work on one session; see ``Caller``.

    A scorer's ``SessionScorer`` passes ``attend`` on to it, and returns what ``take`` gives before
    the measurements that follow from the replies, so that both are recorded at once::

        reply = await self._caller.ask(request, purpose="judge")
        return [*self._caller.take(), Measurement(ProgressRated(...), f"round/{number}")]

    If a model cannot be reached, the session is interrupted, and the attempts since the last
    measurements are not in the log. Scorers take no session time, so their calls have no latency.

    Args:
        models: shared by all sessions.
        session: session id.
        ref: who scores.
    """

    def __init__(self, models: Models, session: str, ref: ScorerRef) -> None:
        self._log = _ScorerCallLog(session)
        self._asking = RetryingCaller(
            models,
            self._log,
            Asker(session, stream_of(ref)),
            seed=None,
            latency=lambda reply: 0.0,
        )

    def attend(
        self, recorded: Sequence[Record], excused: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Takes over the calls that the log holds; see ``Attended``."""
        self._log.attend(recorded, excused)

    async def ask(self, request: ModelRequest, *, purpose: str) -> ModelReply:
        """Asks a model; see ``Caller``."""
        return await self._asking.ask(request, purpose)

    def take(self) -> list[Measurement]:
        """The attempts since the last time, in order, to be recorded."""
        return self._log.take()


class _ScorerCallLog:
    """Collects the calls of one scorer in one session."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._recorded: deque[Record] = deque()
        self._excused: Callable[[], AbstractContextManager[None]] = nullcontext
        self._calls = 0
        self._fresh: list[Measurement] = []

    def attend(
        self, recorded: Sequence[Record], excused: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._recorded.extend(record for record in recorded if record.kind == "ModelCalled")
        self._excused = excused

    async def call(
        self,
        *,
        model: str,
        purpose: str,
        request: object,
        send: Callable[[], Awaitable[Reply]],
        attempt: int,
    ) -> Reply:
        digest = codec.digest(request)
        held = self._next(digest)
        reply = await send() if held is None else Reply.recorded(held)
        called = held or reply.event(model=model, purpose=purpose, request=digest, attempt=attempt)
        self._calls += 1
        self._fresh.append(Measurement(called, f"call/{self._calls}"))
        return reply

    def excused(self) -> AbstractContextManager[None]:
        return self._excused()

    def interrupt(self, why: str | Divergence) -> NoReturn:
        raise SessionInterrupted(self._session, why) if isinstance(why, str) else why

    def take(self) -> list[Measurement]:
        fresh, self._fresh = self._fresh, []
        return fresh

    def _next(self, digest: str) -> ModelCalled | None:
        """The call that the log holds in this place."""
        if not self._recorded:
            return None
        record = self._recorded.popleft()
        event = record.event
        if not isinstance(event, ModelCalled) or event.request != digest:
            held = event.request if isinstance(event, ModelCalled) else record.kind
            what = f"{record.actor!r} asked a model {held} then, and asks it {digest} now"
            raise Divergence(self._session, record.version, what)
        return event
