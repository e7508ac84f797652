"""The bootstrap of ``bootstrap`` on arrays: the same draws and the same sums, to the bit, and faster.

The resamples draw the words that ``bootstrap`` draws, from the same generator, in the same order of
sessions. Contributions are the same integers; large ones are split in two halves so that sums of them
are exact in floating point, and so do not depend on the order in which they are added.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from .bootstrap import LANE, WHOLE, WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Parts = NDArray[np.int32]
    Counts = NDArray[np.uint8]

__all__ = ("resampled_sums", "sorted_order")

_AT_ONCE: Final = 1 << 24
"""How many counts of draws make a block: 16 MB, of which there are two."""

_TOGETHER: Final = 32
"""At most so many resamples make a block, so that one is drawn while another is added up."""

_BLOCK: Final = 48
"""Rows of one product. OpenBLAS shares larger ones among threads, which wait for each other by spinning."""

_PRODUCTS: Final = 16
"""Products at once: as many as the processor's caches hold."""

_SPOTS: Final = 1 << 16
"""A column is ranked by looking up which of so many spots between its ends each value falls into."""

_ENOUGH: Final = 64
"""Rows are sorted by as many columns as make this many keys a row; by further ones where they are alike."""


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
    blocks = _counts(n, count, random.Random(seed))
    totals = np.zeros((count, len(lanes)), np.int64)
    done = 0
    with ThreadPoolExecutor(1) as pool:  # draws while rows are sorted and added up
        coming = pool.submit(next, blocks, None)
        parts = _parts(lanes, range(len(lanes)) if only is None else only)
        while (counts := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            block = slice(done, done + len(counts))
            drawn = _products(counts, parts.rows)
            for lane, row in parts.whole.items():
                totals[block, lane] = drawn[:, row]
            for lane, row in parts.halved.items():
                totals[block, lane] = (drawn[:, row] << parts.half) + drawn[:, row + 1]
            done += len(counts)
    sums: Floats = n * parts.lows + totals * parts.units
    return sums


class _Parts(NamedTuple):
    """Lanes as whole numbers, from 0.

    Attributes:
        rows: a lane in a row, or in two: its upper half and its lower.
        whole: the rows of lanes, by lane.
        halved: the first row of those that have two.
        half: bits of a lower half.
        lows: what is 0 in each lane.
        units: what 1 stands for in each lane.
    """

    rows: Parts
    whole: dict[int, int]
    halved: dict[int, int]
    half: int
    lows: Floats
    units: Floats


def _parts(lanes: Sequence[Floats], only: Collection[int]) -> _Parts:
    n = len(lanes[0])
    order = sorted_order(lanes)
    bits = LANE - 1 - n.bit_length()
    half = (bits + 1) // 2
    lows = np.array([lane.min() for lane in lanes])
    spans = np.array([lane.max() for lane in lanes]) - lows
    units = np.ones(len(lanes))
    moving = [at for at, span in enumerate(spans) if span and at in only]
    rows = np.empty((2 * len(moving), n), np.int32)  # half the memory of 64 bits
    whole: dict[int, int] = {}
    halved: dict[int, int] = {}
    used = 0
    for at in moving:
        numbers = (lanes[at] - lows[at])[order]
        if not (n * spans[at] < WHOLE and _are_whole(numbers)):
            units[at] = spans[at] / float(1 << bits)
            numbers = np.rint(numbers / spans[at] * float(1 << bits))
        elif spans[at] < 1 << 31:
            whole[at] = used
            rows[used] = numbers
            used += 1
            continue
        halved[at] = used
        scaled = numbers.astype(np.int64)
        rows[used] = scaled >> half
        rows[used + 1] = scaled & ((1 << half) - 1)
        used += 2
    return _Parts(rows[:used], whole, halved, half, lows, units)


def _are_whole(values: Floats) -> bool:
    return bool((values == np.rint(values)).all())


def _products(counts: Counts, parts: Parts) -> Integers:
    """The sums of the parts by resample: whole numbers, and exact."""
    found = np.zeros((len(counts), len(parts)))
    n = counts.shape[1]
    whole = n - n % (_BLOCK * _PRODUCTS)
    for begin in range(0, whole, _BLOCK * _PRODUCTS):
        block = slice(begin, begin + _BLOCK * _PRODUCTS)
        drawn = counts[:, block].astype(np.float64).reshape(-1, _PRODUCTS, _BLOCK)
        some = parts[:, block].astype(np.float64).reshape(-1, _PRODUCTS, _BLOCK)
        found += (drawn.transpose(1, 0, 2) @ some.transpose(1, 2, 0)).sum(axis=0)
    found += counts[:, whole:].astype(np.float64) @ parts[:, whole:].T
    return found.astype(np.int64)


def sorted_order(lanes: Sequence[Floats]) -> Integers:
    """The order of rows by their values, the first lane first; alike rows in any order."""
    order = np.arange(len(lanes[0]))
    spots = np.arange(len(order))  # in the order, of rows that are alike so far
    ties = np.zeros(len(order), np.int64)  # of these, ascending: which are alike
    left = list(lanes)
    while left and len(spots):
        rows = order[spots]
        key, room = ties, int(ties[-1]) + 1
        while left and room < _ENOUGH * len(rows):
            ranks, size = _ranks(left[0][rows])
            if room * size >= 1 << 62:
                break
            key, room = key * size + ranks, room * size
            left.pop(0)
        by = np.argsort(key)
        order[spots] = rows[by]
        begins = np.diff(key[by], prepend=-1) != 0
        tied = ~(begins & np.append(begins[1:], True))
        spots = spots[tied]
        ties = np.cumsum(begins[tied]) - 1
    return order


def _ranks(values: Floats) -> tuple[Integers, int]:
    """Whole numbers in the order of some values, from 0, and more than the greatest of them."""
    shifted = values - values.min()
    span = shifted.max()
    if span < 1 << 31 and _are_whole(shifted):
        return shifted.astype(np.int64), int(span) + 1
    if math.isfinite(span):
        spots = (shifted / span * (_SPOTS - 1)).astype(np.int64)
        known = np.empty(_SPOTS)
        known[spots] = values
        if bool((known[spots] == values).all()):  # no spot is that of two values
            taken = np.zeros(_SPOTS, np.int64)
            taken[spots] = 1
            return (np.cumsum(taken) - 1)[spots], int(taken.sum())
    known, ranks = np.unique(values, return_inverse=True)
    return ranks, len(known)


def _counts(n: int, count: int, chance: random.Random) -> Iterator[Counts]:
    """How often each row is drawn in each resample, some resamples at a time."""
    draw = _by_words(n, chance) if n <= WORDS else _by_numbers(n, chance)
    together = min(max(1, _AT_ONCE // n), _TOGETHER)
    for begin in range(0, count, together):
        held = np.empty(
            (min(together, count - begin), n), np.uint8
        )  # 256 draws of one never happen
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
    """As ``random.choices`` draws: NumPy's generator of the same kind goes on where that one stands."""
    *key, at = chance.getstate()[1]
    twister = np.random.MT19937()
    twister.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(key, np.uint32), "pos": int(at)},
    }
    generator = np.random.Generator(twister)
    shares, drawn = np.empty(n), np.empty(n, np.int64)
    while True:
        generator.random(out=shares)
        np.multiply(shares, n, out=drawn, casting="unsafe")
        yield drawn
