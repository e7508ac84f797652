"""Erasing many sessions: of one person, of an age, or by any filter of lists; and keeping to an age.

Sessions are erased in batches, each in one transaction, and the store is compacted once, at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol, final

import anyio
import msgspec

from ...engine.errors import DuologError, InvalidInput
from ...engine.log.contract import Cache, EventLog, ForgetResult, SessionSummary
from ...engine.logger import get_logger
from .query import SessionQuery, parse_query
from .select import check_labels, select

__all__ = ("Erasure", "Retention", "erase", "keep_to", "sessions_to_erase")

BATCH: Final = 200
"""Sessions that are erased in one transaction."""

_FORGOTTEN: Final = "forgotten"
_VIRTUAL: Final = (
    315_532_800.0  # 1980: an earlier time is one of a virtual clock, which begins at 0
)


class Erasable(EventLog, Protocol):
    """A log that can erase sessions; every ``Store`` is one."""

    async def forget(
        self, session: str | Sequence[str], *, caches: Sequence[Cache] = (), compact: bool = True
    ) -> ForgetResult:
        """See ``Store.forget``."""
        ...


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """The result of erasing sessions.

    Attributes:
        sessions: the erased sessions that were asked for.
        forks: their forks, which were erased with them.
        compacted: whether nothing of them is left in the store's files.
        held_up: why the store is not compacted; empty if it is, or if nothing was erased.
        caches: names of the caches that were erased from, too.
    """

    sessions: tuple[str, ...] = ()
    forks: tuple[str, ...] = ()
    compacted: bool = True
    held_up: str = ""
    caches: tuple[str, ...] = ()


@final
class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long sessions are kept.

    Attributes:
        age: seconds since a session's last trace record, after which it is erased.
        where: filters as ``duolog sessions`` takes them; only sessions that meet all are erased.
        every: seconds from one look to the next.
    """

    age: float
    where: tuple[str, ...] = ()
    every: float = 3_600.0

    def query(self) -> SessionQuery:
        """The filters.

        Raises:
            InvalidInput: a filter makes no sense, or an age or interval is not above 0.
        """
        if self.age <= 0 or self.every <= 0:
            raise InvalidInput(f"a retention needs an age and an interval above 0, got {self}")
        return parse_query(self.where)


async def sessions_to_erase(
    log: EventLog,
    query: SessionQuery | None = None,
    *,
    before: float | None = None,
    strict: bool = True,
) -> list[str]:
    """The ids of sessions that meet filters and are old enough, without those already erased.

    Args:
        log: the log.
        query: filters; None for all sessions.
        before: only sessions whose last trace record is earlier, seconds since the epoch. A session
            on a virtual clock does not age, so it never matches.
        strict: refuse filters by labels that no session has.

    Raises:
        InvalidInput: the query names a label that no session has, and ``strict``.
        LogError: the log cannot be read.
    """
    query = query or SessionQuery()
    if strict:
        await check_labels(log, query, None)

    def is_due(one: SessionSummary) -> bool:
        old = before is None or _VIRTUAL <= one.last < before
        return old and one.state != _FORGOTTEN and query.admits(one)

    due = [one.session async for one in log.sessions() if is_due(one)]
    if not query.needs_lines or not due:
        return due
    wanted = set(due)
    return [one.session async for one in select(log, query) if one.session in wanted]


async def erase(
    log: Erasable,
    sessions: Sequence[str],
    *,
    caches: Sequence[Cache] = (),
    progress: Callable[[int], object] | None = None,
) -> Erasure:
    """Erases sessions and their forks in batches, and compacts the store once.

    Args:
        log: the log.
        sessions: ids of sessions that the log has.
        caches: what else holds contents of sessions.
        progress: called with the number of sessions erased so far.

    Raises:
        SessionNotFound: the log has no such session; earlier batches are erased.
        LogError: the store failed; earlier batches are erased.
    """
    asked = tuple(dict.fromkeys(sessions))
    erased: dict[str, None] = {}
    result: ForgetResult | None = None
    for at in range(0, len(asked), BATCH):
        last = at + BATCH >= len(asked)
        batch = [one for one in asked[at : at + BATCH] if one not in erased or last]
        if not batch:
            continue
        result = await log.forget(batch, caches=caches, compact=last)
        erased.update(dict.fromkeys(result.sessions))
        if progress is not None:
            progress(len(erased))
    if result is None:
        return Erasure()
    known = set(asked)
    return Erasure(
        sessions=asked,
        forks=tuple(one for one in erased if one not in known),
        compacted=result.compacted,
        held_up=result.held_up,
        caches=result.caches,
    )


async def keep_to(log: Erasable, retention: Retention) -> None:
    """Erases sessions as they come of age, until it is cancelled.

    Several processes may do so on one log: what one has erased, the others do not find. An error of
    the log is written to the program's own log, and the next look tries again.

    Raises:
        InvalidInput: the retention makes no sense.
    """
    query = retention.query()
    note = get_logger("retention")
    while True:
        try:
            due = await sessions_to_erase(
                log, query, before=time.time() - retention.age, strict=False
            )
            if due:
                done = await erase(log, due)
                note.info(
                    "erased sessions that came of age",
                    sessions=len(done.sessions),
                    forks=len(done.forks),
                    compacted=done.compacted,
                    held_up=done.held_up,
                )
        except DuologError as error:
            note.warning("sessions that came of age could not be erased", error=str(error))
        await anyio.sleep(retention.every)
