"""A seeded bootstrap over sessions: percentile intervals of any number made of sums.

Sessions are drawn with replacement, whole: all that one session contributes is drawn together, so
that a ratio of means is resampled as such. It runs on the standard library alone and gives the
same numbers on every machine: a session's contributions are scaled to integers, and these are
packed side by side into one big integer, so that one ``sum`` over a resample adds up every column
at once. The scaling costs less than 1e-9 of a column's range.
"""

from __future__ import annotations

import random
import struct
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import final

from .numbers import quantile

__all__ = ("LEVEL", "Interval", "Resamples")

LEVEL = 0.95
"""Coverage of the intervals."""

Interval = tuple[float, float]
Statistic = Callable[[Sequence[float]], float | None]

_LANE = 64
_LEAST_DEFINED = 0.95
_WORDS = 1 << 16


@final
class Resamples:
    """The column sums of resampled sessions, from which statistics are recomputed.

    Args:
        rows: per session, its contributions, all of one length. Their order does not matter: they
            are sorted before they are drawn from.
        count: how many resamples to draw.
        seed: what the draws are seeded with; the same seed draws the same.
    """

    def __init__(self, rows: Sequence[Sequence[float]], count: int, seed: str) -> None:
        self.sessions = len(rows)
        self._sums: list[list[float]] = []
        if self.sessions < 2 or not rows[0]:
            return
        ordered = sorted(tuple(row) for row in rows)
        n, width = self.sessions, len(ordered[0])
        lows = [min(column) for column in zip(*ordered, strict=True)]
        spans = [
            max(column) - low or 1.0
            for column, low in zip(zip(*ordered, strict=True), lows, strict=True)
        ]
        scale = 1 << (_LANE - 1 - n.bit_length())  # n of them fit into a lane
        packed = [
            sum(
                round((value - low) / span * scale) << (_LANE * lane)
                for lane, (value, low, span) in enumerate(zip(row, lows, spans, strict=True))
            )
            for row in ordered
        ]
        unpack = struct.Struct(f"<{width}Q").unpack
        units = [span / scale for span in spans]
        offsets = [n * low for low in lows]
        for total in _totals(packed, width, count, random.Random(seed)):
            lanes = unpack(total.to_bytes(_LANE // 8 * width, "little"))
            self._sums.append(
                [
                    offset + lane * unit
                    for offset, lane, unit in zip(offsets, lanes, units, strict=True)
                ]
            )

    def interval(self, statistic: Statistic) -> Interval | None:
        """The percentile interval of a statistic of the column sums.

        None with fewer than two sessions, and where the statistic is undefined (None) in more
        than one resample of twenty.
        """
        found = [value for sums in self._sums if (value := statistic(sums)) is not None]
        if not found or len(found) < _LEAST_DEFINED * len(self._sums):
            return None
        found.sort()
        return quantile(found, (1 - LEVEL) / 2), quantile(found, (1 + LEVEL) / 2)


def _totals(numbers: Sequence[int], width: int, count: int, chance: random.Random) -> Iterator[int]:
    """The sums of resamples, each of as many numbers as there are, drawn with replacement.

    The numbers are packed into lanes.
    """
    n = len(numbers)
    if n > _WORDS:
        for _ in range(count):
            yield sum(chance.choices(numbers, k=n))
        return
    # A draw is a random word, looked up in a table that holds each number equally often; words that
    # are left over find None, and are drawn again. So all of it runs in C, at twice the speed. The
    # mark, above all lanes, makes sure that no number counts as false.
    bits = _LANE * width
    mark = 1 << bits
    often = _WORDS // n
    table = [*([number + mark for number in numbers] * often), *[None] * (_WORDS - often * n)]
    look_up = table.__getitem__
    for _ in range(count):
        drawn, total = 0, 0
        while drawn < n:
            words = array("H", chance.randbytes(2 * (n - drawn)))
            if sys.byteorder == "big":
                words.byteswap()
            found = sum(filter(None, map(look_up, words)))
            drawn += found >> bits
            total += found
        yield total - n * mark
