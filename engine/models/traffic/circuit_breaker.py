"""A circuit breaker per model: what fails again and again is left alone for a while, then probed."""

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

__all__ = ("Breaker", "Circuit")


@final
class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """When a circuit opens, and when it is given up.

    Attributes:
        failures: failures in a row, over all sessions, that open it.
        pause: seconds until the first probe; doubled after each probe that fails.
        longest: seconds that the doubling ends at.
        probes: probes in a row that may fail before the model counts as down.
        denials: calls in a row that the provider may turn away (for want of a key, say) before it
            does so too.
    """

    failures: int = 10
    pause: float = 5.0
    longest: float = 120.0
    probes: int = 6
    denials: int = 3


@final
class Circuit:
    """The circuit to one model.

    While it is closed all calls pass. While it is open they wait, for that costs wall time only,
    and one at a time passes as a probe: if it succeeds, the circuit closes. After too many failed
    probes, or a provider that lets nobody in, the model is down: calls fail at once.

    Args:
        model: its name.
        breaker: when to open.
        patience: seconds; a provider that asks to wait for longer is down as well.
    """

    def __init__(self, model: str, breaker: Breaker, patience: float) -> None:
        self._model = model
        self._breaker = breaker
        self._patience = patience
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
        """Why the model is asked no more; None while it is."""
        return self._down

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
            if self._denials >= self._breaker.denials:
                self._down = str(error)
            raise
        except ModelRateLimited as error:
            self._succeed()
            if (error.retry_after or 0.0) > self._patience:
                self._down = f"it asks to wait for {error.retry_after:.0f} s: {error}"
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
        self._failures = self._failed_probes = self._denials = 0
        if self._probe_at is not None:
            self._probe_at = None
            self._wake()

    def _fail(self, error: ModelError, *, probe: bool) -> None:
        breaker = self._breaker
        if probe:
            self._failed_probes += 1
            if self._failed_probes >= breaker.probes:
                self._down = f"{self._failed_probes} probes in a row have failed, the last: {error}"
                return
        elif self._probe_at is None:
            self._failures += 1
            if self._failures < breaker.failures:
                return
        else:
            return  # it began before the circuit opened, and says nothing new
        pause = min(breaker.longest, breaker.pause * 2.0**self._failed_probes)
        self._probe_at = anyio.current_time() + pause

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
