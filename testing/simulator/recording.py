"""A recorder at work on a simulated log: it writes each accepted message once, in order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, final

from ...engine.errors import DuologError
from ...engine.events import MessageSent
from ...engine.records import TRACE, Record
from ...telemetry.receipt import Receipt
from ...telemetry.recorder import Recorder
from ..tools import require
from .scenario import Operation

__all__ = ("PREFIX", "Recorded", "record", "settle")

PREFIX = "recorded-"
"""Begins the ids of sessions that only recorders write to."""


@final
class Entry:
    """A message handed to a recorder, and its known outcome."""

    def __init__(self, session: str, text: str) -> None:
        self.session = session
        self.text = text
        self.fate: Literal["unknown", "accepted", "written"] = "unknown"
        self.receipt: Receipt | None = None


class Recorded(NamedTuple):
    """What recorders were given, over all processes, by operation."""

    entries: dict[int, list[Entry]]

    def end_of_process(self) -> None:
        """Accepted messages that were not seen to be written may be there or not."""
        for entries in self.entries.values():
            for entry in entries:
                entry.receipt = None
                if entry.fate == "accepted":
                    entry.fate = "unknown"

    def written(self) -> frozenset[str]:
        """The messages that are said to be written."""
        return frozenset(
            entry.text
            for entries in self.entries.values()
            for entry in entries
            if entry.fate == "written"
        )

    def check(self, records: Sequence[Record], written: Collection[str]) -> None:
        """Each message is there once at most, in order; those that were written by then are."""
        found: dict[str, list[int]] = {}
        for record in records:
            event = record.event
            if record.stream == TRACE and isinstance(event, MessageSent):
                found.setdefault(event.text, []).append(record.position)
        for entries in self.entries.values():
            there = [found[entry.text] for entry in entries if entry.text in found]
            require(all(len(each) == 1 for each in there), "a message is recorded once")
            require(there == sorted(there), "messages of one caller are recorded in order")
        missing = [text for text in written if text not in found]
        require(not missing, f"{missing} was written, and is not there")


async def record(recorder: Recorder, operation: Operation, recorded: Recorded) -> None:
    """Has a person say some things, the last of which may be waited for."""
    name = f"{PREFIX}{operation.session}"
    session = await recorder.session(name)
    for at in range(operation.size):
        entry = Entry(name, f"said {operation.number}.{at}")
        recorded.entries.setdefault(operation.number, []).append(entry)
        durable = at == operation.size - 1 and bool(operation.draw & 1)
        entry.receipt = await session.human.says(entry.text, durable=durable)
        entry.fate = "written" if durable else "accepted"


async def settle(recorded: Recorded) -> None:
    """After the recorder was closed, notes what it reports for each message."""
    for entries in recorded.entries.values():
        for entry in entries:
            if entry.receipt is None or entry.fate != "accepted":
                continue
            try:
                await entry.receipt.written()
            except DuologError:
                entry.fate = "unknown"
            else:
                entry.fate = "written"
            entry.receipt = None
