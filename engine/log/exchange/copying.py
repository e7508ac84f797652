"""Copies a log into another store: records, positions, ids, versions and bytes as they are.

The copy is a separate log that nothing else may write to. Position n of the source is position n of
the copy, so an interrupted copy resumes at its end. It can follow a growing source; if it is
behind, it copies a batch at a time. At times it also forgets the sessions that the source has
forgotten.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

import anyio
import msgspec

from ...errors import DuologError, InvalidInput, SessionNotFound
from ...records import Record
from ..contract import EventLog, Store, Subscription
from ..integrity.checksum import envelope_of
from ..summary import FORGOTTEN

__all__ = ("LogCopied", "copy_log")

_BATCH: Final = 1024
_ERASURES: Final = 30.0  # seconds between looks for forgotten sessions, while it follows
_SHARE: Final = 20  # times as long as the look before took, at least: it reads all summaries
_LATEST: Final = 16  # last records of the copy that are compared with the source before it resumes


class LogCopied(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a copy.

    Attributes:
        records: copied now.
        position: the position of the last record of the copy.
        forgotten: sessions that were forgotten in the copy, as they are in the source.
    """

    records: int
    position: int
    forgotten: tuple[str, ...] = ()


async def copy_log(
    source: EventLog,
    target: Store,
    *,
    follow: bool = False,
    progress: Callable[[int], None] | None = None,
) -> LogCopied:
    """Copies a log, or resumes a copy.

    Args:
        source: the log; others may be writing it.
        target: the copy: empty, or the beginning of the source.
        follow: keep copying new records of the source until cancelled.
        progress: called with the position that the copy has reached.

    Raises:
        InvalidInput: the target is not a beginning of the source.
        LogError: one of them cannot be read or written.
    """
    position = target.statistics().position
    await _check_beginning(source, target, position)
    copied = await _copy(source, target, progress)
    known: set[str] = set()
    looked = anyio.current_time()
    forgotten = await _forget(source, target, known)
    if follow:
        async with source.subscribe(after_position=target.statistics().position) as news:
            while True:
                now = anyio.current_time()
                due = now + max(_ERASURES, _SHARE * (now - looked))
                while await _grows(news, target.statistics().position, due):
                    await _copy(source, target, progress)
                await _copy(source, target, progress)  # records that came as the time ran out
                looked = anyio.current_time()
                await _forget(source, target, known)
    position = target.statistics().position
    return LogCopied(records=copied, position=position, forgotten=forgotten)


async def _copy(source: EventLog, target: Store, progress: Callable[[int], None] | None) -> int:
    """Copies the records that the target lacks; returns their number."""
    copied = 0
    async for batch in _batches(source, target.statistics().position):
        for outcome in await target.restore(batch):
            if isinstance(outcome, DuologError):
                raise outcome
        copied += len(batch)
        if target.statistics().position != batch[-1].position:
            raise InvalidInput(
                f"{target.url} has another writer, so it is not a copy any more; copy into a new log"
            )
        if progress is not None:
            progress(batch[-1].position)
    return copied


async def _grows(news: Subscription, position: int, due: float) -> bool:
    """Waits for a record behind a position; false once the loop's clock has reached ``due``."""
    with anyio.CancelScope(deadline=due):
        while (await anext(news)).position <= position:
            pass
        return anyio.current_time() < due
    return False


async def _check_beginning(source: EventLog, target: EventLog, position: int) -> None:
    """Raises InvalidInput unless the source has the target's last records at the same positions."""
    after = max(position - _LATEST, 0)
    held = {record.position: record async for record in target.read_all(after_position=after)}
    if not held:
        return
    async for record in source.read_all(after_position=after):
        mine = held.pop(record.position, None)
        if mine is None:
            break
        same = envelope_of(mine) == envelope_of(record)
        # A body may have been erased in one of them since.
        if not same or (None not in (mine.body, record.body) and mine.body != record.body):
            held[record.position] = mine
            break
    if held:
        first = min(held)
        raise InvalidInput(
            f"{target.url} is not the beginning of {source.url}: they differ at position {first}; copy into a "
            "new log"
        )


async def _batches(source: EventLog, after: int) -> AsyncIterator[list[Record]]:
    batch: list[Record] = []
    async for record in source.read_all(after_position=after):
        batch.append(record)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def _holds_bodies(target: EventLog, session: str) -> bool:
    """Whether a session, erased after a part of it was copied, still has bodies in the target."""
    async for record in target.read_all(session=session):
        if record.body is not None:
            return True
    return False


async def _forget(source: EventLog, target: Store, known: set[str]) -> tuple[str, ...]:
    """Forgets in the target what the source has forgotten, except sessions known to be done."""
    forgotten: list[str] = []
    async for summary in source.sessions():
        session = summary.session
        if summary.state != FORGOTTEN or session in known:
            continue
        try:
            state = (await target.summary(session)).state
            if state != FORGOTTEN or await _holds_bodies(target, session):
                forgotten += (await target.forget(session)).sessions
        except SessionNotFound:
            continue  # it was not copied yet
        known.add(session)
    return tuple(forgotten)
