"""Oversight: how much agents do on their own, and how people approve, interrupt and correct them.

``OversightFold`` takes the records of one session, live or from a log, and ``summarise`` puts sessions
together. ``docs/measures.md`` gives the formula and the source of each number.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final, final

import anyio
import msgspec

from ..engine.codec import resolved_action
from ..engine.events import (
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Forgotten,
    MessageSent,
    RecordsLate,
    RecordsLost,
    SessionOpened,
    TurnYielded,
)
from ..engine.log.contract import EventLog, SessionSummary
from ..engine.records import RECORDING, TRACE, Record
from .strain import LONGEST_PAUSE
from .turns import Annotator, Turn, annotate

__all__ = (
    "Approvals",
    "Oversight",
    "OversightFold",
    "OversightReport",
    "OversightSummary",
    "Quantiles",
    "attended_seconds",
    "fold_oversight",
    "follow_oversight",
    "lost_in",
    "summarise",
)

_ACTS: Final = frozenset(
    {"MessageSent", "ActionTaken", "SnapshotTaken", "ApprovalAsked", "ApprovalGiven"}
)
_QUESTION: Final = re.compile(r"\?(?=[\s\"')*_]|$)")
_STOPPED: Final = re.compile(r"interrupted|paused by the user", re.IGNORECASE)
_PERSON: Final = ("person", "user")
"""Labels that name a person by a pseudonym, the first that a session has."""
_TREND: Final = 3  # decisions of a session that a trend needs

Interval = tuple[float, float]
"""Beginning and end, seconds."""


class Approvals(msgspec.Struct, frozen=True, kw_only=True):
    """The approvals that agents asked for, and what became of them.

    Attributes:
        asked: how many.
        approved_by_person: approved, by a person.
        rejected_by_person: rejected, by a person.
        by_rule: decided by a rule, either way.
        by_setting: decided by a setting, either way.
        by_unknown: decided, and the log does not say by whom.
        expired: not answered in time.
        unanswered: still open at the session's last record.
        never_asked: actions of agents that were taken without asking for approval.
        actions: actions of agents.
    """

    asked: int = 0
    approved_by_person: int = 0
    rejected_by_person: int = 0
    by_rule: int = 0
    by_setting: int = 0
    by_unknown: int = 0
    expired: int = 0
    unanswered: int = 0
    never_asked: int = 0
    actions: int = 0


class Oversight(msgspec.Struct, frozen=True, kw_only=True):
    """The oversight of one session.

    Attributes:
        person: pseudonymous id of the person, from the label ``person`` or ``user``; None if there is
            none.
        agent_turns: stretches of acts of agents between acts of humans.
        human_turns: messages of humans.
        interruptions: messages of humans while an action of an agent was in flight, and stops of an
            agent at work.
        questions: messages of agents that ask the human something.
        corrections: messages of humans that correct the agent; None if the rules cannot read them all.
        failures: messages of humans that report dissatisfaction; None likewise.
        approvals: see there.
        latencies: seconds from each request to the decision by a person, in order.
        stretches: acts and seconds of each agent turn.
        attended: when the human attended: from the agent's last act to each act of the human, at most
            5 minutes. Empty on a virtual clock.
        opened: time of the first record, seconds since the epoch; None on a virtual clock.
        last: time of the last record; None likewise.
        lost: events of the session that could not be recorded: its numbers are incomplete.
    """

    person: str | None = None
    agent_turns: int = 0
    human_turns: int = 0
    interruptions: int = 0
    questions: int = 0
    corrections: int | None = 0
    failures: int | None = 0
    approvals: Approvals = Approvals()
    latencies: tuple[float, ...] = ()
    stretches: tuple[tuple[int, float], ...] = ()
    attended: tuple[Interval, ...] = ()
    opened: float | None = None
    last: float | None = None
    lost: int = 0

    @property
    def approves_everything(self) -> bool | None:
        """Whether a person approved all that they decided on; None if they decided on nothing."""
        decided = self.approvals.approved_by_person + self.approvals.rejected_by_person
        return None if decided == 0 else self.approvals.rejected_by_person == 0

    @property
    def attended_seconds(self) -> float | None:
        """Seconds that the human attended to this session; None on a virtual clock."""
        return None if self.opened is None else _union(self.attended)

    @property
    def latency_trend(self) -> float | None:
        """Seconds by which a decision takes longer than the one before: the median of the slopes of
        all pairs (Sen 1968); None for fewer than 3 decisions. Negative is faster.
        """
        if len(self.latencies) < _TREND:
            return None
        from statistics import median  # slow to load

        pairs = combinations(enumerate(self.latencies), 2)
        return median((late - early) / (j - i) for (i, early), (j, late) in pairs)


@final
class OversightFold:
    """Folds the trace of one session, one record at a time.

    Args:
        annotator: labels the messages of humans; by default by rules.
    """

    def __init__(self, annotator: Annotator | None = None) -> None:
        self._annotate: Annotator = annotator or annotate
        self._person: str | None = None
        self._utc = False
        self._first: float | None = None
        self._last = 0.0
        self._said = {"agent": "", "human": ""}
        self._in_flight: set[int] = set()
        self._waiting: dict[int, float] = {}
        self._cleared: list[str | None] = []  # names of the actions in requests
        self._counts = {field.name: 0 for field in msgspec.structs.fields(Approvals)}
        self._human_turns = self._interruptions = self._questions = 0
        self._corrections = self._failures = 0
        self._readable = True
        self._latencies: list[float] = []
        self._stretches: list[tuple[int, float, float]] = []
        self._agents_turn = False
        self._agent_acted: float | None = None
        self._attended: list[Interval] = []
        self._lost = 0

    def feed(self, record: Record) -> None:
        """Takes the next record; those of measurement streams change nothing."""
        if record.stream == RECORDING:
            self._lost += lost_in(record)
        if record.stream != TRACE:
            return
        self._first = record.time if self._first is None else self._first
        self._last = max(self._last, record.time)
        match record.kind:
            case "SessionOpened":
                self._open(record)
            case "ActionResolved":
                self._in_flight.discard(resolved_action(record.schema, record.body) or 0)
            case "TurnYielded":
                event = record.event
                stopped = isinstance(event, TurnYielded) and _STOPPED.match(event.reason or "")
                self._interruptions += bool(stopped)
            case "ApprovalGiven":
                self._decide(record)
        if record.kind in _ACTS and record.role == "agent":
            self._agent(record)
        elif record.kind in _ACTS and record.role == "human":
            self._human(record)

    @property
    def measures(self) -> Oversight:
        """The measures so far."""
        approvals = Approvals(**self._counts | {"unanswered": len(self._waiting)})
        return Oversight(
            person=self._person,
            agent_turns=len(self._stretches),
            human_turns=self._human_turns,
            interruptions=self._interruptions,
            questions=self._questions,
            corrections=self._corrections if self._readable else None,
            failures=self._failures if self._readable else None,
            approvals=approvals,
            latencies=tuple(self._latencies),
            stretches=tuple((acts, end - start) for acts, start, end in self._stretches),
            attended=tuple(self._attended) if self._utc else (),
            opened=self._first if self._utc else None,
            last=self._last if self._utc else None,
            lost=self._lost,
        )

    def _open(self, record: Record) -> None:
        event = record.event
        if not isinstance(event, SessionOpened):
            return  # erased
        self._utc = event.clock == "utc"
        group = event.config.get("group")
        labels = group if isinstance(group, dict) else {}
        found = (labels.get(key) for key in _PERSON)
        self._person = next((one for one in found if isinstance(one, str) and one), None)

    def _agent(self, record: Record) -> None:
        event = record.event
        if not self._agents_turn:
            self._stretches.append((0, record.time, record.time))
        self._agents_turn = True
        acts, start, _ = self._stretches[-1]
        self._stretches[-1] = (acts + 1, start, record.time)
        self._agent_acted = record.time
        if isinstance(event, ActionTaken):
            self._in_flight.add(record.version)
            self._counts["actions"] += 1
            if event.name in self._cleared:
                self._cleared.remove(event.name)
            elif None in self._cleared:
                self._cleared.remove(None)
            else:
                self._counts["never_asked"] += 1
        elif isinstance(event, ApprovalAsked):
            self._counts["asked"] += 1
            self._waiting[record.version] = record.time
            self._cleared.append(event.action)
        elif isinstance(event, MessageSent):
            self._questions += _QUESTION.search(event.text) is not None
            self._said["agent"] = event.text

    def _human(self, record: Record) -> None:
        self._agents_turn = False
        if self._agent_acted is not None:
            since = max(record.time - LONGEST_PAUSE, self._agent_acted)
            self._attended.append((since, record.time))
        event = record.event
        if record.kind != "MessageSent":
            return
        self._human_turns += 1
        self._interruptions += bool(self._in_flight)
        if not isinstance(event, MessageSent):
            self._readable = False  # erased
            return
        turn = Turn(text=event.text, before=self._said["agent"], said=self._said["human"])
        self._said["human"] = event.text
        labels = self._annotate(turn)
        if labels is None:
            self._readable = False
            return
        self._corrections += "correction" in labels
        self._failures += "complaint" in labels

    def _decide(self, record: Record) -> None:
        event = record.event
        if not isinstance(event, ApprovalGiven):
            return
        asked = self._waiting.pop(event.asked, None)
        if asked is None:
            return  # decided before
        if event.expired:
            self._counts["expired"] += 1
        elif event.source is None:
            self._counts["by_unknown"] += 1
        elif event.source == "person":
            what = "approved_by_person" if event.approved else "rejected_by_person"
            self._counts[what] += 1
            self._latencies.append(max(0.0, record.time - asked))
        else:
            self._counts[f"by_{event.source}"] += 1


def lost_in(record: Record) -> int:
    """How many events a record of the recording says are missing from the trace."""
    event = record.event
    if isinstance(event, RecordsLost):
        return event.count
    return 0 if isinstance(event, RecordsLate | Forgotten) else 1


async def fold_oversight(
    records: AsyncIterable[Record],
    *,
    annotator: Annotator | None = None,
    wanted: Callable[[str], bool] | None = None,
) -> dict[str, Oversight]:
    """The oversight of each session in some records.

    Args:
        records: in the order of the log.
        annotator: labels the messages of humans.
        wanted: which sessions; None for all.
    """
    folds: dict[str, OversightFold] = {}
    async for record in records:
        if wanted is not None and not wanted(record.session):
            continue
        fold = folds.get(record.session)
        if fold is None:
            fold = folds[record.session] = OversightFold(annotator)
        fold.feed(record)
    return {session: fold.measures for session, fold in folds.items()}


async def follow_oversight(
    log: EventLog,
    *,
    by: str = "agent",
    admits: Callable[[SessionSummary], bool] | None = None,
    every: float = 2.0,
) -> AsyncGenerator[OversightReport, None]:
    """The oversight of a log as it grows: now, and whenever a number has changed.

    For example::

        async for report in follow_oversight(log, by="release"):
            for release, numbers in report.groups.items():
                print(release, numbers.interruptions_by_turn)

    It counts on from the records that are new. Each session takes memory in proportion to its approvals and
    turns, as long as this runs.

    Args:
        log: the log; it has to be open.
        by: label to group sessions by.
        admits: which sessions; None for all.
        every: seconds between two looks at the log.

    Raises:
        LogError: the log cannot be read, or was closed.
    """
    folds: dict[str, OversightFold] = {}
    position = 0
    shown: OversightReport | None = None
    while True:
        async for record in log.read_all(after_position=position):
            position = record.position
            folds.setdefault(record.session, OversightFold()).feed(record)
        groups: dict[str, list[Oversight]] = {}
        async for one in log.sessions():
            if one.session in folds and (admits is None or admits(one)):
                groups.setdefault(one.group.get(by, ""), []).append(folds[one.session].measures)
        found = OversightReport(
            by=by, groups={name: summarise(some) for name, some in sorted(groups.items())}
        )
        if found != shown:
            shown = found
            yield found
        await anyio.sleep(every)


# --- sessions together ----------------------------------------------------------------------------


class Quantiles(msgspec.Struct, frozen=True, kw_only=True):
    """Quantiles of some values, interpolated linearly between them."""

    p50: float
    p90: float
    p99: float


class OversightSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The oversight of a group of sessions. A number is None if nothing it rests on is known.

    Attributes:
        sessions: how many.
        agent_turns: Σ over sessions.
        interruptions: Σ over sessions.
        interruptions_by_turn: interruptions / agent turns.
        corrections_by_turn: corrections / agent turns, of the sessions whose messages could be read.
        failures_by_turn: failures reported / agent turns, likewise.
        pushback_by_turn: (corrections + failures + interruptions) / agent turns, likewise.
        questions: questions that agents asked.
        questions_by_interruption: questions / interruptions.
        approvals: Σ over sessions.
        decided: sessions in which a person decided on an approval.
        approve_everything: the share of these in which the person approved all.
        latency: quantiles of the seconds that people took.
        latency_trend: the median over sessions of the trend within a session, seconds per decision.
        stretch_acts: quantiles of the acts of an agent's turn.
        stretch_seconds: quantiles of the seconds of an agent's turn.
        persons: persons known by a pseudonym.
        attended: seconds that these persons attended: per person, the union over all their sessions.
        unattributed: sessions on a real clock that name no person; they are not in ``attended``.
        incomplete: sessions with events that could not be recorded; they are in no other number.
    """

    sessions: int
    agent_turns: int = 0
    interruptions: int = 0
    interruptions_by_turn: float | None = None
    corrections_by_turn: float | None = None
    failures_by_turn: float | None = None
    pushback_by_turn: float | None = None
    questions: int = 0
    questions_by_interruption: float | None = None
    approvals: Approvals = Approvals()
    decided: int = 0
    approve_everything: float | None = None
    latency: Quantiles | None = None
    latency_trend: float | None = None
    stretch_acts: Quantiles | None = None
    stretch_seconds: Quantiles | None = None
    persons: int = 0
    attended: float | None = None
    unattributed: int = 0
    incomplete: int = 0


class OversightReport(msgspec.Struct, frozen=True, kw_only=True):
    """The oversight of groups of sessions.

    Attributes:
        by: the label that groups them.
        groups: by the values of the label.
    """

    by: str
    groups: Mapping[str, OversightSummary]


def summarise(sessions: Iterable[Oversight]) -> OversightSummary:
    """The oversight of some sessions together, without those that are incomplete."""
    found = list(sessions)
    every = [one for one in found if not one.lost]
    turns = sum(one.agent_turns for one in every)
    interruptions = sum(one.interruptions for one in every)
    questions = sum(one.questions for one in every)
    read = [one for one in every if one.corrections is not None and one.failures is not None]
    read_turns = sum(one.agent_turns for one in read)
    corrections = sum(one.corrections or 0 for one in read)
    failures = sum(one.failures or 0 for one in read)
    stopped = sum(one.interruptions for one in read)
    total = {
        field.name: sum(getattr(one.approvals, field.name) for one in every)
        for field in msgspec.structs.fields(Approvals)
    }
    from statistics import median  # slow to load

    decisions = [one.approves_everything for one in every if one.approves_everything is not None]
    trends = [one.latency_trend for one in every if one.latency_trend is not None]
    known = [one for one in every if one.person is not None and one.opened is not None]
    return OversightSummary(
        sessions=len(every),
        agent_turns=turns,
        interruptions=interruptions,
        interruptions_by_turn=_ratio(interruptions, turns),
        corrections_by_turn=_ratio(corrections, read_turns),
        failures_by_turn=_ratio(failures, read_turns),
        pushback_by_turn=_ratio(corrections + failures + stopped, read_turns),
        questions=questions,
        questions_by_interruption=_ratio(questions, interruptions),
        approvals=Approvals(**total),
        decided=len(decisions),
        approve_everything=_ratio(sum(decisions), len(decisions)),
        latency=_quantiles([seconds for one in every for seconds in one.latencies]),
        latency_trend=median(trends) if trends else None,
        stretch_acts=_quantiles([float(acts) for one in every for acts, _ in one.stretches]),
        stretch_seconds=_quantiles(
            [seconds for one in every for _, seconds in one.stretches if one.opened is not None]
        ),
        persons=len({one.person for one in known}),
        attended=attended_seconds(known) if known else None,
        unattributed=sum(one.person is None and one.opened is not None for one in every),
        incomplete=len(found) - len(every),
    )


def attended_seconds(sessions: Iterable[Oversight]) -> float:
    """The seconds that persons attended to sessions, each second of a person once.

    It is never more than the wall time of a person's sessions, since intervals that overlap count once.

    Args:
        sessions: those that name no person are left out.
    """
    by_person: dict[str, list[Interval]] = {}
    for one in sessions:
        if one.person is not None:
            by_person.setdefault(one.person, []).extend(one.attended)
    return math.fsum(_union(intervals) for intervals in by_person.values())


def _union(intervals: Sequence[Interval]) -> float:
    total, reached = 0.0, -math.inf
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _ratio(count: float, of: float) -> float | None:
    return count / of if of else None


def _quantiles(values: Sequence[float]) -> Quantiles | None:
    if not values:
        return None
    ordered = sorted(values)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    return Quantiles(p50=at(0.5), p90=at(0.9), p99=at(0.99))
