"""A circuit breaker per model: a model that keeps failing is paused for a while, then probed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

import anyio
import msgspec

from ...errors import (
    ModelBadReply,
    ModelDenied,
    ModelDown,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from ...logger import get_logger

__all__ = ("Breaker", "Circuit")


@final
class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """When a circuit opens, and when the model counts as down.

    Attributes:
        failures: failures in a row, over all sessions, that open it.
        pause: seconds until the first probe; doubled after each probe that fails.
        longest: the most seconds between probes.
        probes: probes in a row that may fail before the model counts as down.
        unanswered_failures: like ``failures``, for a model that has never answered, so that a wrong
            address or a broken server is noticed quickly.
        unanswered_probes: like ``probes``, for such a model.
        denials: calls in a row that the provider may deny (because a key is missing, for example)
            before the model counts as down.
    """

    failures: int = 10
    pause: float = 5.0
    longest: float = 120.0
    probes: int = 6
    unanswered_failures: int = 5
    unanswered_probes: int = 2
    denials: int = 3


@final
class Circuit:
    """The circuit to one model.

    While it is closed all calls pass. While it is open they wait, for that costs wall time only,
    and one at a time passes as a probe (it is half open): if it succeeds, the circuit closes. After
    too many failed probes, or if the provider denies all calls, the model is down: calls fail
    immediately until ``retry`` is called.

    Args:
        model: its name.
        breaker: when to open.
        patience: seconds; a provider that asks to wait for longer is down as well.
    """

    def __init__(self, model: str, breaker: Breaker, patience: float) -> None:
        self._model = model
        self._breaker = breaker
        self._patience = patience
        self._answered = False
        self._failures = 0
        self._denials = 0
        self._failed_probes = 0
        self._probe_at: float | None = None
        self._probing = False
        self._changed = anyio.Event()
        self._down: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether calls have to wait."""
        return self._probe_at is not None

    @property
    def down(self) -> str | None:
        """Why the model is no longer called; None while it is called."""
        return self._down

    def retry(self) -> None:
        """Allows calls of a model that is down again: the next call is a probe."""
        if self._down is not None:
            self._down = None
            self._denials = 0
            self._probe_at = anyio.current_time()

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Waits until a call may be made, and learns from how it ends.

        Raises:
            ModelDown: the model is asked no more.
        """
        probe = await self._enter()
        try:
            yield
        except (ModelBadReply, ModelTimeout, ModelUnavailable) as error:
            self._fail(error, probe=probe)
            raise
        except ModelDenied as error:
            self._denials += 1
            if self._denials >= self._breaker.denials or probe:
                self._give_up(str(error))
            raise
        except ModelRateLimited as error:
            self._succeed()
            if (error.retry_after or 0.0) > self._patience:
                self._give_up(f"it asks to wait for {error.retry_after:.0f} s: {error}")
            raise
        except ModelRefused:
            self._succeed()  # it has answered, if not as we wished
            raise
        else:
            self._succeed()
        finally:
            if probe:
                self._probing = False
            if probe or self._down:
                self._wake()

    async def _enter(self) -> bool:
        """Waits; True for a probe."""
        while True:
            if self._down is not None:
                raise ModelDown(f"model {self._model!r} is asked no more: {self._down}")
            if self._probe_at is None:
                return False
            ahead = self._probe_at - anyio.current_time()
            if ahead <= 0 and not self._probing:
                self._probing = True
                return True
            with anyio.move_on_after(None if ahead <= 0 else ahead):
                await self._changed.wait()

    def _succeed(self) -> None:
        self._answered = True
        self._failures = self._failed_probes = self._denials = 0
        if self._probe_at is not None:
            self._probe_at = None
            get_logger("models").warning("model_answers_again", model=self._model)
            self._wake()

    def _fail(self, error: ModelError, *, probe: bool) -> None:
        breaker = self._breaker
        if probe:
            self._failed_probes += 1
            most = (
                breaker.probes if self._answered else min(breaker.probes, breaker.unanswered_probes)
            )
            if self._failed_probes >= most:
                self._give_up(self._why(error))
                return
        elif self._probe_at is None:
            self._failures += 1
            if self._failures < self._most_failures:
                return
        else:
            return  # it began before the circuit opened, and says nothing new
        pause = min(breaker.longest, breaker.pause * 2.0**self._failed_probes)
        self._probe_at = anyio.current_time() + pause
        get_logger("models").warning(
            "model_circuit_open",
            model=self._model,
            failures=self._failures,
            probes=self._failed_probes,
            pause=pause,
            error=str(error),
        )

    @property
    def _most_failures(self) -> int:
        breaker = self._breaker
        if self._answered:
            return breaker.failures
        return min(breaker.failures, breaker.unanswered_failures)

    def _why(self, error: ModelError) -> str:
        """Why a model counts as down after its last failed probe."""
        probes = (
            "1 probe has"
            if self._failed_probes == 1
            else f"{self._failed_probes} probes in a row have"
        )
        failed = f"{probes} failed, the last: {error}"
        if self._answered:
            return failed
        return f"it has never answered; {self._failures} calls and {failed}"

    def _give_up(self, why: str) -> None:
        self._down = why
        get_logger("models").error("model_down", model=self._model, error=why)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
