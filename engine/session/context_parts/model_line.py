"""Model calls of one actor: recorded before the reply is used, and taken from the record on resuming."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import NoReturn, final

import msgspec

from ... import codec
from ...errors import Divergence
from ...events import JSON, ModelCalled, Tokens
from ...records import Draft
from ..sequencer import Sequencer
from ..time.scheduler import Turns
from ..view import View
from .turn_guard import TurnGuard

__all__ = ("ModelLine", "Reply")


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a model call, as it is recorded; see ``ModelCalled``."""

    reply: JSON = None
    tokens: Tokens = Tokens()
    latency: float = 0.0
    cost: float | None = None
    error: str | None = None

    @classmethod
    def recorded(cls, event: ModelCalled) -> Reply:
        """The outcome that an event records."""
        return cls(
            reply=event.reply,
            tokens=event.tokens,
            latency=event.latency,
            cost=event.cost,
            error=event.error,
        )

    def event(self, *, model: str, purpose: str, request: str, attempt: int) -> ModelCalled:
        """The event that records the outcome; ``request`` is the digest of the request."""
        return ModelCalled(
            model=model,
            purpose=purpose,
            request=request,
            reply=self.reply,
            tokens=self.tokens,
            latency=self.latency,
            cost=self.cost,
            error=self.error,
            attempt=attempt,
        )


@final
class ModelLine:
    """Records one actor's model calls.

    Args:
        view: the records that the actor can see.
        guard: of its context.
        sequencer: records the calls.
        turns: the session's clock.
    """

    def __init__(self, view: View, guard: TurnGuard, sequencer: Sequencer, turns: Turns) -> None:
        self._view = view
        self._guard = guard
        self._sequencer = sequencer
        self._turns = turns

    async def call(
        self,
        *,
        model: str,
        purpose: str,
        request: object,
        send: Callable[[], Awaitable[Reply]],
        attempt: int = 1,
    ) -> Reply:
        """Asks a model, and records the call before the reply is used.

        On re-executing a recorded session the recorded reply is taken, and ``send`` not called.

        Args:
            model: the model's name.
            purpose: of the call, e.g. ``act``.
            request: the whole request, as JSON can say it; its digest is recorded.
            send: asks, and waits for the reply.
            attempt: 1 for the first try.

        Raises:
            Divergence: the recorded session did something else here.
        """
        self._guard.check()
        digest = codec.digest(request)
        view, sequencer = self._view, self._sequencer
        held = sequencer.recorded_next
        if held is None:
            await sequencer.flush()
            reply = await send()
        else:
            event = held.event
            if not isinstance(event, ModelCalled) or held.actor != view.me:
                sequencer.diverge(
                    held.version,
                    f"the log holds {held.kind} of {held.actor!r}, now {view.me!r} asks a model",
                )
            reply = Reply.recorded(event)
        called = reply.event(model=model, purpose=purpose, request=digest, attempt=attempt)
        records = await sequencer.emit(
            view.role,
            lambda: [
                Draft(called, view.me, view.role, self._turns.now(), seen=view.version),
            ],
        )
        # As it was recorded, without secrets: the actor sees the same when it is executed again.
        recorded = records[-1].event if records else called
        return Reply.recorded(recorded) if isinstance(recorded, ModelCalled) else reply

    def excused(self) -> AbstractContextManager[None]:
        """A context for a wait that is sure to end because it has a separate time-out: the actor
        does not become overdue if it holds the turn meanwhile.
        """
        self._guard.check()
        return self._turns.excused()

    def interrupt(self, why: str | Divergence) -> NoReturn:
        """Leaves the session as the log has it, to be resumed; see ``ActorContext.interrupt``."""
        self._guard.check()
        self._sequencer.interrupt(why)
