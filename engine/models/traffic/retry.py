"""When a call that failed is made again, and how long to wait before."""

from __future__ import annotations

import random
from typing import final

import msgspec

from ...errors import ModelBadReply, ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable

__all__ = ("Retry",)

_TRANSIENT = (ModelBadReply, ModelRateLimited, ModelTimeout, ModelUnavailable)
_MOST_DOUBLINGS = 32


@final
class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """Exponential back-off with jitter, which honours the provider's Retry-After.

    Waits are real: they take wall time, but not session time.

    Attributes:
        attempts: how often one request is tried before its session is interrupted; None for
            unlimited. Attempts of an earlier run of the program do not count.
        first: seconds to wait after the first failure; doubled with each further one.
        longest: the most seconds that the doubling reaches.
        jitter: share of the wait, 0 to 1, that may be subtracted at random, so that calls that
            failed together do not retry together.
        patience: seconds; if a provider asks for a longer wait, the session is interrupted, and
            the model counts as down.
    """

    attempts: int | None = 6
    first: float = 1.0
    longest: float = 60.0
    jitter: float = 0.5
    patience: float = 600.0

    def again(self, error: ModelError, failures: int) -> bool:
        """Whether to try again after this many failures; ``error`` is the last one."""
        if not isinstance(error, _TRANSIENT):
            return False
        if (_asked(error) or 0.0) > self.patience:
            return False
        return self.attempts is None or failures < self.attempts

    def wait(self, error: ModelError, failures: int, chance: random.Random) -> float:
        """Seconds to wait after this many failures; ``error`` is the last one.

        The wait is never shorter than the provider asks: jitter is added to that, not subtracted.
        """
        doubled: float = self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
        backoff = min(self.longest, doubled)
        drawn = backoff * self.jitter * chance.random()
        asked = _asked(error)
        return backoff - drawn if asked is None else max(backoff - drawn, asked + drawn)


def _asked(error: ModelError) -> float | None:
    return error.retry_after if isinstance(error, ModelRateLimited | ModelUnavailable) else None
