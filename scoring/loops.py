"""Loops: an agent does the same again and again (paper, 4.2: failing agents get into loops of actions).

An agent's acts are compared in its own order, whatever others do in between: actions with their arguments,
messages by their text, outputs by their digest. A loop is a longest run of acts in which a block of one to
three acts follows itself at least twice: A A A, or A B A B A B. The same action thrice, or an alternation of six
steps, is also where OpenHands' stuck detector stops agents that make errors or go back and forth.
"""

from __future__ import annotations

from typing import Final, final

from ..engine.events import ACTS, SnapshotTaken
from ..engine.records import Record

__all__ = ("LONGEST", "TIMES", "LoopFold")

LONGEST: Final = 3
"""Acts of the longest block that is looked for."""

TIMES: Final = 3
"""Occurrences of a block in a row that make a loop."""


@final
class LoopFold:
    """Folds the acts of the agents of one session.

    Attributes:
        loops: how many there were.
        acts: acts in them that repeat a block, the first occurrence of each block left out.
    """

    def __init__(self) -> None:
        self.loops = 0
        self.acts = 0
        self._agents: dict[str, _Acts] = {}

    def feed(self, record: Record) -> None:
        """Takes the next record of the trace."""
        if record.role != "agent" or record.kind not in ACTS:
            return
        acts = self._agents.get(record.actor)
        if acts is None:
            acts = self._agents[record.actor] = _Acts()
        began, repeated = acts.next(_key(record))
        self.loops += began
        self.acts += repeated


@final
class _Acts:
    """The last acts of one agent, and how long each period has held by now."""

    def __init__(self) -> None:
        self._last: list[object] = []
        self._held = [0] * LONGEST
        self._holds = False  # whether any period may
        self._inside = False

    def next(self, key: object) -> tuple[bool, int]:
        """Takes an act: whether a loop begins with it, and how many acts are now known to repeat."""
        if key not in self._last:  # most acts are like none of the last ones
            self._last.append(key)
            del self._last[:-LONGEST]
            if self._holds:
                self._held = [0] * LONGEST
                self._holds = self._inside = False
            return False, 0
        self._holds = True
        for period in range(1, LONGEST + 1):
            same = len(self._last) >= period and self._last[-period] == key
            self._held[period - 1] = self._held[period - 1] + 1 if same else 0
        self._last = [*self._last, key][-LONGEST:]
        looping = [
            held for period, held in enumerate(self._held, start=1) if held >= period * (TIMES - 1)
        ]
        began = bool(looping) and not self._inside
        self._inside = bool(looping)
        if began:
            return True, max(looping)
        return False, int(self._inside)


def _key(record: Record) -> object:
    """What makes two acts the same; an erased one is like no other."""
    event = record.event if record.kind == "SnapshotTaken" else None
    if isinstance(event, SnapshotTaken):
        return record.kind, event.digest
    return object() if record.body is None else (record.kind, record.body)
