"""When a session began to meet alert rules, folded from its records: the same for whoever reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, final

from msgspec.structs import replace

from ....engine.errors import CodecError
from ....engine.events import AlertSent
from ....engine.log.append import stored
from ....engine.log.contract import SessionSummary
from ....engine.log.summary import SessionState
from ....engine.records import Record
from ....scoring.trajectory.fold import TrajectoryFold
from ....scoring.trajectory.options import Options
from .rules import AlertRule

__all__ = ("ALERTS", "Firing", "FiringFold", "FiringKey", "sent_by")

ALERTS: Final = "alerts@1"
"""The measurement stream of what was done about alerts. Rules do not look at it."""

_RATED: Final = frozenset({"ProgressRated", "SessionClosed", "SessionOpened"})
_SCORED: Final = frozenset({"SessionClosed", "SessionOpened", "SnapshotTaken", "UtilityScored"})


class FiringKey(NamedTuple):
    """What tells a firing from others of its session, in any copy of the log.

    Attributes:
        rule: the rule's text.
        cause: ``stream/version`` of the record with which the session began to meet it.
    """

    rule: str
    cause: str


class Firing(NamedTuple):
    """A rule fired.

    Attributes:
        rule: the rule's text.
        session: the session that began to meet it.
        cause: ``stream/version`` of the record with which it did.
        position: of that record.
        number: of that record in its session, from 1.
        time: of that record, by the session's clock.
    """

    rule: str
    session: str
    cause: str
    position: int
    number: int
    time: float

    @property
    def key(self) -> FiringKey:
        """What tells it from others of its session."""
        return FiringKey(self.rule, self.cause)


def sent_by(record: Record) -> tuple[FiringKey, AlertSent] | None:
    """What a record of the stream of alerts says, and of which firing; None where nobody can read it."""
    try:
        event = record.event
    except CodecError:
        return None
    if not isinstance(event, AlertSent) or record.cause is None:
        return None
    return FiringKey(event.rule, record.cause), event


@final
class FiringFold:
    """Takes the records of one session, of all streams in order of position.

    Args:
        session: session id.
        rules: the rules.

    Attributes:
        met: for each rule, whether the session meets it now.
        fired: each time that it began to meet one.
        sent: the latest record of what was done about each firing, where something was.
        position: of the last record.
    """

    def __init__(self, session: str, rules: Sequence[AlertRule]) -> None:
        self.met = [False] * len(rules)
        self.fired: list[Firing] = []
        self.sent: dict[FiringKey, AlertSent] = {}
        self.position = 0
        self._session = session
        self._rules = rules
        self._number = 0
        self._state = SessionState(session)
        self._taus = [frozenset(rule.query.taus) for rule in rules]
        taus = sorted(frozenset().union(*self._taus))
        self._by_tolerance = bool(taus)
        self._by_utility = any(rule.query.utility for rule in rules)
        self._fold = TrajectoryFold(session, Options(taus=tuple(taus)), emit=False)
        self._stops: Mapping[int, int] = {}
        self._unscored: float | None = None  # utility where the summary knows none

    def feed(self, record: Record) -> list[Firing]:
        """Takes the next record; gives the rules that the session begins to meet with it."""
        self._number += 1
        self.position = record.position
        if record.stream == ALERTS:
            if (sent := sent_by(record)) is not None:
                self.sent[sent[0]] = sent[1]
            return []
        try:
            summary = self._summary(record)
        except CodecError:
            return []  # its page says what is damaged
        fired: list[Firing] = []
        for index, rule in enumerate(self._rules):
            met = self._meets(index, summary)
            if met and not self.met[index]:
                fired.append(self._firing(rule, record))
            self.met[index] = met
        self.fired += fired
        return fired

    def _summary(self, record: Record) -> SessionSummary:
        self._state.advance(stored(record, record.event), record.position)
        summary = self._state.summary()
        if not (self._by_tolerance or self._by_utility):
            return summary
        self._fold.feed(record)
        if self._by_tolerance and record.kind in _RATED:
            self._stops = dict(self._fold.stops)
        if self._by_utility and summary.utility is None and summary.evaluated:
            if record.kind in _SCORED:
                points = self._fold.trajectory().points
                self._unscored = points[-1].utility if points else None
            return replace(summary, utility=self._unscored)
        return summary

    def _meets(self, index: int, summary: SessionSummary) -> bool:
        query, taus = self._rules[index].query, self._taus[index]
        if not query.admits(summary):
            return False
        if not (query.utility or taus):
            return True
        stops = {tau: number for tau, number in self._stops.items() if tau in taus}
        return query.admits_measures(summary.utility, stops)

    def _firing(self, rule: AlertRule, record: Record) -> Firing:
        cause = f"{record.stream}/{record.version}"
        number, time = self._number, record.time
        return Firing(rule.text, self._session, cause, record.position, number, time)
