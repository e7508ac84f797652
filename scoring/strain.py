"""Proxies for a human's cognitive load, confusion and sensemaking (paper, section 5).

The paper names edit histories, timing patterns and clarifying requests as traces of what effort in numbers
of rounds leaves out. Each measure here is a count or a sum over such traces, and no more than a proxy:

- cognitive load (Sweller 1988): the most words that waited to be read at one act, and
  hesitation, the time before acts that neither reading nor typing explains;
- confusion: lines that a human put back, or took back, by editing (requests to clarify: ``turns``);
- sensemaking: acts by which a human finds something out: their questions and actions (Russell et
  al. 1993).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final, final

from ..engine.events import (
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    SessionOpened,
    SnapshotTaken,
)
from ..engine.records import Record
from ..engine.rounds import is_act, is_requested
from ..engine.text import count_words
from .trajectory.output_lines import Lines, OutputLines, shown_lines
from .trajectory.output_lines import written as written_in

__all__ = ("LONGEST_PAUSE", "StrainFold")

LONGEST_PAUSE: Final = 300.0
"""The most seconds of hesitation that count before one act: a human who waits longer is away."""

_READ_WPM, _TYPE_WPM = 238.0, 52.0


@final
class StrainFold:
    """Folds the acts of the humans of one session.

    Args:
        output: the lines of the output, if another fold of the session shares them.

    Attributes:
        peak_reading: the most words of agents that waited at one act: messages, and new lines of the output.
        reworked_lines: lines of the output that a human restored after they were gone, or removed
            after a human had written them.
        inquiries: messages after the request that ask something, and actions.
    """

    def __init__(self, output: OutputLines | None = None) -> None:
        self._lines = output or OutputLines()
        self.peak_reading = 0
        self.reworked_lines = 0
        self.inquiries = 0
        self._hesitation = 0.0
        self._timed = False
        self._read = 60.0 / _READ_WPM
        self._type = 60.0 / _TYPE_WPM
        self._requested = False
        self._waiting = 0
        self._since: float | None = None
        self._seen: Lines = {}
        self._output: Lines = {}
        self._gone: set[str] = set()
        self._own: set[str] = set()

    @property
    def hesitation(self) -> float | None:
        """Seconds of pauses; None if no opening says which clock is used."""
        return self._hesitation if self._timed else None

    def feed(self, record: Record) -> None:
        """Takes the next record of the trace."""
        if record.kind == "SessionClosed":
            self._seen = self._output = {}  # no more acts follow
            self._gone, self._own = set(), set()
            self._lines.clear()
            return
        event = record.event if record.kind in _READABLE else None
        if isinstance(event, SessionOpened):
            self._opened(event)
        elif not is_act(record):
            return
        elif record.role == "agent":
            self._agent(record, event)
        elif record.role == "human":
            self._human(record, event)

    def agent_acted(self, time: float) -> None:
        """Takes an agent's act without text: an action."""
        self._since = time

    def _opened(self, event: SessionOpened) -> None:
        self._timed = True
        self._requested = is_requested(event)
        timing = event.config.get("timing")
        if isinstance(timing, Mapping):
            self._read = _per_word(timing.get("read_wpm"), self._read)
            self._type = _per_word(timing.get("type_wpm"), self._type)

    def _agent(self, record: Record, event: object) -> None:
        self._since = record.time
        if isinstance(event, MessageSent):
            self._waiting += count_words(event.text)
        elif isinstance(event, ApprovalAsked):
            self._waiting += count_words(event.question)
        elif isinstance(event, SnapshotTaken):
            self._draft(event)

    def _human(self, record: Record, event: object) -> None:
        waiting = self._waiting
        if self._seen is not self._output:
            waiting += count_words(self._lines.new(self._seen, self._output))
        self.peak_reading = max(self.peak_reading, waiting)
        written = ""
        if isinstance(event, MessageSent):
            written = event.text
            self._message(event.text)
        elif isinstance(event, ApprovalGiven):
            written = event.comment
        elif record.kind == "ActionTaken":
            self.inquiries += 1
        elif isinstance(event, SnapshotTaken):
            after = self._lines_of(event)
            written = written_in(self._output, after).text
            self._edit(after)
        if self._since is not None:
            expected = waiting * self._read + count_words(written) * self._type
            pause = record.time - self._since - expected
            self._hesitation += min(max(pause, 0.0), LONGEST_PAUSE)
        self._since, self._waiting, self._seen = None, 0, self._output

    def _draft(self, event: SnapshotTaken) -> None:
        """Takes an agent's version; of files whose diffs were shown, these wait to be read."""
        before, after = self._output, self._lines_of(event)
        seen = dict(self._seen)
        for path, lines in after.items():
            shown = None if lines is before.get(path) else shown_lines(event, path)
            if shown is not None:
                self._waiting += count_words("\n".join(shown))
                seen[path] = lines
        if seen != self._seen:
            self._seen = seen
        self._take(after)

    def _lines_of(self, event: SnapshotTaken) -> Lines:
        """The lines of an output; empty if it is blank."""
        found = self._lines.of(event)
        return found if any(any(map(str.strip, lines)) for lines in found.values()) else {}

    def _message(self, text: str) -> None:
        if not self._requested:
            self._requested = True  # the request is part of the task
            return
        self.inquiries += "?" in text

    def _edit(self, after: Lines) -> None:
        before, now = set(_all(self._output)), set(_all(after))
        restored = {line for line in now - before if line in self._gone}
        withdrawn = {line for line in before - now if line in self._own}
        self.reworked_lines += sum(1 for line in restored | withdrawn if line.strip())
        self._own |= now - before
        self._take(after)

    def _take(self, after: Lines) -> None:
        self._gone.update(_all(self._output))
        self._gone.difference_update(_all(after))
        self._output = after


_READABLE = frozenset(
    {"SessionOpened", "MessageSent", "ApprovalAsked", "ApprovalGiven", "SnapshotTaken"}
)


def _all(output: Lines) -> Iterator[str]:
    return chain.from_iterable(output.values())


def _per_word(wpm: object, otherwise: float) -> float:
    return 60.0 / wpm if isinstance(wpm, int | float) and wpm > 0 else otherwise
