"""The rounds of one session as scoring keeps them: the start of each, and the effort at its end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import final

from ...engine.rounds import Round, Rounds

__all__ = ("RoundIndex",)


@final
class RoundIndex:
    """Finds a round by its number or by a trace version that lies in it.

    Args:
        convention: how rounds are counted here.

    Attributes:
        convention: how rounds are counted here.
        rounds: the rounds that are closed.
        efforts: the cumulative effort at the end of each of them.
        number: the number of the last round that has begun; 0 before the first.
        closing: number of the last round, if the session was closed and the round holds messages of
            humans only; None while there is no such round. It keeps its number, and counts for
            effort only.
    """

    def __init__(self, convention: Rounds) -> None:
        self.convention = convention
        self.rounds: list[Round] = []
        self.efforts: list[Mapping[str, float | None]] = []
        self.number = 0
        self.closing: int | None = None
        self._firsts: list[int] = []

    def begin(self, first: int) -> None:
        """A round begins at this trace version."""
        self._firsts.append(first)
        self.number += 1

    def close(self, over: Round, effort: Mapping[str, float | None]) -> None:
        """The round that is open is over."""
        self.rounds.append(over)
        self.efforts.append(effort)

    def of_version(self, version: int, latest: int) -> int | None:
        """The round that contains a trace version; None if the trace is not that long."""
        if not 1 <= version <= latest:
            return None
        return bisect_right(self._firsts, version) or None

    def of_place(self, round_: int, rounds: Rounds, until: int | None, latest: int) -> int | None:
        """The round that a measurement is about; None if that is unknown.

        The trace version decides if there is one: it names the round in any convention. The number
        decides only if the measurement counts rounds by the same convention.

        Args:
            round_: number of the round, as the measurement counts.
            rounds: the convention in which it counts.
            until: trace version in that round, usually its last act; None if not given.
            latest: the last trace version known.
        """
        if until is not None:
            return self.of_version(until, latest)
        if rounds == self.convention and 1 <= round_ <= self.number:
            return round_
        return None
