"""The models of an experiment: one attempt at a call, through cache, budget, circuit and rates."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar, final

import anyio
import msgspec

from ..errors import (
    InvalidInput,
    ModelError,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
    PluginFailed,
)
from ..log.contract import EventLog
from ..logger import get_logger
from ..plugins import PluginCall
from .prompting.json_schema import load_library
from .protocol import ModelClient, ModelReply, ModelRequest, Preparing
from .traffic.budget import Budget, Spending, follow_spending
from .traffic.cache import ResponseCache
from .traffic.circuit_breaker import Breaker, Circuit
from .traffic.rate_limit import RateLimiter, Rates
from .traffic.retry import Retry

__all__ = ("ModelStatistics", "Models", "Outage", "Terms")

T = TypeVar("T")

Outage: TypeAlias = Callable[[str], Awaitable[bool]]
"""Called with the reason that a model cannot be asked; returns whether to ask again, after a wait
of any length.
"""

_CHARACTERS_PER_TOKEN = 4
_COMPLETION = 500


@final
class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms for calls of a model.

    Attributes:
        timeout: seconds of wall time until an attempt counts as failed, even if a part of the
            answer has arrived.
        rates: the provider's rate limits.
        retry: when and how to try again.
        breaker: when to leave the model alone for a while.
    """

    timeout: float = 120.0
    rates: Rates = Rates(concurrency=64)
    retry: Retry = Retry()
    breaker: Breaker = Breaker()


@final
class ModelStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of the calls that this program made.

    Attributes:
        spent: calls, failures, tokens and cost.
        hits: requests that the response cache answered.
        misses: requests that it could not; both 0 without a cache.
        waited: seconds of wall time that calls stood in line, summed over all of them.
        answering: seconds of wall time that models took, summed likewise.
        down: models that are asked no more, and why.
    """

    spent: Spending
    hits: int
    misses: int
    waited: float
    answering: float
    down: Mapping[str, str]


@final
class Models:
    """All models of an experiment, shared by its sessions.

    Each actor asks through a separate caller (see ``model_actor``); all callers share this.

    Args:
        client: reaches the models.
        terms: on what terms they are asked.
        terms_of: other terms for some, by the name of the model.
        budget: what all calls together may use up.
        cache: answers what was asked before.
        on_outage: decides whether a call that has failed for good is made again. Without it, its
            session is interrupted. For sessions with people, who can tell, and can wait.
    """

    def __init__(
        self,
        client: ModelClient,
        *,
        terms: Terms | None = None,
        terms_of: Mapping[str, Terms] | None = None,
        budget: Budget | None = None,
        cache: ResponseCache | None = None,
        on_outage: Outage | None = None,
    ) -> None:
        self._on_outage = on_outage
        self._client = client
        self._preparing = client if isinstance(client, Preparing) else None
        self._terms = terms or Terms()
        self._terms_of = dict(terms_of or {})
        self._budget = budget
        self._cache = cache
        self._limiters: dict[str, RateLimiter] = {}
        self._circuits: dict[str, Circuit] = {}
        self._spent = Spending()
        self._waited = 0.0
        self._answering = 0.0
        get_logger("models")  # both are loaded before a loop would wait for that
        load_library()

    def terms(self, model: str) -> Terms:
        """The terms for calls of a model."""
        return self._terms_of.get(model, self._terms)

    async def attempt(self, request: ModelRequest) -> ModelReply:
        """Asks once, when it is this call's turn. Waits for that are real.

        Raises:
            BudgetExhausted: no call was made; nothing is left of the budget.
            ModelDown: no call was made; the model has failed too often.
            InvalidInput: no call was made; the response cache cannot be read.
            ModelError: the call failed.
        """
        if self._cache is not None:
            held = await self._cache.get(request)
            if held is not None:
                self._count(request, held)
                return held
        reply = await self._in_line(request)
        if self._cache is not None:
            try:
                await self._cache.put(request, reply)
            except InvalidInput as error:  # the reply is there, and paid for
                get_logger("models").warning("response_cache_not_written", error=str(error))
        return reply

    async def outlasts(self, model: str, why: str) -> bool:
        """Whether to repeat a call that has failed permanently; may wait before it answers."""
        if self._on_outage is None or not await self._on_outage(why):
            return False
        self._at(model)[1].retry()
        return True

    async def follow_spending(
        self, log: EventLog, *, after_position: int, by: Container[str] | None = None
    ) -> None:
        """Counts calls of other processes towards the budget; see ``traffic.budget``."""
        if self._budget is not None and self._budget.limited:
            await follow_spending(log, self._budget, after_position=after_position, by=by)

    @property
    def stopped(self) -> str | None:
        """Why no further session should be started; None while they should."""
        if self._budget is not None and self._budget.exhausted is not None:
            return f"the budget of the experiment is used up: {self._budget.exhausted}"
        down = self._down()
        if down and len(down) == len(self._circuits):
            return "; ".join(
                str(why) if model in str(why) else f"model {model!r} is down: {why}"
                for model, why in down.items()
            )
        return None

    def while_reachable(self, sessions: Iterable[Callable[[], T]]) -> Iterator[Callable[[], T]]:
        """Makers of sessions for as long as it makes sense to start one.

        For ``simulate``: if the budget is used up, or every model is down, sessions under way end
        or can be resumed, and no further session is started. ``stopped`` then says why.
        """
        for make in sessions:
            if self.stopped is not None:
                return
            yield make

    def statistics(self) -> ModelStatistics:
        """Statistics of the calls so far."""
        cache = self._cache
        return ModelStatistics(
            spent=self._spent,
            hits=cache.hits if cache else 0,
            misses=cache.misses if cache else 0,
            waited=self._waited,
            answering=self._answering,
            down=self._down(),
        )

    async def _in_line(self, request: ModelRequest) -> ModelReply:
        """Waits for a slot, for a circuit that is closed, and for room in the minute; then asks."""
        model = request.model
        limiter, circuit = self._at(model)
        came = time.perf_counter()
        async with limiter.slot(), circuit.passing():
            admission = await limiter.enter(_estimate(request))
            if self._budget is not None:
                self._budget.check()  # now, since those ahead may have used it up
            self._waited += time.perf_counter() - came
            try:
                reply = await self._ask(request)
            except ModelRateLimited as error:
                if error.retry_after and error.retry_after <= self.terms(model).retry.patience:
                    limiter.pause(error.retry_after)
                raise
            limiter.used(admission, reply.tokens)
            return reply

    async def _ask(self, request: ModelRequest) -> ModelReply:
        """One call of the client, bounded in time and counted."""
        timeout = self.terms(request.model).timeout
        began = time.perf_counter()
        try:
            try:
                with PluginCall(f"the client of {request.model!r}"):
                    if self._preparing is not None:
                        await self._preparing.prepare()
                    began = time.perf_counter()
                    with anyio.fail_after(timeout):
                        reply = await self._client.complete(request)
            except PluginFailed as error:  # it lost its connection, say; another call may do
                raise ModelUnavailable(str(error)) from error
            except TimeoutError:
                raise ModelTimeout(
                    f"no whole answer from {request.model!r} within {timeout:g} s"
                ) from None
        except ModelError:
            self._count(request, None)
            raise
        finally:
            self._answering += time.perf_counter() - began
        self._count(request, reply)
        return reply

    def _count(self, request: ModelRequest, reply: ModelReply | None) -> None:
        """Counts a reply, or a failure."""
        self._spent = self._spent.after(reply)
        if self._budget is not None:
            self._budget.spend(request.asker, reply)

    def _at(self, model: str) -> tuple[RateLimiter, Circuit]:
        limiter, circuit = self._limiters.get(model), self._circuits.get(model)
        if limiter is None or circuit is None:
            terms = self.terms(model)
            limiter = self._limiters[model] = RateLimiter(terms.rates)
            circuit = self._circuits[model] = Circuit(model, terms.breaker, terms.retry.patience)
        return limiter, circuit

    def _down(self) -> dict[str, str]:
        return {model: c.down for model, c in self._circuits.items() if c.down is not None}


def _estimate(request: ModelRequest) -> int:
    """About how many tokens a call will take, before they are counted."""
    characters = sum(len(message.content) for message in request.messages)
    written = _COMPLETION if request.max_tokens is None else request.max_tokens
    return characters // _CHARACTERS_PER_TOKEN + written
