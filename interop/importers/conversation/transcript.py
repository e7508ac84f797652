"""A transcript: one conversation of a source, read into one session.

An importer yields transcripts; this module does their common part: participants, clock, opening,
and the events of each entry. Entries may be read as they come, so that a long conversation need not
be held in memory: then the importer names the participants beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ....engine.events import JSON, Origin, SessionOpened, UtilityScored
from ....engine.records import ENVIRONMENT
from ..protocol import Diagnostic, Found, Reading
from ..timestamps import zone_name
from ..trace_builder import TraceBuilder
from .builder import ConversationBuilder, Participants
from .steps import AGENT, Step

__all__ = ("Entry", "Transcript", "beginning_of", "opening_of", "read_transcript")


class Entry(NamedTuple):
    """The contents of one message, line or item of the source.

    Attributes:
        number: its place in the conversation, from 1, or an id of its own, the same whenever the
            source is read: the ids of its events are made of it.
        where: the place in the source.
        time: seconds since the epoch; None if the source does not say.
        steps: in order.
    """

    number: int | str
    where: str
    time: float | None
    steps: Sequence[Step]


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation.

    Attributes:
        session: its id: the same whenever and from wherever the source is read.
        format: name of the importer.
        where: its place in the source.
        entries: entries in order, and problems where something could not be read.
        start: when it began, seconds since the epoch; None if no entry has a time: the session is
            then on a virtual clock that does not advance.
        participants: the participants.
        task: name of the task; None for the name of the format.
        instance: the instance of the task; None for the session's id.
        problem: which problem it was; None for the instance, if it has one.
        request: the task text, if nobody said it as a message.
        models: by ``user``, ``assistant``, or name of an actor.
        policies: likewise.
        config: settings and metadata to keep.
        private: per owner what only it may see.
        forked_from: where a branch left another session.
        scores: results that the source holds, of the last snapshot, else of the last round.
    """

    session: str
    format: str
    where: str
    entries: Iterable[Entry | Diagnostic]
    participants: Participants
    start: float | None = None
    task: str | None = None
    instance: str | None = None
    problem: str | None = None
    request: str | None = None
    models: Mapping[str, str | None] = {}
    policies: Mapping[str, str | None] = {}
    config: Mapping[str, JSON] = {}
    private: Mapping[str, JSON] = {}
    forked_from: Origin | None = None
    scores: tuple[UtilityScored, ...] = ()


def beginning_of(entries: Iterable[Entry]) -> float | None:
    """When a conversation began: the first time that an entry has; None if none has any."""
    return next((entry.time for entry in entries if entry.time is not None), None)


def read_transcript(transcript: Transcript, reading: Reading) -> Iterator[Found]:
    """The events of a conversation, in order.

    An entry without a time has that of the entry before it.
    """
    builder = TraceBuilder(transcript.session)
    opened = opening_of(transcript, reading)
    yield builder.put(opened, ENVIRONMENT, "environment", transcript.start or 0.0)
    talk = ConversationBuilder(builder, transcript.participants, transcript.models.get(AGENT))
    for entry in transcript.entries:
        if isinstance(entry, Diagnostic):
            yield entry
            continue
        now = builder.time if entry.time is None or transcript.start is None else entry.time
        yield from talk.add(entry.number, entry.steps, now, entry.where)
    for score in transcript.scores:
        yield builder.measure(score)


def opening_of(transcript: Transcript, reading: Reading) -> SessionOpened:
    """The opening of the session that a conversation becomes."""
    imported: dict[str, JSON] = {"format": transcript.format}
    if transcript.start is not None:
        imported["zone"] = zone_name(reading.zone)
    config: dict[str, JSON] = {"imported": imported, **transcript.config}
    if transcript.scores:
        config.setdefault("utility", transcript.scores[0].scorer.name)
    return SessionOpened(
        task=transcript.task or transcript.format,
        instance=transcript.instance or transcript.session,
        participants=transcript.participants.listed(
            models=transcript.models, policies=transcript.policies
        ),
        clock="virtual" if transcript.start is None else "utc",
        request=transcript.request,
        config=config,
        private=transcript.private,
        problem=transcript.problem or transcript.instance,
        forked_from=transcript.forked_from,
    )
