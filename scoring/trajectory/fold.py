"""The trajectory of one session, folded from its records: one code path, live and in a replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import (
    DraftDropped,
    Forgotten,
    MessageSent,
    Origin,
    ProgressRated,
    RecordsLate,
    ScorerFailed,
    SessionClosed,
    SessionOpened,
    SimulatorFlagged,
    SnapshotTaken,
    UtilityScored,
)
from ...engine.log.summary import FORGOTTEN
from ...engine.problem import Posed, derived_problem
from ...engine.records import RECORDING, TRACE, Record
from ...engine.rounds import Round, RoundProjector, is_act, is_blank
from ...engine.scorers.choice import preferred, split_stream
from ..oversight import OversightFold, lost_in
from .effort import EffortMeter
from .labels import is_baseline, labels_of, poses_output
from .options import Options, plugged_annotator
from .output_lines import OutputLines
from .points import NOT_EVALUATED, Point, Trajectory
from .round_index import RoundIndex
from .tolerance import stop_rounds
from .trackers import RatingTracker, UtilityTracker
from .updates import (
    ChatAdvised,
    EffortUpdated,
    OversightUpdated,
    RoundClosed,
    RoundOpened,
    ScorerDown,
    SessionEnded,
    StageChanged,
    Trigger,
    Update,
)

if TYPE_CHECKING:
    from ..chat_control import ChatController

__all__ = ("TrajectoryFold",)

_NOTHING: tuple[Update, ...] = ()


@final
class TrajectoryFold:
    """Takes the records of one session, of all streams in order of position, and gives updates.

    Live scoring passes it records from a subscription, a replay from the log; neither knows more
    than the other. Its memory grows with rounds and snapshots, not with records. The places of
    measurements among the trace records decide when updates come, but not the final trajectory.

    Args:
        session: session id.
        options: how to score.
        emit: emit updates. Without it, ``feed`` emits none and is faster; the trajectory does not
            change.
        output: the lines of the output, if another fold of the session shares them.

    Attributes:
        session: session id.
        options: how it is scored.
        state: ``open``, the reason why the session was closed, or ``forgotten``.
        unplaced: how many measurements were about no round: of a version that the trace does not
            have, or that is no snapshot where one was scored; counted otherwise without naming a
            version; or a human's that came too late.

    Raises:
        InvalidInput: a tolerance is below 1.
    """

    def __init__(
        self,
        session: str,
        options: Options | None = None,
        *,
        emit: bool = True,
        output: OutputLines | None = None,
    ) -> None:
        self.session = session
        self._emit = emit
        self.options = options = options or Options()
        self.state = "open"
        self.unplaced = 0
        self._projector = RoundProjector(options.rounds)
        self._meter = EffortMeter(options, output)
        self._index = RoundIndex(options.rounds)
        self._ratings = RatingTracker(options, self._index)
        self._utility = UtilityTracker(options, self._index)
        self._version = 0
        self._refining = False
        self._origin: Origin | None = None
        self._shared = 0  # trace versions of a fork before its own first act; 0 for no fork
        self._forked_at: int | None = None
        self._labels: Mapping[str, str] = {}
        self._instance = ""
        self._problem: str | Posed | None = None
        self._baseline = False
        self._posed: bool | None = None
        self._faults: dict[str, Counter[str]] = {}
        self._lost = 0
        self._late: list[tuple[int, int]] = []  # first and last trace versions
        self._chat: ChatController | None = None
        self._oversight: OversightFold | None = None
        if emit and options.oversight:
            self._oversight = OversightFold(plugged_annotator(options))
        self._overseen: OversightUpdated | None = None

    def feed(self, record: Record) -> Sequence[Update]:
        """Takes the next record of the session, and gives the updates that follow from it.

        Raises:
            CodecError: a body that is needed is damaged.
            InvalidInput: the record is of another session, or an opening holds no valid timing.
        """
        if record.stream == TRACE:
            self._version = record.version
            handle = _TRACE.get(record.kind)
        elif record.stream == RECORDING:
            handle = TrajectoryFold._noted
        else:
            handle = _MEASURED.get(record.kind)
        oversight = self._oversight if record.stream == TRACE else None
        if handle is None and oversight is None:
            return _NOTHING
        if record.session != self.session:
            raise InvalidInput(
                f"a record of session {record.session!r} was given to the fold of {self.session!r}"
            )
        updates = _NOTHING if handle is None else handle(self, record)
        if oversight is not None and (overseen := self._oversee(oversight, record)) is not None:
            updates = [*updates, overseen]
        if self._shared and record.version > self._shared:
            self._leave_origin(record)
        return updates

    def trajectory(self) -> Trajectory:
        """The trajectory so far; while the session is open, its last point is the open round."""
        points: list[Point] = []
        missing = self._utility.book.missing
        utility = self._utility.book.base
        for over, effort in zip(self._index.rounds, self._index.efforts, strict=True):
            points.append(self._point(over, effort, utility))
            utility = points[-1].utility
        if self._index.number > len(points):
            current = self._projector.current
            points.append(self._point(current, self._meter.measures(), utility))
        generated = self._meter.generated
        return Trajectory(
            session=self.session,
            group=self._labels,
            instance=self._instance,
            problem=self._problem if isinstance(self._problem, str) else None,
            points=tuple(points),
            silent=self.options.rounds == "human-turn" and self._index.number == 1,
            agent_tokens=generated.tokens("agent"),
            human_tokens=generated.tokens("human"),
            estimated=generated.estimated,
            evaluated=missing != NOT_EVALUATED and not self._utility.book.candidates,
            output=self._utility.book.has_snapshots if self._posed is None else self._posed,
            baseline=self._baseline and not self._meter.acts,
            scorer=self.utility_scorer,
            candidates=self._utility.book.candidates,
            judges=self._ratings.book.judges,
            state=self.state,
            forked_from=self._origin,
            forked_at=self._forked_at,
            faults=self._counted_faults(),
            lost=self._lost,
            late=self._late_rounds(),
            coarse=self._meter.coarse,
        )

    @property
    def utility_missing(self) -> str | None:
        """Why the session's utility is missing so far; None if it has one."""
        return self._utility.book.missing

    @property
    def utility_scorer(self) -> str | None:
        """The stream of the scorer whose utility counts; None if it was not measured."""
        return self._utility.book.scorer

    def _leave_origin(self, record: Record) -> None:
        """Notes the first own act of a fork, or its close."""
        if is_act(record) or record.kind == "SessionClosed":
            self._shared = 0
            self._forked_at = self._index.number

    def _counted_faults(self) -> Mapping[str, int]:
        """Faults by kind, over all audits; the newest version of each audit counts."""
        found: Counter[str] = Counter()
        for name in {split_stream(stream)[0] for stream in self._faults}:
            found += self._faults[preferred(self._faults, name) or name]
        return dict(sorted(found.items()))

    @property
    def stops(self) -> Mapping[int, int]:
        """k_τ by τ, of the tolerances that are used up."""
        last = self._index.number - 1 if self._index.closing else self._index.number
        ratings = map(self._ratings.book.rating, range(1, last + 1))
        stops = stop_rounds(ratings, self.options.taus)
        return {tau: number for tau, number in stops.items() if number is not None}

    # --- trace -----------------------------------------------------------------------------------

    def _opened(self, record: Record) -> Sequence[Update]:
        event = record.event
        if isinstance(event, SessionOpened):
            judge, utility = event.config.get("judge"), event.config.get("utility")
            if isinstance(judge, str):
                self._ratings.book.configure(judge)
            if isinstance(utility, str):
                self._utility.configure(utility)
            self._pose(event)
        updates = self._begin(record)
        self._projector.feed(record)
        if isinstance(event, SessionOpened):
            self._origin = event.forked_from
            self._shared = 0 if self._origin is None else self._origin.version
            self._labels = labels_of(event)
            self._instance = event.instance
            self._problem = derived_problem(self.session, event)
            self._baseline = is_baseline(event)
            self._meter.opened(event)
        elif isinstance(event, Forgotten):
            self.state = FORGOTTEN
        return updates

    def _pose(self, event: SessionOpened) -> None:
        """Notes whether the session is about an output; if not, or not yet, it is advised as a chat."""
        self._posed = poses_output(event)
        unsaid = "output" not in event.config and event.clock == "utc"
        if self._emit and (not self._posed or unsaid):
            from ..chat_control import ChatController  # with patterns that few sessions need

            annotator = plugged_annotator(self.options)
            self._chat = ChatController(self.session, annotator=annotator)

    @property
    def _has_output(self) -> bool:
        """Whether the session is about an output, as far as is known."""
        return self._posed is True or (self._posed is None and self._utility.book.has_snapshots)

    def _converse(self, record: Record) -> ChatAdvised | None:
        """What follows from an act in a chat, if it is one. The round of the act is open by then."""
        chat = self._chat
        if chat is None:
            return None
        if record.kind == "SnapshotTaken" and self._posed is not False:
            self._chat = None  # there is an output
            return None
        advice = chat.feed(record)
        if record.role != "human" or record.kind != "MessageSent":
            return None
        move = None if advice is None else advice.move
        if self._has_output and not (chat.quiet and move in ("answer", "escalate")):
            return None
        why = "the rules cannot read the message" if advice is None else advice.why
        about = Trigger(record, self._version).about(self._index.number)
        return ChatAdvised(*about, move=move, why=why)

    def _oversee(self, fold: OversightFold, record: Record) -> OversightUpdated | None:
        """How people watch over the agents after a record, if that says something new."""
        fold.feed(record)
        if record.role != "human" and record.kind not in _OVERSEEN:
            return None  # what agents do counts with the next act of a human
        numbers = fold.measures
        acts, seconds = numbers.stretches[-1] if numbers.stretches else (0, 0.0)
        turns = numbers.agent_turns
        found = OversightUpdated(
            *Trigger(record, self._version).about(self._index.number),
            agent_turns=turns,
            interruptions=numbers.interruptions,
            interruptions_by_turn=numbers.interruptions / turns if turns else None,
            questions=numbers.questions,
            corrections=numbers.corrections,
            failures=numbers.failures,
            approvals=numbers.approvals,
            approves_everything=numbers.approves_everything,
            latency=numbers.latencies[-1] if numbers.latencies else None,
            latency_trend=numbers.latency_trend,
            stretch_acts=acts,
            stretch_seconds=seconds,
            attended=numbers.attended_seconds,
        )
        before, self._overseen = self._overseen, _unplaced(found)
        return None if before == self._overseen else found

    def _took_action(self, record: Record) -> Sequence[Update]:
        if record.role == "agent" and self._index.number:  # most acts are like this
            self._projector.feed_agent_action(record.version)
            self._meter.agent_acted(record.time)
            if self._chat is not None:
                self._chat.feed(record)
            return _NOTHING
        return self._acted(record)

    def _submitted(self, record: Record) -> Sequence[Update]:
        if record.role not in ("human", "agent"):
            return _NOTHING
        event = record.event
        blank = not isinstance(event, SnapshotTaken) or is_blank(event)
        self._utility.book.submitted(record.version, blank=blank)
        updates = self._acted(record)
        if not self._emit:
            return _NOTHING
        turned = self._utility.turn(Trigger(record, self._version), self._projector.snapshot)
        return [*updates, *turned] if turned else updates

    def _acted(self, record: Record) -> Sequence[Update]:
        if record.role == "human":
            return self._acted_by_human(record)
        if record.role != "agent":
            return _NOTHING
        updates = _NOTHING if self._index.number else self._begin(record)
        self._projector.feed(record)
        self._meter.agent(record)
        self._converse(record)
        return updates

    def _acted_by_human(self, record: Record) -> Sequence[Update]:
        updates = [] if self._index.number else self._begin(record)
        message = record.kind == "MessageSent"
        if isinstance(self._problem, Posed):
            self._problem = _requested(self._problem, record)
        over = self._projector.feed(record)
        if over is not None:
            self._close(record, over, message, updates)
            self._open(record, record.version, updates)
        elif message:
            due = self._ratings.book.fall_due(self._index.number - 1)
            if self._emit:
                updates += self._ratings.refresh(Trigger(record, self._version), due)
        self._meter.human(record)
        if not self._emit:
            return _NOTHING
        if (advised := self._converse(record)) is not None:
            updates.insert(0, advised)  # before what opens the round, so that the two come together
        updates.append(
            EffortUpdated(
                *Trigger(record, self._version).about(self._index.number),
                effort=self._meter.measures(),
            )
        )
        return updates

    def _called(self, record: Record) -> Sequence[Update]:
        self._meter.called(record)
        return _NOTHING

    def _dropped(self, record: Record) -> Sequence[Update]:
        event = record.event
        if record.role == "human" and isinstance(event, DraftDropped):
            self._meter.dropped(event.seconds, record.time)
        return _NOTHING

    def _rated_by_human(self, record: Record) -> Sequence[Update]:
        event = record.event
        if record.role != "human" or not isinstance(event, ProgressRated):
            return _NOTHING
        changed = self._ratings.book.by_human(event, self._version, record.actor)
        if changed is None:
            self.unplaced += 1
            return _NOTHING
        if not self._emit:
            return _NOTHING
        about, numbers = changed
        return self._ratings.refresh(
            Trigger(record, self._version), numbers, about=about, event=event
        )

    def _closed(self, record: Record) -> Sequence[Update]:
        event = record.event
        updates = self._begin(record)
        over = self._projector.feed(record)
        if over is not None:
            if self.options.rounds == "handoff" and over.number > 1 and over.words_only:
                self._index.closing = over.number
            self._close(record, over, True, updates)
            if self._index.closing and self._emit:
                trigger = Trigger(record, self._version)
                updates += self._utility.close(trigger)
                updates += self._ratings.leave_out_closing(trigger)
        self._meter.closed()
        if isinstance(event, SessionClosed):
            self.state = event.reason
        if isinstance(event, SessionClosed) and self._emit:
            updates.append(
                SessionEnded(
                    *Trigger(record, self._version).about(self._index.number),
                    state=event.reason,
                    by=event.by,
                )
            )
        return updates

    # --- measurements ----------------------------------------------------------------------------

    def _scored(self, record: Record) -> Sequence[Update]:
        event = record.event
        if not isinstance(event, UtilityScored):
            return _NOTHING
        changed = self._utility.book.record(record.stream, event, self._version)
        if changed is None:
            self.unplaced += 1
            return _NOTHING
        if not self._emit:
            return _NOTHING
        snapshot = self._projector.snapshot
        return self._utility.refresh(Trigger(record, self._version), changed, event, snapshot)

    def _rated(self, record: Record) -> Sequence[Update]:
        event = record.event
        if not isinstance(event, ProgressRated):
            return _NOTHING
        changed = self._ratings.book.by_scorer(record.stream, event, self._version)
        if changed is None:
            self.unplaced += 1
            return _NOTHING
        if not self._emit:
            return _NOTHING
        about, numbers = changed
        return self._ratings.refresh(
            Trigger(record, self._version), numbers, about=about, event=event
        )

    def _failed(self, record: Record) -> Sequence[Update]:
        changed = self._ratings.book.fail(record.stream)
        if not self._emit:
            return _NOTHING
        event = record.event
        error = f"{event.type}: {event.error}" if isinstance(event, ScorerFailed) else "forgotten"
        down = ScorerDown(
            *Trigger(record, self._version).about(self._index.number),
            scorer=record.stream,
            error=error,
        )
        return [down, *self._ratings.refresh(Trigger(record, self._version), changed)]

    def _flagged(self, record: Record) -> Sequence[Update]:
        event = record.event
        if isinstance(event, SimulatorFlagged):
            self._faults.setdefault(record.stream, Counter())[event.fault] += 1
        return _NOTHING

    def _noted(self, record: Record) -> Sequence[Update]:
        """Counts events that are lost, or came after the close of the session."""
        event = record.event
        self._lost += lost_in(record)
        if isinstance(event, RecordsLate):
            self._late.append((event.first, event.last))
        return _NOTHING

    def _late_rounds(self) -> tuple[int, ...]:
        """The rounds with events that were written late."""
        found: set[int] = set()
        for ends in self._late:
            first, last = (self._index.of_version(end, self._version) for end in ends)
            if first is not None and last is not None:
                found.update(range(first, last + 1))
        return tuple(sorted(found))

    # --- rounds ----------------------------------------------------------------------------------

    def _begin(self, record: Record) -> list[Update]:
        """Begins the first round, if there is none yet."""
        updates: list[Update] = []
        if not self._index.number:
            self._open(record, 1, updates)
        return updates

    def _open(self, record: Record, first: int, updates: list[Update]) -> None:
        """Begins a round."""
        self._index.begin(first)
        self._meter.next_round()
        if not self._emit:
            return
        stage = self._projector.stage
        opened = RoundOpened(
            *Trigger(record, self._version).about(self._index.number),
            stage=stage,
            utility=self._utility.before,
            missing=self.utility_missing,
            output=self._has_output,
        )
        updates.append(opened)
        if stage == "refinement" and not self._refining:
            self._refining = True
            updates.append(
                StageChanged(*Trigger(record, self._version).about(self._index.number), stage=stage)
            )

    def _close(self, record: Record, over: Round, due: bool, updates: list[Update]) -> None:
        """Ends a round; with ``due``, ratings of all rounds up to it are due."""
        self._meter.reach(record.time)
        effort = self._meter.measures()
        self._index.close(over, effort)
        number = over.number
        changed = self._ratings.book.fall_due(number) if due else (number,)
        if not self._emit:
            return
        point = self._point(over, effort, self._utility.before)
        self._utility.before = point.utility
        about = Trigger(record, self._version).about(number)
        updates.append(RoundClosed(*about, point=point, missing=self.utility_missing))
        updates += self._ratings.refresh(Trigger(record, self._version), changed)

    def _point(
        self, over: Round, effort: Mapping[str, float | None], before: float | None
    ) -> Point:
        value, stale = self._utility.book.of(over.number, over.snapshot)
        rating, pending = self._ratings.of(over.number)
        return Point(
            round=over.number,
            value=value,
            utility=before if value is None else value,
            rating=rating,
            pending=pending,
            updated=over.updated,
            stale=stale,
            stage=over.stage,
            closing=over.number == self._index.closing,
            effort=effort,
        )


def _unplaced(update: OversightUpdated) -> OversightUpdated:
    """The same without its place, to compare numbers."""
    return msgspec.structs.replace(update, round=0, position=0, version=0)


def _requested(posed: Posed, record: Record) -> str | None:
    """The key of a session that recorded none, from the human's first act; None if that is not the request."""
    if record.version != _REQUEST or not isinstance(event := record.event, MessageSent):
        return None
    return posed.asked(event.text)


_OVERSEEN = frozenset({"ApprovalGiven", "TurnYielded", "SessionClosed"})
"""Kinds of records after which the numbers of oversight may change, from any role."""

_REQUEST = 2  # its version in the trace of a session that Duolog ran


_TRACE: Mapping[str, Callable[[TrajectoryFold, Record], Sequence[Update]]] = {
    "SessionOpened": TrajectoryFold._opened,
    "MessageSent": TrajectoryFold._acted,
    "ActionTaken": TrajectoryFold._took_action,
    "SnapshotTaken": TrajectoryFold._submitted,
    "ApprovalAsked": TrajectoryFold._acted,
    "ApprovalGiven": TrajectoryFold._acted,
    "DraftDropped": TrajectoryFold._dropped,
    "ModelCalled": TrajectoryFold._called,
    "ProgressRated": TrajectoryFold._rated_by_human,
    "SessionClosed": TrajectoryFold._closed,
}
"""The handler of a trace record, by its kind; other kinds change nothing."""

_MEASURED: Mapping[str, Callable[[TrajectoryFold, Record], Sequence[Update]]] = {
    "UtilityScored": TrajectoryFold._scored,
    "ProgressRated": TrajectoryFold._rated,
    "ScorerFailed": TrajectoryFold._failed,
    "SimulatorFlagged": TrajectoryFold._flagged,
}
"""The same for records of measurement streams."""
