"""The bootstrap of ``bootstrap`` on arrays: the same draws and the same sums, to the bit, and faster.

The resamples draw the words that ``bootstrap`` draws, from the same generator, in the same order of
sessions. Contributions are scaled to the same integers; each is split in two halves so that sums of
them are exact in floating point, and so do not depend on the order in which they are added.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from .bootstrap import LANE, WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Counts = NDArray[np.uint16]

__all__ = ("resampled_sums", "sorted_order")

_AT_ONCE: Final = 1 << 26
"""How many counts of draws are held at once: 128 MB."""

_BLOCK: Final = 1 << 13
"""Rows that are added up at once."""

_KEYS: Final = 2
"""How many keys tell most rows apart."""

_FEW: Final = 1 << 12
"""A column with at most so many different values takes part in sorting by their ranks."""


def resampled_sums(
    lanes: Sequence[Floats], count: int, seed: str, *, only: Collection[int] | None = None
) -> Floats:
    """The sums of each lane over resamples of its rows: a row per resample, a column per lane.

    Args:
        lanes: columns of one length, at least 2 rows, none of them missing.
        count: how many resamples to draw.
        seed: what the draws are seeded with.
        only: the lanes whose sums are wanted; the others take part in the order of rows alone, and
            their sums are meaningless. None for all.
    """
    n = len(lanes[0])
    order = sorted_order(lanes)
    bits = LANE - 1 - n.bit_length()
    half = (bits + 1) // 2
    lows = np.array([lane.min() for lane in lanes])
    spans = np.array([lane.max() for lane in lanes]) - lows
    moving = np.array(
        [at for at, span in enumerate(spans) if span and (only is None or at in only)], np.int64
    )
    spans[spans == 0] = 1.0
    parts = np.empty((2 * len(moving), n))
    for at, lane in enumerate(moving):
        whole = np.rint((lanes[lane] - lows[lane]) / spans[lane] * float(1 << bits))
        scaled = whole.astype(np.int64)[order]
        parts[2 * at] = scaled >> half
        parts[2 * at + 1] = scaled & ((1 << half) - 1)
    totals = np.zeros((count, len(lanes)), np.int64)
    done = 0
    for counts in _counts(n, count, random.Random(seed)):
        drawn = _products(counts, parts)
        totals[done : done + len(counts), moving] = (drawn[:, 0::2] << half) + drawn[:, 1::2]
        done += len(counts)
    units = spans / float(1 << bits)
    sums: Floats = n * lows + totals * units
    return sums


def _products(counts: Counts, parts: Floats) -> Integers:
    """The sums of the parts by resample: whole numbers, and exact."""
    found = np.zeros((len(counts), len(parts)))
    for begin in range(0, counts.shape[1], _BLOCK):  # as much as the processor's caches hold
        block = slice(begin, begin + _BLOCK)
        found += counts[:, block].astype(np.float64) @ parts[:, block].T
    return found.astype(np.int64)


def sorted_order(lanes: Sequence[Floats]) -> Integers:
    """The order of rows by their values, the first lane first; alike rows in any order."""
    keys = _keys(lanes)
    if not keys:
        return np.arange(len(lanes[0]))
    order = np.lexsort(keys[::-1])
    alike = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in keys])
    tied = np.concatenate(([False], alike)) | np.concatenate((alike, [False]))
    if tied.any():  # few rows, which the lanes that are in no key may tell apart
        rows = order[tied]
        order[tied] = rows[np.lexsort([lane[rows] for lane in reversed(lanes)])]
    return order


def _keys(lanes: Sequence[Floats]) -> list[Floats | Integers]:
    """The first lanes as a few sorting keys: ranks of lanes with few values share one."""
    keys: list[Floats | Integers] = []
    packed: Integers | None = None
    room = 1
    for lane in lanes:
        few = len(np.unique(lane[: 2 * _FEW])) <= _FEW
        values = np.unique(lane) if few else lane
        if len(values) == 1:
            continue
        small = len(values) <= _FEW
        if packed is not None and not (small and room * len(values) < 1 << 62):
            keys.append(packed)
            packed, room = None, 1
        if len(keys) >= _KEYS:
            return keys
        if not small:
            keys.append(lane)
            continue
        ranks = np.searchsorted(values, lane)
        packed = ranks if packed is None else packed * len(values) + ranks
        room *= len(values)
    return keys if packed is None else [*keys, packed]


def _counts(n: int, count: int, chance: random.Random) -> Iterator[Counts]:
    """How often each row is drawn in each resample, some resamples at a time."""
    draw = _by_words(n, chance) if n <= WORDS else _by_numbers(n, chance)
    together = max(1, _AT_ONCE // n)
    for begin in range(0, count, together):
        held = np.empty((min(together, count - begin), n), np.uint16)
        for row in held:
            row[:] = np.bincount(next(draw), minlength=n)
        yield held


def _by_words(n: int, chance: random.Random) -> Iterator[Integers]:
    limit = WORDS // n * n
    while True:
        drawn: list[Integers] = []
        left = n
        while left:
            words = np.frombuffer(chance.randbytes(2 * left), "<u2")
            kept = words[words < limit] % n
            drawn.append(kept.astype(np.int64))
            left -= len(kept)
        yield np.concatenate(drawn)


def _by_numbers(n: int, chance: random.Random) -> Iterator[Integers]:
    """As ``random.choices`` draws: NumPy's generator of old goes on where that one stands."""
    *key, at = chance.getstate()[1]
    generator = np.random.RandomState()
    generator.set_state(("MT19937", np.array(key, np.uint32), int(at), 0, 0.0))
    while True:
        yield (generator.random_sample(n) * n).astype(np.int64)
