"""One session as a transcript: its records by rounds, with what each round came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON, SessionOpened, SnapshotTaken
from ...engine.log.contract import EventLog, SessionSummary
from ...engine.log.jsonl_export import to_jsonl
from ...engine.records import Record
from ...engine.rounds import RoundProjector
from ...scoring.process import ProcessFold
from ...scoring.trajectory.fold import TrajectoryFold
from ...scoring.trajectory.options import Options
from ...scoring.trajectory.points import Point, Trajectory

__all__ = (
    "Part",
    "Transcript",
    "load_transcript",
    "make_transcript",
    "record_data",
    "transcript_data",
)


@final
class Part(msgspec.Struct, kw_only=True):
    """One round of a transcript.

    Attributes:
        number: of the round, from 1.
        records: what was recorded while it was the open round, of all streams, in order of
            position; measurements that follow the close lie in the last round.
        point: what the round came to.
        updated: the output was updated in this round: by the agent; as the published analysis
            counts (``human-turn``), by anybody's edit, whatever it changed.
        last_update: the output as the last of these updates left it; None where there is none.
    """

    number: int
    records: list[Record]
    point: Point
    updated: bool = False
    last_update: JSON = None


@final
class Transcript(msgspec.Struct, kw_only=True):
    """A session, read whole.

    Attributes:
        summary: its line in the list.
        opened: how it was opened; None where that was erased or is not known.
        parts: its rounds.
        trajectory: what scoring makes of it.
        options: how it was scored.
        stops: by tolerance τ, the round after which it was used up.
    """

    summary: SessionSummary
    opened: SessionOpened | None
    parts: list[Part]
    trajectory: Trajectory
    options: Options
    stops: Mapping[int, int]


async def load_transcript(log: EventLog, summary: SessionSummary, options: Options) -> Transcript:
    """Reads and scores a session, as of now.

    Raises:
        CodecError: a body that is needed is damaged.
        InvalidInput: the session holds no record yet.
    """
    records = [record async for record in log.read_all(session=summary.session)]
    return make_transcript(records, summary, options)


def make_transcript(
    records: Iterable[Record], summary: SessionSummary, options: Options
) -> Transcript:
    """Scores a session from its records, of all streams in order of position; raises as above."""
    fold = TrajectoryFold(summary.session, options)
    process = ProcessFold()
    projector = RoundProjector(options.rounds)
    held: list[list[Record]] = [[]]
    updates: list[SnapshotTaken | None] = [None]
    opened: SessionOpened | None = None
    for record in records:
        before = projector.number
        projector.feed(record)
        fold.feed(record)
        process.feed(record)
        if projector.number > before:
            held.append([])
            updates.append(None)
        held[-1].append(record)
        event = record.event
        if isinstance(event, SnapshotTaken) and _is_update(projector, record):
            updates[-1] = event
        elif isinstance(event, SessionOpened):
            opened = event
    if not held[0]:
        raise InvalidInput(f"session {summary.session!r} holds no records")
    trajectory = msgspec.structs.replace(fold.trajectory(), process=process.measures)
    points = {point.round: point for point in trajectory.points}
    parts = [
        Part(
            number=number,
            records=records,
            point=points.get(number) or Point(round=number),
            updated=update is not None,
            last_update=None if update is None else update.content,
        )
        for number, (records, update) in enumerate(zip(held, updates, strict=True), start=1)
    ]
    return Transcript(
        summary=summary,
        opened=opened,
        parts=parts,
        trajectory=trajectory,
        options=options,
        stops=fold.stops,
    )


def _is_update(projector: RoundProjector, record: Record) -> bool:
    """Whether a snapshot, which the projector has taken, counts as an update of its round."""
    current = projector.current
    found = current.snapshot if projector.convention == "human-turn" else current.update
    return found == record.version


def transcript_data(transcript: Transcript) -> dict[str, object]:
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
        "stops": {str(tau): number for tau, number in transcript.stops.items()},
        "process": transcript.trajectory.process,
        "rounds": [_part_data(part) for part in transcript.parts],
    }


def _part_data(part: Part) -> dict[str, object]:
    point = part.point
    return {
        "round": part.number,
        "stage": point.stage,
        "updated": part.updated,
        "last_update": part.last_update,
        "utility": point.utility,
        "value": point.value,
        "stale": point.stale,
        "rating": point.rating,
        "pending": point.pending,
        "effort": dict(point.effort),
        "records": [record_data(record) for record in part.records],
    }


def record_data(record: Record) -> msgspec.Raw:
    """A record as JSON: the same object as on its line in an export."""
    return msgspec.Raw(to_jsonl(record).rstrip())
