"""Asks a model until there is an answer, and records each attempt before its reply is used.

Attempts are recorded in a ``CallLog``: an actor's context, or its counterpart for a scorer. On resuming,
it returns the recorded reply instead of making the attempt.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import NoReturn, Protocol, final

import anyio
import msgspec

from ...errors import (
    BudgetExhausted,
    Divergence,
    InvalidInput,
    MissingExtra,
    ModelDown,
    ModelError,
    ModelRefused,
)
from ...logger import get_logger
from ...session.context import Reply
from ..gateway import Models
from ..protocol import Asker, ModelReply, ModelRequest
from .call_records import failure_text, recorded_failure, recorded_reply, reply_json

__all__ = ("CallLog", "RetryingCaller")


class CallLog(Protocol):
    """Records calls; ``ActorContext.models`` is one."""

    async def call(
        self,
        *,
        model: str,
        purpose: str,
        request: object,
        send: Callable[[], Awaitable[Reply]],
        attempt: int,
    ) -> Reply:
        """Makes one attempt and records it, or returns the recorded one."""
        ...

    def excused(self) -> AbstractContextManager[None]:
        """A context for waits that are sure to end."""
        ...

    def interrupt(self, why: str | Divergence) -> NoReturn:
        """Leaves the session as the log has it."""
        ...


@final
class RetryingCaller:
    """Asks for one actor or scorer in one session.

    Args:
        models: shared by all sessions.
        log: where calls are recorded.
        asker: who asks.
        seed: the seed of the session's randomness; decides the jitter of waits.
        latency: seconds that a reply is recorded to have taken.
    """

    def __init__(
        self,
        models: Models,
        log: CallLog,
        asker: Asker,
        *,
        seed: int | None,
        latency: Callable[[ModelReply], float],
    ) -> None:
        self._models = models
        self._log = log
        self._asker = asker
        self._seed = seed
        self._latency = latency
        self._calls = 0

    async def ask(self, request: ModelRequest, purpose: str) -> ModelReply:
        """Asks a model, and retries failures that may pass; see ``Caller``."""
        self._calls += 1
        chance = random.Random(f"{self._seed}/{self._asker}/{self._calls}")
        retry = self._models.terms(request.model).retry
        anonymous = msgspec.structs.replace(request, asker=None)
        attempt = _Attempt(self._models, self._log, request, self._asker, purpose, self._latency)
        failures = 0
        while True:
            attempt.begin()
            came = await self._log.call(
                model=request.model,
                purpose=purpose,
                request=anonymous,
                send=attempt.make,
                attempt=attempt.number,
            )
            if came.error is None:
                return recorded_reply(came.reply, came.tokens, came.cost, came.latency)
            error = attempt.error or recorded_failure(came.error)
            if isinstance(error, ModelRefused):
                raise error
            if attempt.error is None:
                continue  # an earlier run of the program failed here, and tried again or ended
            failures += 1
            if not retry.again(error, failures):
                if not await self.outlasts(request.model, error):
                    self._log.interrupt(str(error))
                failures, attempt.wait = 0, 0.0
                continue
            attempt.wait = retry.wait(error, failures, chance)

    async def outlasts(self, model: str, error: ModelError) -> bool:
        """Whether to repeat a call that has failed permanently; see ``Models``."""
        with self._log.excused():
            return await self._models.outlasts(model, str(error))


class _Attempt:
    """The attempts at one request, made one by one.

    Attributes:
        number: the number of the attempt, from 1.
        wait: seconds of wall time to wait before the next one.
        error: how it failed, if it was made now and did fail.
    """

    def __init__(
        self,
        models: Models,
        log: CallLog,
        request: ModelRequest,
        asker: Asker,
        purpose: str,
        latency: Callable[[ModelReply], float],
    ) -> None:
        self._models = models
        self._log = log
        self._request = msgspec.structs.replace(request, asker=asker)
        self._purpose = purpose
        self._latency = latency
        self.number = 0
        self.wait = 0.0
        self.error: ModelError | None = None

    def begin(self) -> None:
        """Turns to the next attempt."""
        self.number += 1
        self.error = None

    async def make(self) -> Reply:
        """Waits, asks, and returns the outcome to be recorded."""
        began = time.perf_counter()
        with self._log.excused():
            if self.wait > 0:
                await anyio.sleep(self.wait)
            try:
                reply = await self._answer()
            except Divergence as error:
                self._log.interrupt(error)
            except (BudgetExhausted, InvalidInput, MissingExtra, ModelDown) as error:
                self._log.interrupt(str(error))  # no model was asked
            except ModelError as error:
                self.error = error
        if self.error is not None:
            failure = failure_text(self.error)
            self._note("model_call_failed", time.perf_counter() - began, error=failure)
            return Reply(error=failure)
        self._note("model_called", time.perf_counter() - began, answering=reply.latency)
        return Reply(
            reply=reply_json(reply),
            tokens=reply.tokens,
            latency=self._latency(reply),
            cost=reply.cost,
        )

    async def _answer(self) -> ModelReply:
        """The model's answer, as soon as it may be asked."""
        while True:
            try:
                return await self._models.attempt(self._request)
            except ModelDown as error:
                if not await self._models.outlasts(self._request.model, str(error)):
                    raise

    def _note(self, event: str, seconds: float, **values: object) -> None:
        asker = self._request.asker
        get_logger("models").info(
            event,
            session=asker.session if asker else None,
            actor=asker.actor if asker else None,
            model=self._request.model,
            purpose=self._purpose,
            attempt=self.number,
            waited=self.wait,
            seconds=seconds,
            **values,
        )
