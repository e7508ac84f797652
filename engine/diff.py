"""Compares two texts line by line, in bounded work that is linear in practice.

Lines that begin and end both texts are matched first, then lines that occur once in each (patience
diff), and the stretches between them by the shortest edit (Myers 1986). All comparisons are counted:
beyond ``limit``, stretches that were not compared count as changed, and the result says so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple, final

__all__ = ("Block", "Matching", "limit", "matching")

_BASE: Final = 100_000
_PER_LINE: Final = 16
_EDITS: Final = 1_000  # of a shortest edit that is looked for, since each step of it is kept


class Block(NamedTuple):
    """Lines that both texts have: the place of the first in each, and their number."""

    old: int
    new: int
    size: int


class Matching(NamedTuple):
    """The lines that two texts have in common.

    ``blocks`` are in the order of both texts, and no two of them touch in both. ``whole`` means that
    some stretches were not compared and count as changed. ``work`` is the approximate number of line
    comparisons, at most ``limit``.
    """

    blocks: tuple[Block, ...]
    whole: bool
    work: int

    def added(self, new: Sequence[str]) -> list[str]:
        """The lines of the new text that the old one does not have there, in order."""
        found: list[str] = []
        at = 0
        for block in self.blocks:
            found += new[at : block.new]
            at = block.new + block.size
        found += new[at:]
        return found

    def removed(self, old: Sequence[str]) -> list[str]:
        """The lines of the old text that the new one does not have there, in order."""
        found: list[str] = []
        at = 0
        for block in self.blocks:
            found += old[at : block.old]
            at = block.old + block.size
        found += old[at:]
        return found


def limit(lines: int) -> int:
    """The most comparisons of lines that texts of so many lines, added up, may take."""
    return _BASE + _PER_LINE * lines


def matching(old: Sequence[str], new: Sequence[str]) -> Matching:
    """The lines that two texts have in common, in order.

    Args:
        old: the lines of one text.
        new: the lines of the other.
    """
    found = _Comparison(old, new)
    found.run()
    return Matching(tuple(_joined(sorted(found.blocks))), found.whole, found.work)


class _Region(NamedTuple):
    """A stretch of each text, up to an end that does not belong to it."""

    low: int
    high: int
    new_low: int
    new_high: int


@final
class _Comparison:
    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old = old
        self._new = new
        self._limit = limit(len(old) + len(new))
        self.blocks: list[Block] = []
        self.whole = False
        self.work = 0

    def run(self) -> None:
        waiting = [_Region(0, len(self._old), 0, len(self._new))]
        while waiting:
            region = self._trimmed(waiting.pop())
            low, high, new_low, new_high = region
            size = high - low + new_high - new_low
            if low == high or new_low == new_high:
                continue
            if self.work + size > self._limit:
                self.whole = True
                continue
            self.work += size
            anchors = self._anchors(region)
            if not anchors:
                self._shortest(region)
                continue
            for at, new_at in anchors:
                waiting.append(_Region(low, at, new_low, new_at))
                low, new_low = at, new_at
            waiting.append(_Region(low, high, new_low, new_high))

    def _trimmed(self, region: _Region) -> _Region:
        """A region without the lines with which both of its stretches begin and end, which match."""
        old, new = self._old, self._new
        low, high, new_low, new_high = region
        most = min(high - low, new_high - new_low)
        first = 0
        while first < most and old[low + first] == new[new_low + first]:
            first += 1
        last = 0
        while last < most - first and old[high - 1 - last] == new[new_high - 1 - last]:
            last += 1
        self.work += first + last
        if first:
            self.blocks.append(Block(low, new_low, first))
        if last:
            self.blocks.append(Block(high - last, new_high - last, last))
        return _Region(low + first, high - last, new_low + first, new_high - last)

    def _anchors(self, region: _Region) -> list[tuple[int, int]]:
        """Lines that occur once in both stretches: the longest sequence that is in order in both."""
        low, high, new_low, new_high = region
        old, new = self._old[low:high], self._new[new_low:new_high]
        times, new_times = Counter(old), Counter(new)
        places = {line: at for at, line in enumerate(new, new_low) if new_times[line] == 1}
        pairs = [
            (at, places[line])
            for at, line in enumerate(old, low)
            if times[line] == 1 and line in places
        ]
        ends: list[int] = []  # by length: the least place in which a sequence ends
        last: list[int] = []  # the pairs that end there
        before: list[int] = []  # by pair: the one before it
        for number, (_, place) in enumerate(pairs):
            length = bisect_left(ends, place)
            before.append(last[length - 1] if length else -1)
            if length == len(ends):
                ends.append(place)
                last.append(number)
            else:
                ends[length], last[length] = place, number
        found: list[tuple[int, int]] = []
        number = last[-1] if last else -1
        while number >= 0:
            found.append(pairs[number])
            number = before[number]
        return found[::-1]

    def _shortest(self, region: _Region) -> None:
        """Adds the blocks that a shortest edit of a region keeps, if that takes no more than is left."""
        low, high, new_low, new_high = region
        old, new = self._old[low:high], self._new[new_low:new_high]
        count, new_count = len(old), len(new)
        reached = {1: 0}  # by diagonal: how far the old stretch is gone through
        trace: list[dict[int, int]] = []
        for edits in range(count + new_count + 1):
            self.work += edits + 1
            if self.work > self._limit or edits > _EDITS:
                self.work, self.whole = min(self.work, self._limit), True
                return
            trace.append(reached)
            now: dict[int, int] = {}
            for diagonal in range(-edits, edits + 1, 2):
                x = _next(reached, diagonal, edits)
                y = x - diagonal
                start = x
                while x < count and y < new_count and old[x] == new[y]:
                    x += 1
                    y += 1
                self.work += x - start
                now[diagonal] = x
                if x >= count and y >= new_count:
                    self.work = min(self.work, self._limit)
                    self._walk(trace, region)
                    return
            reached = now

    def _walk(self, trace: Sequence[dict[int, int]], region: _Region) -> None:
        """Adds the blocks on the way back to the beginning of a region."""
        x, y = region.high - region.low, region.new_high - region.new_low
        for edits in range(len(trace) - 1, -1, -1):
            diagonal = x - y
            began = _next(trace[edits], diagonal, edits)
            if x > began:
                place = Block(region.low + began, region.new_low + began - diagonal, x - began)
                self.blocks.append(place)
            if edits:
                down = _is_down(trace[edits], diagonal, edits)
                x = began if down else began - 1
                y = began - diagonal - (1 if down else 0)


def _is_down(reached: dict[int, int], diagonal: int, edits: int) -> bool:
    """Whether the farthest way to a diagonal adds a line last, and does not take one out."""
    if diagonal == -edits:
        return True
    return diagonal != edits and reached.get(diagonal - 1, -1) < reached.get(diagonal + 1, -1)


def _next(reached: dict[int, int], diagonal: int, edits: int) -> int:
    """The end of the farthest way to a diagonal, before lines that match."""
    if _is_down(reached, diagonal, edits):
        return reached[diagonal + 1]
    return reached[diagonal - 1] + 1


def _joined(blocks: Sequence[Block]) -> list[Block]:
    """The same blocks, with those that touch as one."""
    found: list[Block] = []
    for block in blocks:
        last = found[-1] if found else None
        if last and (last.old + last.size, last.new + last.size) == (block.old, block.new):
            found[-1] = Block(last.old, last.new, last.size + block.size)
        else:
            found.append(block)
    return found
