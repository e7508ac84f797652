"""Checks every record of a log, and lists what is damaged or inconsistent."""

from __future__ import annotations

import hmac
from contextlib import suppress
from typing import NamedTuple, final

from ...errors import CodecError, InvalidInput
from ...events import Forgotten, RecordsLate, RecordsLost
from ...records import RECORDING, TRACE, Record
from ..append import checked, stored
from ..contract import Problem, SessionSummary, Verification
from ..summary import FORGOTTEN, SessionState
from .checksum import checksum_of
from .hash_chain import START, link, mac

__all__ = ("Link", "Verifier", "lost")

_MOST = 100


def lost(head: int, marked: int, *, synced: bool) -> str:
    """Says that records are missing at the end of a log, by what its head mark says."""
    what = (
        f"the records from position {head + 1} to {marked} were acknowledged, and are missing: "
        "the end of the log is lost"
    )
    return what if synced else f"{what} (a loss of power may do that with durability=normal)"


class Link(NamedTuple):
    """The chain's entry for a record: m_n, h_n, and the session's salt unless it is forgotten."""

    mac: bytes
    hash: bytes
    salt: bytes | None


@final
class Verifier:
    """Takes the records of a log in order of position, then the list of sessions.

    Args:
        chained: whether the log keeps a hash chain.
        since: position from which on records have checksums; None if they have none.
    """

    def __init__(self, *, chained: bool = False, since: int | None = None) -> None:
        self.chained = chained
        self.since = since
        self._unchecked = 0
        self._expected: tuple[int, int, bool] | None = None
        self._problems: list[Problem] = []
        self._position = 0
        self._sessions: dict[str, SessionState] = {}
        self._versions: dict[tuple[str, str], int] = {}
        self._hashes: dict[tuple[str, str], bytes] = {}
        self._erased: set[str] = set()
        self._events = 0
        self._listed = 0
        self._forgotten = 0
        self._lost: dict[str, int] = {}

    def complain(self, what: str, record: Record | None = None, session: str = "") -> None:
        """Notes a problem."""
        if len(self._problems) < _MOST:
            self._problems.append(
                Problem(what=what, session=session)
                if record is None
                else Problem(what=what, position=record.position, session=record.session)
            )

    def expect(self, position: int, crc: int, *, synced: bool) -> None:
        """Notes the log's head mark: its last record, at least, and that one's envelope."""
        self._expected = (position, crc, synced)

    def feed(self, record: Record, chained: Link | None = None, crc: int | None = None) -> None:
        """Takes the next record, its link if the log is chained, and its checksum."""
        self._events += 1
        try:
            self._check(record, chained, crc)
        except (TypeError, ValueError, OverflowError) as error:  # e.g. text instead of a number
            self.complain(f"the record holds what was never written: {error}", record)

    def _check(self, record: Record, chained: Link | None, crc: int | None) -> None:
        if record.position != self._position + 1:
            self.complain(f"position {record.position} follows {self._position}", record)
        self._position = record.position
        stream = (record.session, record.stream)
        before = self._versions.get(stream, 0)
        if record.version != before + 1:
            self.complain(f"version {record.version} of {record.stream} follows {before}", record)
        self._versions[stream] = record.version
        self._check_checksum(record, crc)
        if self.chained:
            self._check_link(record, chained, stream)
        state = self._sessions.setdefault(record.session, SessionState(record.session))
        self._check_event(record, state)

    def _check_checksum(self, record: Record, crc: int | None) -> None:
        position, marked, _ = self._expected or (0, 0, False)
        if record.position == position and checksum_of(record, erased=True) != marked:
            self.complain("the record is not the one that the head mark is about", record)
        if self.since is None or (crc is None and record.position < self.since):
            self._unchecked += 1
        elif crc is None:
            self.complain("the record has lost its checksum", record)
        elif crc != checksum_of(record):
            self.complain("the record is not what was written: its checksum differs", record)

    def _check_event(self, record: Record, state: SessionState) -> None:
        trace = record.stream == TRACE
        if trace and state.state not in ("open", FORGOTTEN) and record.kind != "FeedbackGiven":
            self.complain(f"{record.kind} follows SessionClosed", record)
        event = None
        try:
            event = checked(record)
        except (CodecError, InvalidInput) as error:
            self.complain(str(error), record)
            with suppress(CodecError):
                event = record.event  # a readable event still counts for the session's summary
        if isinstance(event, Forgotten):
            self._erased.add(record.session)
        elif isinstance(event, RecordsLost):
            self._lost[record.session] = self._lost.get(record.session, 0) + event.count
        elif record.stream == RECORDING and not isinstance(event, RecordsLate):
            self._lost[record.session] = (
                self._lost.get(record.session, 0) + 1
            )  # it missed the trace
        state.advance(stored(record, event), record.position)

    def _check_link(self, record: Record, chained: Link | None, stream: tuple[str, str]) -> None:
        before = self._hashes.get(stream, START)
        if chained is None:
            self.complain("the record is missing in the hash chain", record)
            return
        if chained.hash != link(before, record, chained.mac):
            self.complain("the hash chain is broken: the record or one before was changed", record)
        self._hashes[stream] = chained.hash
        if record.body is None:
            return
        if chained.salt is None:
            self.complain("the session's salt is missing", record)
        elif not hmac.compare_digest(chained.mac, mac(chained.salt, record.body)):
            self.complain("the body is not the one that was chained", record)

    def check_session(self, listed: SessionSummary) -> None:
        """Compares a line of the list with what its records say."""
        state = self._sessions.pop(listed.session, None)
        if state is None:
            self.complain("the session is listed, and has no records", session=listed.session)
            return
        self._listed += 1
        erased = listed.session in self._erased
        if erased != (listed.state == FORGOTTEN):
            self.complain(
                "bodies are missing, and the session was not forgotten"
                if erased
                else "the session was forgotten, and bodies are left",
                session=listed.session,
            )
        self._forgotten += listed.state == FORGOTTEN
        wanted = state.summary()
        for name in SessionSummary.__struct_fields__:
            is_, should = getattr(listed, name), getattr(wanted, name)
            if is_ != should:
                self.complain(
                    f"the list says {name} is {is_!r}, the records say {should!r}",
                    session=listed.session,
                )

    def result(self, *, uncompacted: int = 0) -> Verification:
        """The result."""
        if self._expected is not None and self._expected[0] > self._position:
            self.complain(lost(self._position, self._expected[0], synced=self._expected[2]))
        for session in self._sessions:
            self.complain("the session has records, and is not listed", session=session)
        return Verification(
            events=self._events,
            sessions=self._listed,
            forgotten=self._forgotten,
            uncompacted=uncompacted,
            chained=self.chained,
            unchecked=self._unchecked,
            marked=self._expected is not None,
            lost=dict(self._lost),
            problems=tuple(self._problems),
            heads={"/".join(stream): value.hex() for stream, value in self._hashes.items()},
        )
