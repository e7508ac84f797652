"""The main line of a session, and the branches that were left, out of a tree of entries.

Every entry names the one that it follows. Going back to an earlier message begins a branch; the
conversation that counts is the path to the last leaf. Tool calls that run side by side fork the
tree as well: each result hangs on its own call, and all of them belong to the line. A summary in
place of what was before begins a new root, and the line goes on.

The work is linear in the number of entries, and for branches in the length of what they give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, final

from .entries import Envelope

__all__ = ("Branch", "EntryTree")

_BOUNDARY = "compact_boundary"


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
        entries: with an id each, in the order of the file; without those of subagents.
    """

    def __init__(self, entries: Sequence[Envelope]) -> None:
        self._entries = entries
        self._beside: dict[str, dict[str | None, list[int]]] = {}
        self._places: dict[str | None, list[int]] = {}
        if _is_one_line(entries):
            self._main = list(range(len(entries)))
            self._parents: dict[str, str | None] = {}
            return
        self._parents = _parents(entries)
        # By place, and then by reply (None for results), the places of what hangs there and may lie
        # beside a line: parts of replies, and results.
        for place, entry in enumerate(entries):
            self._places.setdefault(entry.uuid, []).append(place)
            parent = self._parents.get(entry.uuid or "")
            if parent is not None and (entry.reply or entry.result):
                hanging = self._beside.setdefault(parent, {})
                hanging.setdefault(entry.reply or None, []).append(place)
        self._main = self._line(entries[-1]) if entries else []

    @property
    def main(self) -> list[Envelope]:
        """The path to the last leaf, with all calls and results beside it, in the order of the file."""
        return [self._entries[place] for place in self._main]

    def branches(self) -> Iterator[Branch]:
        """The branches off the main line, each as a path from the root to its leaf."""
        main = set(self._main)
        left = [entry for place, entry in enumerate(self._entries) if place not in main]
        inner = {self._parents.get(entry.uuid) for entry in left if entry.uuid}
        for leaf in left:
            if leaf.uuid in inner or leaf.type not in ("user", "assistant"):
                continue
            path = self._line(leaf)
            shared = next((n for n, place in enumerate(path) if place not in main), len(path))
            yield Branch([self._entries[place] for place in path], shared)

    def _line(self, leaf: Envelope) -> list[int]:
        """Places of the entries on the way to a leaf, with the calls beside them and their results."""
        kept: set[str] = set()
        at = leaf.uuid
        while at is not None and at not in kept:
            kept.add(at)
            at = self._parents.get(at)
        replies = {
            self._entries[place].reply for uuid in kept for place in self._places.get(uuid, ())
        }
        waiting = list(kept)
        while waiting:
            for place in self._hanging(waiting.pop(), replies):
                uuid = self._entries[place].uuid
                if uuid is not None and uuid not in kept:
                    kept.add(uuid)
                    waiting.append(uuid)
        return sorted(place for uuid in kept for place in self._places.get(uuid, ()))

    def _hanging(self, uuid: str, replies: set[str | None]) -> Iterator[int]:
        """Places of what hangs on an entry and belongs to one of these replies, and of results."""
        hanging = self._beside.get(uuid)
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


def _parents(entries: Sequence[Envelope]) -> dict[str, str | None]:
    """By id, the id of the entry before it in its line; None for where a line begins."""
    ids = {entry.uuid for entry in entries}
    flat = all(entry.parent is None for entry in entries)
    parents: dict[str, str | None] = {}
    before: str | None = None
    for entry in entries:
        if entry.uuid is None or entry.uuid in parents:
            continue
        parent: str | None
        if entry.parent in parents:
            parent = entry.parent
        elif entry.logical_parent in parents:
            parent = entry.logical_parent
        elif flat or entry.subtype == _BOUNDARY or (entry.parent and entry.parent not in ids):
            parent = before  # what it follows is not in the file: then the order of the file holds
        else:
            parent = None
        parents[entry.uuid] = parent
        before = entry.uuid
    return parents
