"""Measurement events: the results of scorers on a trace, in separate streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .parts import Event, ScorerRef

__all__ = (
    "AlertSent",
    "EffortObserved",
    "ProgressRated",
    "RecordsLate",
    "RecordsLost",
    "ScorerFailed",
    "SimulatorFlagged",
    "StopAdvised",
    "UtilityScored",
)


class ProgressRated(Event, frozen=True):
    """A round's progress on a Likert scale of 1 to 5; in a scorer's stream, or in the trace by the
    (simulated) person.

    Attributes:
        round: number of the round, from 1, as counted by ``rounds``.
        rating: 1 to 5; None if it is missing, with the reason in ``missing``.
        until: trace version of the round's last act, which names the round in any convention.
        rounds: the convention that ``round`` is counted in.
        explanation: in the judge's words.
        scorer: who judged; None for the person.
    """

    round: int
    rating: int | None = None
    until: int | None = None
    rounds: Literal["handoff", "human-turn"] = "handoff"
    explanation: str = ""
    missing: str | None = None
    scorer: ScorerRef | None = None


class UtilityScored(Event, frozen=True):
    """The utility of a snapshot (by trace version) or of a closed round, with its parts.

    Attributes:
        snapshot: trace version of the snapshot scored; None if a round was.
        round: number of the round scored, as counted by ``rounds``; None if a snapshot was.
        until: trace version of that round's last act, which names the round in any convention.
        rounds: the convention that ``round`` is counted in.
        value: in [0, 1]; None if the score is missing, with the reason in ``missing``.
        parts: named parts of the value; None if one is missing.
    """

    scorer: ScorerRef
    snapshot: int | None = None
    round: int | None = None
    until: int | None = None
    rounds: Literal["handoff", "human-turn"] = "handoff"
    value: float | None = None
    parts: Mapping[str, float | None] = {}
    missing: str | None = None


class EffortObserved(Event, frozen=True):
    """A participant's effort as their page observed it since its last report, with their consent.

    Attributes:
        actor: whose effort.
        until: the session's latest trace version at the time of the report.
        reading: seconds in which they looked at the page and did nothing else.
        typing: seconds in which they typed.
        idle: seconds in which they were away, or did nothing for a long time.
        inserted: characters that they added to the output or a message.
        deleted: characters that they removed.
    """

    actor: str
    until: int
    reading: float = 0.0
    typing: float = 0.0
    idle: float = 0.0
    inserted: int = 0
    deleted: int = 0


class AlertSent(Event, frozen=True):
    """A webhook was called, or is about to be, since the session had begun to meet an alert rule: with
    the record that ``cause`` of the envelope names.

    Attributes:
        rule: as it was written.
        outcome: ``sending`` before an attempt, so that no other process makes it; ``retrying`` after one
            that failed and is to be repeated; ``delivered``, or ``failed`` for good.
        attempt: number of the attempt, from 1.
        at: when, in seconds since the epoch (UTC), whatever the session's clock is.
        error: why it failed.
    """

    rule: str
    outcome: Literal["sending", "retrying", "delivered", "failed"]
    attempt: int
    at: float
    error: str = ""


class RecordsLost(Event, frozen=True):
    """Events of the session were accepted for recording, and never reached the log.

    This record is in the session's stream ``record``, which stays open after the session is closed.

    Attributes:
        count: how many events.
        begin: when the first of them happened, UTC epoch seconds.
        end: when the last of them happened.
        why: why the first of them was lost.
    """

    count: int
    begin: float
    end: float
    why: str = ""


class RecordsLate(Event, frozen=True):
    """Events waited on the disk of a recorder while the log was away, and were written later.

    Where other events were written meanwhile, the order of the trace is not the order in which things
    happened. It is in the session's stream ``record``.

    Attributes:
        first: trace version of the first of them.
        last: trace version of the last of them; all in between came late.
        begin: when the first of them happened, UTC epoch seconds.
        end: when the last of them happened.
    """

    first: int
    last: int
    begin: float
    end: float


class ScorerFailed(Event, frozen=True):
    """A scorer raised, and is quarantined for this session from here on."""

    scorer: ScorerRef
    error: str
    type: str


class SimulatorFlagged(Event, frozen=True):
    """A simulated user's fault (a leak, an invention): counted, since it distorts results."""

    fault: str
    of: int
    detail: str = ""
    scorer: ScorerRef | None = None


class StopAdvised(Event, frozen=True):
    """The human would stop here: τ unproductive rounds in a row. Recorded only if the stop was
    enforced or delivered to a product.
    """

    round: int
    tau: int
    rule: str = ""
    enforced: bool = False
    scorer: ScorerRef | None = None
