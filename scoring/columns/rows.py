"""The rows of a session: one of the session table, and one of the round table per round.

``docs/columns.md`` lists the columns; Parquet files use the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, TypeVar, final

import msgspec

from ...engine.errors import CodecError, InvalidInput
from ...engine.events import ApprovalGiven, Origin, SessionOpened
from ...engine.log.summary import FORGOTTEN
from ...engine.records import TRACE, Record
from ..costs import CostFold, Costs
from ..process import Process, ProcessFold
from ..reviews import ReviewFold, Reviews
from ..trajectory.fold import TrajectoryFold
from ..trajectory.options import Options, plugged_annotator
from ..trajectory.output_lines import OutputLines
from ..trajectory.points import NO_SCORE, NOT_EVALUATED, Point, Trajectory, undecided

__all__ = (
    "DEFINITIONS",
    "ERASED",
    "FOLD_VERSION",
    "PROCESS_MEASURES",
    "Folded",
    "RoundRow",
    "SessionFold",
    "SessionRow",
    "in_64_bits",
    "rows_of",
    "trajectory_of",
)

ERASED: Final = "erased: what was measured is gone"
"""Why the utility of a forgotten session is missing."""

DEFINITIONS: Final = 5
"""Version of the definitions of all numbers in a report.

2: missing utility is missing, not 0; closing rounds count for effort only; a greeting is not a
separate round. 3: every evaluated session that began counts; a closing round holds messages of
humans only; the scorer whose utility counts is never guessed. 4: on a virtual clock, humans spend at
most the session time that passed. 5: in the hazard, a round without a rating leaves the number of
unproductive rounds as it is."""

FOLD_VERSION: Final = 11
"""Version of the fold from records to rows. Raise it if the same records give other rows, or rows are kept
with other numbers."""

PROCESS_MEASURES: Final = (
    "agent_initiatives",
    "human_initiatives",
    "initiative_entropy",
    "confirmations_asked",
    "confirmations_answered",
    "approved",
    "denied",
    "halts",
    "interruptions",
    "peak_reading",
    "hesitation",
    "clarifications",
    "reworked_lines",
    "inquiries",
    "loops",
    "looping_acts",
)
"""Numbers of ``Process``: columns of the session table, in the order of a report."""

V = TypeVar("V")

RoundRow: TypeAlias = Point
"""A row of the round table."""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A row of the session table.

    Attributes:
        session: session id.
        key: position of its first record in the log; 0 if it does not come from a log.
        state: ``open``, the reason why the session was closed, or ``forgotten``.
        labels: labels to group by: agent, user, model, task, ...
        instance: the task instance.
        problem: which problem it was, by content; None if it is not known.
        seed: the seed in its opening; None if there is none.
        scorer: the stream of the scorer whose utility counts, ``name@version``; None if no scorer
            measured utility, or if the source does not say.
        candidates: the scorers to choose from, if several measured utility and none is chosen.
        judges: whose ratings count.
        baseline: an automated run, without a collaborating human.
        evaluated: utility was measured, or was to be.
        output: it poses a shared output.
        silent: the human took no turn after the request; known only if rounds are human turns.
        estimated: token counts are estimated from texts.
        agent_tokens: tokens that the agent generated; None if unknown.
        human_tokens: tokens that the human generated; None if unknown.
        cost: US dollars for the agent's model calls with a known price; None if no call has one.
        unpriced: model calls of the agent without a known price, which ``cost`` leaves out.
        latency: median seconds until the agent answers, see ``costs``; None if unknown.
        final: final performance, if it is known apart from the rounds.
        final_missing: the source says that the final performance is missing.
        forked_from: id of the session that it was forked from; None if it is not a fork.
        forked_version: the last trace version that it shares with that session.
        forked_at: round of a fork's first own act; None before that.
        faults: faults of the simulated user, by kind.
        process: how the parties worked together; None if it was not measured.
        lost: events that could not be recorded; rounds and effort of such a session are incomplete.
        late: numbers of the rounds with events that were written late.
        coarse: versions of the output that were not compared in full with what went before, so that changed
            stretches count whole.
        rounds: how many rounds it has, a closing one included.
        waiting: approvals that an agent has asked for and no human has answered yet.
        unreadable: why a record could not be read, if there was one; the row says what the others give.
        tags: the tags by reviewers, of the session or a part of it.
        reviewers: everyone who has reviewed the session.
        review_rating: the mean rating of the whole session by its reviewers, 1 to 5; None without a
            rating.
        comments: how many comments reviewers have added.
    """

    session: str
    key: int = 0
    state: str = "finished"
    labels: Mapping[str, str] = {}
    instance: str = ""
    problem: str | None = None
    seed: int | None = None
    scorer: str | None = None
    candidates: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    baseline: bool = False
    evaluated: bool = True
    output: bool = True
    silent: bool = False
    estimated: bool = False
    agent_tokens: int | None = None
    human_tokens: int | None = None
    cost: float | None = None
    unpriced: int = 0
    latency: float | None = None
    final: float | None = None
    final_missing: bool = False
    forked_from: str | None = None
    forked_version: int | None = None
    forked_at: int | None = None
    faults: Mapping[str, int] = {}
    process: Process | None = None
    lost: int = 0
    late: tuple[int, ...] = ()
    coarse: int = 0
    rounds: int = 0
    waiting: int = 0
    unreadable: str = ""
    tags: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    review_rating: float | None = None
    comments: int = 0


class Folded(msgspec.Struct, frozen=True, gc=False):
    """The rows of one session.

    Attributes:
        session: its row of the session table.
        rounds: its rows of the round table, in order.
    """

    session: SessionRow
    rounds: tuple[RoundRow, ...] = ()

    @property
    def utility(self) -> float | None:
        """The utility after the last round; None if it is missing."""
        return self.rounds[-1].utility if self.rounds and self.utility_missing is None else None

    @property
    def utility_missing(self) -> str | None:
        """Why the session's utility is missing; None if it has one."""
        row = self.session
        if row.state == FORGOTTEN:
            return ERASED
        if row.unreadable or not row.evaluated:
            return row.unreadable or undecided(row.candidates) or NOT_EVALUATED
        return NO_SCORE if self.rounds and self.rounds[-1].utility is None else None


def rows_of(
    trajectory: Trajectory,
    *,
    key: int = 0,
    seed: int | None = None,
    waiting: int = 0,
    unreadable: str = "",
    reviews: Reviews | None = None,
    costs: Costs | None = None,
) -> Folded:
    """The rows of a trajectory.

    Args:
        trajectory: the trajectory.
        key: see ``SessionRow``, like the others.
        seed: likewise.
        waiting: likewise.
        unreadable: likewise.
        reviews: by reviewers; None for none.
        costs: what the agents cost; None if they are not known.
    """
    reviews, costs = reviews or Reviews(), costs or Costs()
    origin = trajectory.forked_from
    row = SessionRow(
        session=trajectory.session,
        key=key,
        state=trajectory.state,
        labels=trajectory.group,
        instance=trajectory.instance,
        problem=trajectory.problem,
        seed=seed,
        scorer=trajectory.scorer,
        candidates=trajectory.candidates,
        judges=trajectory.judges,
        baseline=trajectory.baseline,
        evaluated=trajectory.evaluated,
        output=trajectory.output,
        silent=trajectory.silent,
        estimated=trajectory.estimated,
        agent_tokens=trajectory.agent_tokens,
        human_tokens=trajectory.human_tokens,
        cost=costs.dollars,
        unpriced=costs.unpriced,
        latency=costs.latency,
        final=trajectory.final,
        final_missing=trajectory.final_missing,
        forked_from=None if origin is None else origin.session,
        forked_version=None if origin is None else origin.version,
        forked_at=trajectory.forked_at,
        faults=trajectory.faults,
        process=trajectory.process,
        lost=trajectory.lost,
        late=trajectory.late,
        coarse=trajectory.coarse,
        rounds=len(trajectory.points),
        waiting=waiting,
        unreadable=unreadable,
        tags=reviews.names,
        reviewers=reviews.reviewers,
        review_rating=reviews.rating,
        comments=len(reviews.comments),
    )
    return Folded(row, trajectory.points)


def trajectory_of(folded: Folded) -> Trajectory:
    """The trajectory that some rows are of."""
    row = folded.session
    origin = None
    if row.forked_from is not None:
        origin = Origin(session=row.forked_from, version=row.forked_version or 0)
    return Trajectory(
        session=row.session,
        group=row.labels,
        instance=row.instance,
        problem=row.problem,
        points=folded.rounds,
        silent=row.silent,
        agent_tokens=row.agent_tokens,
        human_tokens=row.human_tokens,
        estimated=row.estimated,
        evaluated=row.evaluated,
        output=row.output,
        final=row.final,
        final_missing=row.final_missing,
        scorer=row.scorer,
        candidates=row.candidates,
        judges=row.judges,
        baseline=row.baseline,
        state=row.state,
        forked_from=origin,
        forked_at=row.forked_at,
        faults=row.faults,
        process=row.process,
        lost=row.lost,
        late=row.late,
        coarse=row.coarse,
    )


def in_64_bits(value: V) -> V | None:
    """A value as Parquet can hold it: None for a whole number that needs more than 64 bits, as a seed may."""
    return None if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


@final
class SessionFold:
    """Folds the records of one session into its rows, one at a time; it can continue at any time.

    Args:
        session: session id.
        options: how to score.
        strict: raise if a body that is needed is damaged; otherwise the row says why.

    Attributes:
        session: session id.
        position: the position of the last record that it was given.
        time: the time of the last record of the trace.
    """

    def __init__(self, session: str, options: Options, *, strict: bool = False) -> None:
        output = OutputLines()
        self.session = session
        self.position = 0
        self.time = 0.0
        self.trajectory = TrajectoryFold(session, options, emit=False, output=output)
        self._process = ProcessFold(plugged_annotator(options), output=output)
        self._reviews = ReviewFold()
        self._costs = CostFold()
        self._strict = strict
        self._key = 0
        self._seed: int | None = None
        self._asked: set[int] = set()  # versions of approvals that wait for an answer
        self._unreadable = ""

    def feed(self, record: Record) -> None:
        """Takes the next record of the session, of any stream, in order of position.

        Raises:
            CodecError: the fold is strict, and a body that is needed is damaged.
            InvalidInput: the fold is strict, and an opening holds no valid timing.
            PluginFailed: ``Options.count`` or ``Options.vague`` raised.
        """
        self._key = self._key or record.position
        self.position = record.position
        if record.stream == TRACE:
            self.time = record.time
        try:
            self.trajectory.feed(record)
            self._process.feed(record)
            self._reviews.feed(record)
            self._costs.feed(record)
            if record.kind == "SessionOpened" and isinstance(event := record.event, SessionOpened):
                self._seed = event.seed
            elif record.kind == "ApprovalAsked":
                self._asked.add(record.version)
            elif record.kind == "ApprovalGiven" and isinstance(
                event := record.event, ApprovalGiven
            ):
                self._asked.discard(event.asked)
        except (CodecError, InvalidInput) as error:
            if self._strict:
                raise
            self._unreadable = self._unreadable or str(error)

    def folded(self) -> Folded:
        """The rows as of the last record."""
        fold = self.trajectory
        return rows_of(
            msgspec.structs.replace(fold.trajectory(), process=self._process.measures),
            key=self._key,
            seed=self._seed,
            waiting=len(self._asked),
            unreadable=self._unreadable,
            reviews=self._reviews.reviews,
            costs=self._costs.costs,
        )
