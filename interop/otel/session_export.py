"""Tells one session: its records through folds to facts, and those to OpenTelemetry, once each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, final

import msgspec

from ...engine.errors import CodecError
from ...engine.events import SessionOpened
from ...engine.records import TRACE, Record
from .signals import Began, Fact, Noted, Teller, still_open

__all__ = ("Complain", "Emits", "Telling")

Complain: TypeAlias = Callable[[str, str, Exception], None]
"""Takes what went wrong: with what, in which session, and the error."""


class Emits(Protocol):
    """Emits the facts of one session."""

    def emit(self, fact: Fact) -> None:
        """Emits one fact; may raise anything."""
        ...


@final
class Telling:
    """Tells one session.

    What lies in the history, and what a fork took over from its origin, has been told, or is
    another session's: it is folded, and of its spans only those that are still open begin again.

    Args:
        session: session id.
        tellers: fold its records; the facts of the first come first.
        emitting: where the facts go.
        history: the records before the first that is to be told.
        complain: told of what fails; the rest goes on.
    """

    def __init__(
        self,
        session: str,
        tellers: Sequence[Teller],
        emitting: Emits,
        history: Sequence[Record],
        complain: Complain,
    ) -> None:
        self.session = session
        self._tellers = tellers
        self._emitting = emitting
        self._history: Sequence[Record] = history
        self._complain = complain
        self._inherited = 0
        self._open: dict[str, list[Began | Noted]] = {}

    def tell(self, record: Record) -> None:
        """Tells what a record comes to. May take as long as an exporter takes; never raises."""
        for earlier in self._history:
            still_open(self._open, self._facts(earlier))
        self._history = ()
        facts = self._facts(record)
        if record.stream == TRACE and record.version <= self._inherited:
            still_open(self._open, facts)
            return
        for held in self._open.values():
            self._emit(held)
        self._open = {}
        self._emit(facts)

    def _facts(self, record: Record) -> list[Fact]:
        try:
            event = record.event
        except CodecError as error:
            # Its envelope still counts, so that rounds are where they were.
            self._complain("a record could not be read", self.session, error)
            record = msgspec.structs.replace(record, body=None)
            event = record.event
        if isinstance(event, SessionOpened) and event.forked_from is not None:
            self._inherited = event.forked_from.version
        facts: list[Fact] = []
        for teller in self._tellers:
            try:
                facts.extend(teller.feed(record))
            except Exception as error:  # noqa: BLE001  (logged, and counted)
                self._complain("a record could not be told", self.session, error)
        return facts

    def _emit(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            try:
                self._emitting.emit(fact)
            except Exception as error:  # noqa: BLE001  (logged, and counted)
                self._complain("something could not be emitted", self.session, error)
