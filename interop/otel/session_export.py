"""Exports one session: folds its records into signals, and emits each signal once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, final

import msgspec

from ...engine.errors import CodecError
from ...engine.events import SessionOpened
from ...engine.plugins import PluginCall, failure_of
from ...engine.records import TRACE, Record
from .signals import Signal, SignalFold, SpanNoted, SpanStarted, still_open

__all__ = ("EmitsSessions", "EmitsSignals", "Report", "SessionExporter")

Report: TypeAlias = Callable[[str, str, BaseException], None]
"""Takes what went wrong: with what, in which session, and the error."""


class EmitsSignals(Protocol):
    """Emits the signals of one session."""

    def emit(self, signal: Signal) -> None:
        """Emits one signal; may raise anything."""
        ...


class EmitsSessions(Protocol):
    """Emits the signals of all sessions; ``sdk.Emitter`` does, through OpenTelemetry."""

    def session(self, session: str, opened: float, *, virtual: bool) -> EmitsSignals:
        """Makes the emitter of one session's signals.

        Args:
            session: session id.
            opened: time of its first record, on its clock.
            virtual: whether its clock is a virtual one.
        """
        ...

    def flush(self, seconds: float) -> bool:
        """Exports what waits, within a number of seconds; returns whether all of it left."""
        ...


@final
class SessionExporter:
    """Exports one session.

    Records in the history, or that a fork took over from its origin, were exported before or belong
    to another session. They are folded, and only their open spans are started again.

    Args:
        session: session id.
        folds: fold its records; the signals of the first come first.
        emitter: sends the signals.
        history: the records before the first that is to be exported.
        report: called with each failure; the rest continues.
    """

    def __init__(
        self,
        session: str,
        folds: Sequence[SignalFold],
        emitter: EmitsSignals,
        history: Sequence[Record],
        report: Report,
    ) -> None:
        self.session = session
        self._folds = folds
        self._emitter = emitter
        self._history: Sequence[Record] = history
        self._report = report
        self._inherited = 0
        self._open: dict[str, list[SpanStarted | SpanNoted]] = {}

    def export(self, record: Record) -> None:
        """Exports a record. May block as long as an exporter; errors of plug-ins are reported."""
        for earlier in self._history:
            still_open(self._open, self._signals(earlier))
        self._history = ()
        signals = self._signals(record)
        if record.stream == TRACE and record.version <= self._inherited:
            still_open(self._open, signals)
            return
        for held in self._open.values():
            self._emit(held)
        self._open = {}
        self._emit(signals)

    def _signals(self, record: Record) -> list[Signal]:
        try:
            event = record.event
        except CodecError as error:
            # Its envelope still counts, so that rounds do not move.
            self._report("a record could not be read", self.session, error)
            record = msgspec.structs.replace(record, body=None)
            event = record.event
        if isinstance(event, SessionOpened) and event.forked_from is not None:
            self._inherited = event.forked_from.version
        signals: list[Signal] = []
        for fold in self._folds:
            try:
                with PluginCall("a fold of the export"):
                    signals.extend(fold.feed(record))
            except Exception as error:  # noqa: BLE001  (logged, and counted)
                self._report("a record could not be exported", self.session, failure_of(error))
        return signals

    def _emit(self, signals: Sequence[Signal]) -> None:
        for signal in signals:
            try:
                with PluginCall("OpenTelemetry"):
                    self._emitter.emit(signal)
            except Exception as error:  # noqa: BLE001  (logged, and counted)
                self._report("a signal could not be emitted", self.session, failure_of(error))
