"""One session as a transcript: its records, round by round, with the result of each round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON, SessionOpened, SnapshotTaken
from ...engine.files import Contents
from ...engine.log.contract import EventLog, SessionSummary
from ...engine.records import Record
from ...engine.rounds import RoundProjector
from ...scoring.process import ProcessFold
from ...scoring.reviews import ReviewFold, Reviews
from ...scoring.trajectory.fold import TrajectoryFold
from ...scoring.trajectory.options import Options
from ...scoring.trajectory.points import Point, Trajectory, missing_utility

__all__ = (
    "SessionTranscript",
    "TranscriptRound",
    "load_transcript",
    "make_transcript",
    "record_data",
    "transcript_data",
)


@final
class TranscriptRound(msgspec.Struct, kw_only=True):
    """One round of a transcript.

    Attributes:
        number: the number of the round, from 1.
        records: the records of the round, of all streams, in order of position; measurements after
            the close belong to the last round.
        point: the round in the trajectory.
        updated: the agent updated the output in this round. Under ``human-turn``, as in the
            published analysis: any party edited it, whether or not it changed.
        last_update: the output after the last of these updates; None if there is none.
    """

    number: int
    records: list[Record]
    point: Point
    updated: bool = False
    last_update: JSON = None


@final
class SessionTranscript(msgspec.Struct, kw_only=True):
    """A whole session, scored.

    Attributes:
        summary: its summary.
        opened: its opening; None if that was erased or is not known.
        rounds: its rounds.
        trajectory: its trajectory.
        options: how it was scored.
        stops: by tolerance τ, the round after which it was used up.
        reviews: by reviewers.
    """

    summary: SessionSummary
    opened: SessionOpened | None
    rounds: list[TranscriptRound]
    trajectory: Trajectory
    options: Options
    stops: Mapping[int, int]
    reviews: Reviews = Reviews()

    @property
    def wanted(self) -> str | None:
        """Whose utility counts, by the options or the session's opening; None if neither names a scorer."""
        named = None if self.opened is None else self.opened.config.get("utility")
        return self.options.utility or (named if isinstance(named, str) else None)


async def load_transcript(
    log: EventLog, summary: SessionSummary, options: Options
) -> SessionTranscript:
    """Reads and scores a session, as of now.

    Raises:
        CodecError: a body that is needed is damaged.
        InvalidInput: the session holds no record yet.
    """
    records = [record async for record in log.read_all(session=summary.session)]
    return make_transcript(records, summary, options)


def make_transcript(
    records: Iterable[Record], summary: SessionSummary, options: Options
) -> SessionTranscript:
    """Scores a session from its records, of all streams in order of position; raises as above."""
    fold = TrajectoryFold(summary.session, options)
    process = ProcessFold()
    projector = RoundProjector(options.rounds)
    reviews = ReviewFold()
    contents = Contents()
    held: list[list[Record]] = [[]]
    updates: list[SnapshotTaken | None] = [None]
    opened: SessionOpened | None = None
    for record in records:
        before = projector.number
        projector.feed(record)
        fold.feed(record)
        process.feed(record)
        reviews.feed(record)
        if projector.number > before:
            held.append([])
            updates.append(None)
        held[-1].append(record)
        event = record.event
        if isinstance(event, SnapshotTaken):
            whole = contents.whole(event)
            if _is_update(projector, record):
                updates[-1] = whole
        elif isinstance(event, SessionOpened):
            opened = event
    if not held[0]:
        raise InvalidInput(f"session {summary.session!r} is empty")
    trajectory = msgspec.structs.replace(fold.trajectory(), process=process.measures)
    points = {point.round: point for point in trajectory.points}
    rounds = [
        TranscriptRound(
            number=number,
            records=records,
            point=points.get(number) or Point(round=number),
            updated=update is not None,
            last_update=None if update is None else update.content,
        )
        for number, (records, update) in enumerate(zip(held, updates, strict=True), start=1)
    ]
    return SessionTranscript(
        summary=summary,
        opened=opened,
        rounds=rounds,
        trajectory=trajectory,
        options=options,
        stops=fold.stops,
        reviews=reviews.reviews,
    )


def _is_update(projector: RoundProjector, record: Record) -> bool:
    """Whether the snapshot that the projector took last is an update of its round."""
    current = projector.current
    found = current.snapshot if projector.convention == "human-turn" else current.update
    return found == record.version


def transcript_data(transcript: SessionTranscript) -> dict[str, object]:
    """A transcript as an object for JSON."""
    opened = transcript.opened
    return {
        "session": transcript.summary.session,
        "task": transcript.summary.task,
        "instance": transcript.summary.instance,
        "group": dict(transcript.trajectory.group),
        "state": transcript.trajectory.state,
        "clock": None if opened is None else opened.clock,
        "convention": transcript.options.rounds,
        "scorer": transcript.trajectory.scorer,
        "wanted": transcript.wanted,
        "candidates": transcript.trajectory.candidates,
        "utility_missing": missing_utility(transcript.trajectory),
        "stops": {str(tau): number for tau, number in transcript.stops.items()},
        "process": transcript.trajectory.process,
        "reviews": transcript.reviews,
        "rounds": [_round_data(one, transcript.trajectory.late) for one in transcript.rounds],
    }


def _round_data(one: TranscriptRound, late: Sequence[int]) -> dict[str, object]:
    point = one.point
    return {
        "round": one.number,
        "stage": point.stage,
        "updated": one.updated,
        "last_update": one.last_update,
        "utility": point.utility,
        "value": point.value,
        "stale": point.stale,
        "late": one.number in late,
        "rating": point.rating,
        "pending": point.pending,
        "effort": dict(point.effort),
        "records": [record_data(record) for record in one.records],
    }


def record_data(record: Record) -> msgspec.Raw:
    """A record as JSON: the same object as on its line in an export."""
    from ...engine.log.exchange.jsonl_export import to_jsonl

    return msgspec.Raw(to_jsonl(record).rstrip())
