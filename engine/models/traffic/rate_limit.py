"""A provider's rate limits per model: concurrent calls, requests and tokens per minute."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

import anyio
import msgspec

from ...errors import InvalidInput
from ...events import Tokens

__all__ = ("Admission", "RateLimiter", "Rates", "TokenWindow")

_MINUTE = 60.0


@final
class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Rate limits for calls of a model; None for unlimited.

    Attributes:
        concurrency: calls at once.
        requests_per_minute: calls begun in any 60 s.
        tokens_per_minute: prompt and completion tokens of the calls begun in any 60 s. A call counts
            with an estimate until its reply arrives.

    Raises:
        InvalidInput: a limit below 1.
    """

    concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInput(f"{name} must be at least 1, got {value}")


@final
class Admission:
    """One call within the last minute: when it passed, and how many tokens it counts for."""

    __slots__ = ("time", "tokens")

    def __init__(self, time: float, tokens: int) -> None:
        self.time = time
        self.tokens = tokens


@final
class TokenWindow:
    """The calls of the last 60 seconds, and when there is room for another.

    All times are seconds on one clock that never runs backward.
    """

    def __init__(self, rates: Rates) -> None:
        self._requests = rates.requests_per_minute
        self._tokens = rates.tokens_per_minute
        self._passed: deque[Admission] = deque()
        self._sum = 0

    def wait(self, tokens: int, now: float) -> float:
        """Seconds until a call of this many tokens may pass, as far as is known; 0 if at once."""
        passed = self._passed
        while passed and passed[0].time + _MINUTE <= now:
            self._sum -= passed.popleft().tokens
        until = now
        if self._requests is not None and len(passed) >= self._requests:
            until = passed[len(passed) - self._requests].time + _MINUTE
        if self._tokens is not None:
            over = self._sum + self._clip(tokens) - self._tokens
            for before in passed:
                if over <= 0:
                    break
                over -= before.tokens
                until = max(until, before.time + _MINUTE)
        return until - now

    def enter(self, tokens: int, now: float) -> Admission:
        """Counts a call from now on."""
        admission = Admission(now, self._clip(tokens))
        if self._requests is not None or self._tokens is not None:
            self._passed.append(admission)
            self._sum += admission.tokens
        return admission

    def correct(self, admission: Admission, tokens: int) -> None:
        """Corrects the number of tokens that a call is counted with."""
        if self._passed and admission.time >= self._passed[0].time:
            self._sum += tokens - admission.tokens
        admission.tokens = tokens

    def _clip(self, tokens: int) -> int:
        """A call larger than a minute allows counts as a whole minute, else it could never pass."""
        return tokens if self._tokens is None else min(tokens, self._tokens)


@final
class RateLimiter:
    """Lets calls of one model pass as its rates allow, first come, first served.

    All waits are real. Nothing is refused: a call that comes too early waits.
    """

    def __init__(self, rates: Rates) -> None:
        concurrency = rates.concurrency
        self._slots = None if concurrency is None else anyio.CapacityLimiter(concurrency)
        self._window = TokenWindow(rates)
        self._first = anyio.Lock(fast_acquire=True)  # held by the first in line
        self._not_before = 0.0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Waits until fewer calls than allowed are under way, and counts as one of them."""
        if self._slots is None:
            yield
            return
        owner = object()  # one task may make several calls
        try:
            self._slots.acquire_on_behalf_of_nowait(owner)  # a turn of the loop less
        except anyio.WouldBlock:
            await self._slots.acquire_on_behalf_of(owner)
        try:
            yield
        finally:
            self._slots.release_on_behalf_of(owner)

    async def enter(self, tokens: int) -> Admission:
        """Waits until the minute has room for a call of about this many tokens."""
        async with self._first:
            while True:
                now = anyio.current_time()
                wait = max(self._window.wait(tokens, now), self._not_before - now)
                if wait <= 0:
                    return self._window.enter(tokens, now)
                await anyio.sleep(wait)

    def used(self, admission: Admission, tokens: Tokens) -> None:
        """Replaces the estimate by the tokens that the reply counts, if it counts any."""
        if tokens.prompt is not None or tokens.completion is not None:
            self._window.correct(admission, (tokens.prompt or 0) + (tokens.completion or 0))

    def pause(self, seconds: float) -> None:
        """Holds back all calls for this many seconds, as the provider asked."""
        self._not_before = max(self._not_before, anyio.current_time() + seconds)
