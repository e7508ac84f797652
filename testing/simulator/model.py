"""A model of a log: it records each operation, and the log is compared with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, final

from ...engine.events import Event, Unknown
from ...engine.log.append import erased
from ...engine.log.contract import EventLog
from ...engine.log.exchange.jsonl_export import from_jsonl, to_jsonl
from ...engine.log.memory import MemoryLog
from ...engine.records import TRACE, Draft, Record
from ...engine.rounds import RoundProjector
from ..tools import collect, require
from .drafts import cleaned
from .recording import PREFIX, Recorded
from .relay import RELAY, Readers

__all__ = ("CONSUMER", "Attempt", "Fate", "Known", "Model")

CONSUMER = "consumer"
"""Whose checkpoint is moved."""

Fate: TypeAlias = Literal["pending", "acknowledged", "refused", "unknown"]
"""``unknown``: it may be in the log, whole, or not: its caller was cancelled, the process ended, the
store said that it does not know."""


@final
class Attempt:
    """An append and its known outcome.

    Attributes:
        tags: the actors of its drafts, which are found again in the log.
        cleaned: their events after the redaction hook.
        records: as they were acknowledged.
    """

    def __init__(self, session: str, stream: str, drafts: Sequence[Draft]) -> None:
        self.session = session
        self.stream = stream
        self.drafts = drafts
        self.tags = [draft.actor for draft in drafts]
        self.cleaned = [cleaned(draft).event for draft in drafts]
        self.fate: Fate = "pending"
        self.tries = 0
        self.records: list[Record] = []


class Known(NamedTuple):
    """A snapshot of the model: the fates of appends, which sessions are forgotten, and which
    messages a recorder has written.
    """

    fates: Mapping[int, Fate]
    forgotten: Collection[str]
    written: Collection[str]


@final
class Model:
    """The operations on a log, and the contents that it must have."""

    def __init__(self) -> None:
        self.attempts: dict[int, Attempt] = {}
        self.recorded = Recorded({})
        self.readers = Readers()
        self.forgotten: set[str] = set()
        self.maybe_forgotten: set[str] = set()
        self.forks: dict[str, set[str]] = {}  # by origin; also those that may be there
        self.checkpoint = 0  # the consumer's checkpoint is this or later
        self.moves: Counter[int] = Counter()  # that were made, or perhaps
        self.cleans = False  # the log has a redaction hook
        self.lost = False  # the disk lied, and then the power was lost: nothing was promised

    def acknowledge(self, attempt: Attempt, records: list[Record]) -> None:
        """An append has returned its records."""
        require(len(records) == len(attempt.drafts), "an append returns a record for each draft")
        for record, draft, event in self._wanted(attempt, records):
            known = record.body is None or record.event == event
            require(known and record.actor == draft.actor, "an append returns what was appended")
            require(record.session == attempt.session, "an append returns its session")
            require(record.stream == attempt.stream, "an append returns its stream")
        require(_contiguous(records), "the records of an append lie one behind the other")
        attempt.fate, attempt.records = "acknowledged", records

    def _wanted(
        self, attempt: Attempt, records: Sequence[Record]
    ) -> Iterator[tuple[Record, Draft, Event | Unknown]]:
        """The records of an append, each with its draft and the event that is to be found in it."""
        own = [draft.event for draft in attempt.drafts]
        events = attempt.cleaned if self.cleans else own
        return zip(records, attempt.drafts, events, strict=True)

    def end_of_process(self) -> None:
        """Marks appends that were under way as of unknown fate."""
        for attempt in self.attempts.values():
            if attempt.fate == "pending":
                attempt.fate = "unknown"
        self.recorded.end_of_process()

    async def check(self, log: EventLog) -> list[Record]:
        """Compares the whole log with the model; returns the log's records."""
        known = self.known()
        records = await collect(log.read_all())
        self.check_records(records, known)
        streams: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            streams.setdefault((record.session, record.stream), []).append(record)
        for (session, stream), of_stream in streams.items():
            found = await collect(log.read(session, stream=stream))
            wanted = of_stream
            if session in self.maybe_forgotten - self.forgotten:  # it may be, in between
                found, wanted = _envelopes(found), _envelopes(wanted)
            require(found == wanted, "read gives what read_all gives of a stream")
            versions = [record.version for record in of_stream]
            require(
                versions == list(range(1, len(versions) + 1)), f"versions have gaps: {versions}"
            )
        for (_, stream), trace in streams.items():
            if stream == TRACE:
                check_trace(trace)
        listed = {summary.session: summary async for summary in log.sessions()}
        counted = Counter(record.session for record in records)
        require(
            {name: summary.events for name, summary in listed.items()} == dict(counted),
            "the list of sessions counts the records",
        )
        for session in listed:
            of_session = [record for record in records if record.session == session]
            found = await collect(log.read_all(session=session))
            if session in self.maybe_forgotten - self.forgotten:  # it may be, in between
                found, of_session = _envelopes(found), _envelopes(of_session)
            require(found == of_session, "read_all gives what it gives of a session")
        at = await log.checkpoint(CONSUMER, "1")
        moved = at >= self.checkpoint and (at == 0 or self.moves[at] > 0)
        require(self.lost or moved, f"the checkpoint is at {at}, after {self.checkpoint}")
        await check_import(records)
        return records

    def known(self) -> Known:
        """A snapshot of the present, for example before a read that may find later events too."""
        return Known(
            {number: attempt.fate for number, attempt in self.attempts.items()},
            frozenset(self.forgotten),
            self.recorded.written(),
        )

    def check_records(
        self,
        records: Sequence[Record],
        known: Known,
    ) -> None:
        """Positions, and each append: there, whole, or absent.

        Args:
            records: all that a read gave.
            known: what was known when it began.
        """
        positions = [record.position for record in records]
        require(positions == list(range(1, len(records) + 1)), f"positions have gaps: {positions}")
        found: dict[str, list[Record]] = {}
        for record in records:
            if not record.session.startswith((PREFIX, RELAY)):
                found.setdefault(record.actor, []).append(record)
        for number, attempt in self.attempts.items():
            there = [record for tag in attempt.tags for record in found.pop(tag, [])]
            self._check_attempt(
                number, attempt, there, known.fates.get(number, "pending"), known.forgotten
            )
        self.recorded.check(records, frozenset() if self.lost else known.written)
        require(not found, f"nobody appended this: {sorted(found)}")

    def _check_attempt(
        self,
        number: int,
        attempt: Attempt,
        there: list[Record],
        fate: Fate,
        forgotten_by_then: Collection[str],
    ) -> None:
        what = f"append {number}"
        if not there:
            absent = fate != "acknowledged" or self.lost
            require(absent, f"{what} was acknowledged, and is not there")
            return
        refused = fate == "refused" and attempt.fate == "refused"  # else it was tried again
        require(not refused, f"{what} was refused, and is there")
        require(len(there) == len(attempt.tags), f"{what} is there in part, or twice")
        require(_contiguous(there), f"{what} is not in one piece")
        forgotten = attempt.session in self.forgotten
        gone = attempt.session in forgotten_by_then
        for record, draft, event in self._wanted(attempt, there):
            if record.body is None:
                allowed = forgotten or attempt.session in self.maybe_forgotten
                require(allowed, f"{what} has lost its body")
            else:
                require(not gone or self.lost, f"{what} was forgotten, and is there")
                require(record.event == event, f"{what} has another body")
            envelope = (record.session, record.stream, record.role, record.time, record.caller_id)
            wanted = (attempt.session, attempt.stream, draft.role, draft.time, draft.id)
            require(envelope == wanted, f"{what} has another envelope: {envelope}")
        if fate == "acknowledged" and not self.lost:
            where = [(record.position, record.version) for record in there]
            before = [(record.position, record.version) for record in attempt.records]
            require(where == before, f"{what} has moved")


def check_trace(records: Sequence[Record]) -> None:
    """Rounds partition a trace, and nothing but feedback follows its close."""
    projector = RoundProjector()
    closed = [over for record in records if (over := projector.feed(record)) is not None]
    rounds = {each.number: each for each in (*closed, projector.current)}
    require(list(rounds) == list(range(1, len(rounds) + 1)), f"rounds count from 1: {rounds}")
    version = 1
    for each in rounds.values():
        require(each.first == version, f"rounds must partition the trace: {rounds}")
        version = each.last + 1
    require(version == len(records) + 1, f"rounds must cover the trace: {rounds}")
    kinds = [record.kind for record in records]
    if "SessionClosed" in kinds:
        after = set(kinds[kinds.index("SessionClosed") + 1 :])
        require(after <= {"FeedbackGiven"}, f"after its close a trace holds {after}")


async def check_import(records: Sequence[Record]) -> None:
    """Another log takes the records as they are, and so does a file in between."""
    written = [from_jsonl(to_jsonl(record)) for record in records]
    require(written == list(records), "JSON Lines give back what was written")
    async with MemoryLog() as copy:
        taken = await copy.restore(written)
        require(taken == list(records), "an import gives the same records")


def _envelopes(records: Sequence[Record]) -> list[Record]:
    return [erased(record) for record in records]


def _contiguous(records: Sequence[Record]) -> bool:
    first = records[0] if records else None
    return all(
        (record.position, record.version) == (first.position + at, first.version + at)
        for at, record in enumerate(records)
        if first is not None
    )
