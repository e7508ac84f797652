"""When a session began to meet alert rules, folded from its records: the same for all readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, final

from ....engine.errors import CodecError
from ....engine.events import AlertSent, Forgotten
from ....engine.log.append import stored
from ....engine.log.contract import SessionSummary
from ....engine.log.summary import SessionState
from ....engine.records import TRACE, Record
from ....engine.rounds import RoundProjector
from ....scoring.costs import CostFold
from ....scoring.trajectory.fold import TrajectoryFold
from ....scoring.trajectory.options import Options
from ....scoring.trajectory.updates import StopAdvice, StopWithdrawn
from .rules import AlertRule

__all__ = ("ALERTS", "Firing", "FiringFold", "FiringKey", "sent_by")

ALERTS: Final = "alerts@1"
"""The measurement stream of deliveries of alerts. Rules do not look at it."""

_READ: Final = frozenset({"SessionClosed", "SessionOpened", "UtilityScored"})
"""Kinds of which the summary of a session rests on more than that they are there."""

_DECIDING: Final = _READ | {"SnapshotTaken"}
"""Kinds with which a session can begin to meet a rule that asks for no number of rounds or the like."""


class FiringKey(NamedTuple):
    """The key of a firing within its session, in any copy of the log.

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
        position: the position of that record.
        record: its trace version; ``45.1`` for the first measurement after version 45.
        time: the time of that record, by the session's clock.
    """

    rule: str
    session: str
    cause: str
    position: int
    record: str
    time: float

    @property
    def key(self) -> FiringKey:
        """Its key within the session."""
        return FiringKey(self.rule, self.cause)


def sent_by(record: Record) -> tuple[FiringKey, AlertSent] | None:
    """The delivery in a record of the stream of alerts, with its firing; None if unreadable."""
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
        options: how sessions are scored.

    Attributes:
        met: for each rule, whether the session meets it now.
        fired: each time that it began to meet one.
        sent: the latest delivery record of each firing, if any.
        position: the position of the last record.
    """

    def __init__(
        self, session: str, rules: Sequence[AlertRule], options: Options | None = None
    ) -> None:
        self.met = [False] * len(rules)
        self.fired: list[Firing] = []
        self.sent: dict[FiringKey, AlertSent] = {}
        self.position = 0
        self._session = session
        self._rules = rules
        self._version = self._since = 0  # of the trace, and records of other streams since then
        self._state = SessionState(session)
        self._taus = [frozenset(rule.query.taus) for rule in rules]
        self._by_numbers = any(
            rule.query.numbers or rule.query.rounds or rule.query.asks_costs for rule in rules
        )
        taus = tuple(sorted(frozenset().union(*self._taus)))
        # Scores may change every later round. Without them, advice costs the same at any length of
        # the session.
        self._advising = TrajectoryFold(session, Options(taus=taus)) if taus else None
        by_utility = any(rule.query.utility for rule in rules)
        self._scoring = TrajectoryFold(session, options, emit=False) if by_utility else None
        self._costs = CostFold() if any(rule.query.asks_costs for rule in rules) else None
        self._rounds = RoundProjector()
        self._stops: dict[int, int] = {}
        self._utility: float | None = None

    def feed(self, record: Record) -> list[Firing]:
        """Takes the next record; gives the rules that the session begins to meet with it."""
        if record.stream == TRACE:
            self._version, self._since = record.version, 0
        else:
            self._since += 1
        self.position = record.position
        if record.stream == ALERTS:
            if (sent := sent_by(record)) is not None:
                self.sent[sent[0]] = sent[1]
            return []
        try:
            stopped = self._fold(record)
        except CodecError:
            return []  # its page reports the damage
        deciding = stopped or record.kind in _DECIDING or record.body is None
        if not (deciding or self._by_numbers):
            return []
        summary = self._state.summary()
        fired: list[Firing] = []
        for index, rule in enumerate(self._rules):
            met = self._meets(index, summary)
            if met and not self.met[index]:
                fired.append(self._firing(rule, record))
            self.met[index] = met
        self.fired += fired
        return fired

    def _fold(self, record: Record) -> bool:
        """Takes a record; whether it changes which tolerances are used up."""
        kind = record.kind
        event = record.event if kind in _READ else Forgotten(kind)  # most need not be decoded
        self._state.advance(stored(record, event), record.position)
        self._rounds.feed(record)
        if self._costs is not None:
            self._costs.feed(record)
        if self._scoring is not None:
            self._scoring.feed(record)
            if kind in _DECIDING:
                points = self._scoring.trajectory().points
                self._utility = points[-1].utility if points else None
        if self._advising is None or kind == "UtilityScored":
            return False
        before = dict(self._stops)
        for update in self._advising.feed(record):
            if isinstance(update, StopAdvice):
                self._stops[update.tau] = update.round
            elif isinstance(update, StopWithdrawn):
                self._stops.pop(update.tau, None)
        return before != self._stops

    def _meets(self, index: int, summary: SessionSummary) -> bool:
        query, taus = self._rules[index].query, self._taus[index]
        if not query.admits(summary):
            return False
        stops = {tau: number for tau, number in self._stops.items() if tau in taus}
        if query.asks_costs and self._costs is not None:
            costs = self._costs.costs
            if not query.admits_costs(costs.dollars, costs.latency):
                return False
        return query.admits_measures(self._rounds.number, self._utility, stops)

    def _firing(self, rule: AlertRule, record: Record) -> Firing:
        cause = f"{record.stream}/{record.version}"
        after = f".{self._since}" if self._since else ""
        label = f"{self._version}{after}"
        return Firing(rule.text, self._session, cause, record.position, label, record.time)
