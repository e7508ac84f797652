"""One stream of an import: what the log holds of it is compared, the rest is appended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, final

import anyio
import msgspec

from ...engine import codec
from ...engine.errors import CodecError, DuologError
from ...engine.events import ModelCalled, SessionOpened, Tokens
from ...engine.log.contract import EventLog
from ...engine.records import Draft, Record
from .batches import BATCH, BYTES, Run
from .intake import unfit
from .protocol import Remark

__all__ = ("ImportStream", "begin_all")

_SHORT: Final = 1 << 15  # bytes of bodies


@final
class ImportStream:
    """Takes the events of a stream, and brings those that the log does not have into it.

    Args:
        log: an open log.
        session: id of the session.
        name: of the stream.

    Attributes:
        session: id of the session.
        name: of the stream.
        version: of the last record that was compared or written.
        known: events that the log had already.
        added: events that were appended.
    """

    def __init__(self, log: EventLog, session: str, name: str) -> None:
        self.session = session
        self.name = name
        self.version = 0
        self.known = 0
        self.added = 0
        self._log = log
        self._held: AsyncIterator[Record] | None = None
        self._next: Record | None = None  # that was read and not matched yet
        self._left_out: list[Remark] = []
        self._compared = False
        self._drafts: list[Draft] = []
        self._bodies: list[bytes] = []
        self._size = 0

    def take(self, run: Run) -> None:
        """Takes the next events; they wait."""
        self._drafts += run.drafts
        self._bodies += run.bodies
        self._size += sum(map(len, run.bodies))

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return len(self._drafts)

    @property
    def full(self) -> bool:
        """Whether enough waits to be appended."""
        return len(self._drafts) >= BATCH or self._size >= BYTES

    @property
    def is_short(self) -> bool:
        """Whether it may be appended by ``begin``, beside others: little of it waits, nothing of it
        was compared, and the log does not take it for a repetition, as it does with events that all
        have ids.
        """
        short = self._size < _SHORT and not self._compared
        return short and any(draft.id is None for draft in self._drafts)

    async def begin(self) -> None:
        """Appends all that waits if the log has nothing of the stream; else it goes on waiting."""
        try:
            records = await self._log.append(
                self.session, self._drafts, stream=self.name, expected_version=0
            )
        except DuologError:
            return  # nothing is lost: compared and appended by itself, it is refused again
        self._appended(records)
        self._clear()

    async def compare(self) -> str | None:
        """Compares what waits with what the log holds, which need not be appended; gives what is
        wrong where the log has something else.
        """
        if not self._compared:
            self._compared = True
            self._held = self._log.read(self.session, stream=self.name)
        at = 0
        while self._held is not None and at < len(self._drafts):
            record = self._next = self._next or await anext(self._held, None)
            if record is None:
                self._held = None
                break
            if _same(record, self._drafts[at], self._bodies[at]):
                self.version = record.version
                self._next = None
                self.known += 1
                at += 1
                continue
            left_out = unfit(self.session, self._drafts[at])
            if left_out is None:
                self.version = record.version
                return _other(record)
            self._left_out.append(left_out)  # as it was when the rest was imported
            del self._drafts[at], self._bodies[at]
        del self._drafts[:at], self._bodies[:at]
        return None

    async def flush(self) -> list[Remark]:
        """Appends what was compared and still waits; gives what the log cannot hold of it, which is
        left out.

        Raises:
            InvalidInput: the log refuses it.
        """
        drafts, left_out = self._drafts, self._left_out
        self._clear()
        if not drafts:
            return left_out
        try:
            await self._append(drafts)
        except CodecError:
            found = [unfit(self.session, draft) for draft in drafts]
            wrong = [one for one in found if one is not None]
            fit = [draft for draft, bad in zip(drafts, found, strict=True) if bad is None]
            if not wrong:
                raise
            left_out += wrong
            if fit:
                await self._append(fit)
        return left_out

    async def calls(self) -> dict[int, Tokens]:
        """The model calls that the log holds from where ``compare`` found something else, by version:
        none where that is no such call.
        """
        found: dict[int, Tokens] = {}
        record = self._next
        while record is not None and self._held is not None:
            event = record.event if record.kind == ModelCalled.__name__ else None
            if isinstance(event, ModelCalled):
                found[record.version] = event.tokens
            elif not found:
                break
            record = await anext(self._held, None)
        return found

    async def is_longer(self) -> bool:
        """Whether the log holds more of it than was read."""
        if self._held is None:
            return False
        return self._next is not None or await anext(self._held, None) is not None

    async def _append(self, drafts: Sequence[Draft]) -> None:
        self._appended(
            await self._log.append(
                self.session, drafts, stream=self.name, expected_version=self.version
            )
        )

    def _appended(self, records: Sequence[Record]) -> None:
        self.version = records[-1].version
        self.added += len(records)

    def _clear(self) -> None:
        self._drafts, self._bodies, self._size = [], [], 0
        self._left_out = []


async def begin_all(streams: Iterable[ImportStream]) -> None:
    """Has each of these streams begun, as many at once as wait for the log: where one waits, another
    task takes over, so that there are no more tasks than that.
    """
    left = iter(streams)
    replaced = True  # whether a task waits to take over

    async def begin() -> None:
        nonlocal replaced
        replaced = False
        for stream in left:
            if not replaced:
                replaced = True
                tasks.start_soon(begin)
            await stream.begin()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(begin)


def _same(record: Record, draft: Draft, body: bytes) -> bool:
    """Whether the log holds this event; an erased one stays erased."""
    kind, schema = codec.kind_of(draft.event)
    envelope = (record.kind, record.actor, record.role, record.time)
    if envelope != (kind, draft.actor, draft.role, draft.time):
        return False
    if record.body is None or (record.body == body and record.schema == schema):
        return True
    return _is_grown(record.event, draft.event)


def _is_grown(held: object, event: object) -> bool:
    """Whether an opening differs in what shows only later in a source that grows: who else takes
    part, on which model, and more that is noted of it. The log keeps what it has.
    """
    if not isinstance(held, SessionOpened) or not isinstance(event, SessionOpened):
        return False
    names = {(one.name, one.role) for one in event.participants}
    known = all((one.name, one.role) in names for one in held.participants)
    noted = all(event.config.get(name) == value for name, value in held.config.items())
    first = msgspec.structs.replace(event, participants=held.participants, config=held.config)
    return known and noted and first == held


def _other(record: Record) -> str:
    return (
        f"the log has another {record.kind} at version {record.version} of its stream "
        f"{record.stream!r}: the source has changed, or is read in another way; import it into "
        "another log"
    )
