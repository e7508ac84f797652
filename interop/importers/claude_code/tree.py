"""The main line of a session, and the branches that were left, out of a tree of entries.

Every entry names the one that it follows. Going back to an earlier message begins a branch; the
conversation that counts is the path to the last leaf. Tool calls that run side by side fork the
tree as well: each result hangs on its own call, and all of them belong to the line. A summary in
place of what was before begins a new root, and the line goes on.

The work is linear in the number of entries, and for branches in the length of what they give.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, final

from .entries import Envelope

__all__ = ("Branch", "EntryTree")

_BOUNDARY = "compact_boundary"
_NONE: Final = -1


class Branch(NamedTuple):
    """A path that was left.

    Attributes:
        entries: the whole path from the root, in the order of the file.
        shared: how many of them it shares with the main line, at its beginning.
    """

    entries: Sequence[Envelope]
    shared: int


@final
class EntryTree:
    """The entries of a session as a tree.

    Args:
        entries: each with an id of its own, in the order of the file; without those of subagents.
    """

    def __init__(self, entries: Sequence[Envelope]) -> None:
        self._entries = entries
        self._main: Sequence[int]
        if _is_one_line(entries):
            self._main = range(len(entries))
            self._parents = array("q")
            return
        self._parents = _parents(entries)
        # By place, what hangs there and may lie beside a line, parts of replies and results: the place
        # of the one that does; where there are several, their places by reply (None for results).
        self._only = array("q", [_NONE]) * len(entries)
        self._beside: dict[int, dict[str | None, list[int]]] = {}
        for place, entry in enumerate(entries):
            parent = self._parents[place]
            if parent != _NONE and (entry.reply or entry.result):
                self._hang(place, parent)
        self._main = self._line(len(entries) - 1)

    @property
    def main(self) -> list[Envelope]:
        """The path to the last leaf, with all calls and results beside it, in the order of the file."""
        return [self._entries[place] for place in self._main]

    def branches(self) -> Iterator[Branch]:
        """The branches off the main line, each as a path from the root to its leaf."""
        if len(self._main) == len(self._entries):
            return
        main = set(self._main)
        left = [place for place in range(len(self._entries)) if place not in main]
        inner = {self._parents[place] for place in left}
        for leaf in left:
            if leaf in inner or self._entries[leaf].type not in ("user", "assistant"):
                continue
            path = self._line(leaf)
            shared = next((n for n, place in enumerate(path) if place not in main), len(path))
            yield Branch([self._entries[place] for place in path], shared)

    def _hang(self, place: int, parent: int) -> None:
        only, several = self._only[parent], self._beside.get(parent)
        if only == _NONE and several is None:
            self._only[parent] = place
            return
        if several is None:
            self._only[parent] = _NONE
            several = self._beside[parent] = {self._entries[only].reply or None: [only]}
        several.setdefault(self._entries[place].reply or None, []).append(place)

    def _line(self, leaf: int) -> list[int]:
        """Places of the entries on the way to a leaf, with the calls beside them and their results."""
        kept: set[int] = set()
        at = leaf
        while at != _NONE and at not in kept:
            kept.add(at)
            at = self._parents[at]
        replies: set[str | None] = {self._entries[place].reply for place in kept}
        waiting = list(kept)
        while waiting:
            for place in self._hanging(waiting.pop(), replies):
                if place not in kept:
                    kept.add(place)
                    waiting.append(place)
        return sorted(kept)

    def _hanging(self, place: int, replies: set[str | None]) -> Iterator[int]:
        """Places of what hangs on an entry and belongs to one of these replies, and of results."""
        only = self._only[place]
        if only != _NONE:
            reply = self._entries[only].reply
            if not reply or reply in replies:
                yield only
            return
        hanging = self._beside.get(place)
        if hanging is None:
            return
        yield from hanging.get(None, ())
        # Of both the shorter is gone through: a message may have been answered anew a thousand times.
        few, many = (hanging, replies) if len(hanging) <= len(replies) else (replies, hanging)
        for reply in few:
            if reply is not None and reply in many:
                yield from hanging[reply]


def _is_one_line(entries: Sequence[Envelope]) -> bool:
    """Whether each entry hangs on the one before it, as where nothing ran side by side."""
    return all(entry.parent == before.uuid for before, entry in pairwise(entries))


def _parents(entries: Sequence[Envelope]) -> array[int]:
    """By place, the place of the entry before it in its line; ``_NONE`` for where a line begins."""
    ids = {entry.uuid for entry in entries}
    flat = all(entry.parent is None for entry in entries)
    places: dict[str | None, int] = {}
    parents = array("q")
    before = _NONE
    for place, entry in enumerate(entries):
        if entry.parent in places:
            parent = places[entry.parent]
        elif entry.logical_parent in places:
            parent = places[entry.logical_parent]
        elif flat or entry.subtype == _BOUNDARY or (entry.parent and entry.parent not in ids):
            parent = before  # what it follows is not in the file: then the order of the file holds
        else:
            parent = _NONE
        places[entry.uuid] = before = place
        parents.append(parent)
    return parents
