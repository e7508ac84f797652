"""The wall clock of recorders: it follows virtual time, and jumps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType, SimpleNamespace
from typing import final

from ....telemetry import actor, live_updates, recorder, session
from .processes import current_process

__all__ = ("Wall", "simulated_clock")

_DAY = 86_400


@final
class Wall:
    """A wall clock that is adjusted at given readings.

    Args:
        jumps: by how many days, at which reading, counted from 1.
        skews: seconds by which the clocks of processes are ahead.
    """

    def __init__(
        self, jumps: Mapping[int, int], skews: Mapping[int, float] = MappingProxyType({})
    ) -> None:
        self._skews = skews
        self._jumps = jumps
        self._readings = 0
        self._now = 1.7e9
        self.jumped = 0

    def time(self) -> float:
        """Seconds since 1970, or so."""
        self._readings += 1
        self._now += 0.001
        days = self._jumps.get(self._readings)
        if days is not None:
            self.jumped += 1
            self._now += days * _DAY
        return self._now + self._skews.get(current_process(), 0.0)


@contextmanager
def simulated_clock() -> Iterator[list[Wall]]:
    """Has recorders of this process read the clock in the list."""
    walls = [Wall({})]
    before = [(module, module.time) for module in (actor, live_updates, recorder, session)]

    def now() -> float:
        return walls[0].time()  # the clock of the run that is under way

    try:
        for module, _ in before:
            vars(module)["time"] = SimpleNamespace(time=now)
        yield walls
    finally:
        for module, time in before:
            vars(module)["time"] = time
