"""The firings of alert rules, derived from the log for all viewers: latest sessions first."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias, final

import anyio
from anyio.lowlevel import checkpoint

from ....engine.events import AlertSent
from ....engine.log.contract import EventLog, SessionSummary
from ....engine.log.session_states import SessionStates
from ....scoring.index.sessions import SessionIndex
from ....scoring.trajectory.options import Options
from .firing import Firing, FiringFold, FiringKey
from .rules import AlertRule, AlertRules, may_have_met

__all__ = ("AlertHistory", "Fired", "FiredKey")

FiredKey: TypeAlias = tuple[int, str, FiringKey]
"""Key of a firing in the history: position of the record, session, and firing key."""

_FOLDS: Final = 1024
_AT_ONCE: Final = 500  # sessions to process before other tasks get a turn
_PATIENCE: Final = 0.2  # seconds that a page waits for what takes longer


class Fired(NamedTuple):
    """A firing, with the last record of its webhook; None if none was called."""

    firing: Firing
    sent: AlertSent | None


@final
class AlertHistory:
    """When rules fired, for which sessions, and what their webhook answered.

    Args:
        log: the log.
        index: its sessions.
        rules: the rules; if they change, it begins again.
        options: how sessions are scored.
        most: firings that are kept, the latest ones.

    Attributes:
        rules: the rules that it knows.
        count: how many there are, those that are not kept included.
        met: for each rule, how many sessions meet it now.
        looked: how many sessions were looked at.
        revision: grows with each change.
        position: the position of the log, up to which it is known what is to be looked at; None
            before the first time.
    """

    def __init__(
        self,
        log: EventLog,
        index: SessionIndex,
        rules: AlertRules,
        options: Options | None = None,
        *,
        most: int = 5000,
    ) -> None:
        self.revision = 0
        self._log = log
        self._index = index
        self._most = most
        self._options = options
        self._all = rules
        self._lock = anyio.Lock()
        self._begin()

    def _begin(self) -> None:
        """Forgets all that it knows, for the present rules."""
        self._revised = self._all.revision
        self.rules: Sequence[AlertRule] = self._all.all
        self.count = 0
        self.met = [0] * len(self.rules)
        self.looked = 0
        self.revision += 1
        self.position: int | None = None
        self._folds: SessionStates[FiringFold] = SessionStates(_FOLDS)
        self._due: list[int] = []  # places to be looked at, the next one last
        self._read = array("q")  # by place, the position up to which its session was read
        self._masks: dict[int, int] = {}  # by place, the rules that are met, a bit for each
        self._counts = array("q")  # by place
        self._fired: dict[str, dict[FiringKey, Fired]] = {}
        self._order: list[FiredKey] = []

    @property
    def complete(self) -> bool:
        """Whether all was looked at that the list of sessions had when it was asked last."""
        return self.position is not None and not self._due

    async def soon(self) -> None:
        """Reads new records, but only for a moment: the rest is left for the next time.

        Raises:
            LogError: the log cannot be read.
        """
        with anyio.move_on_after(_PATIENCE):
            await self.refresh()

    async def refresh(self) -> None:
        """Reads new records.

        Raises:
            LogError: the log cannot be read.
        """
        async with self._lock:
            if self._revised != self._all.revision:
                self._begin()
            index = self._index
            if not index.loaded:
                return
            reached = index.position
            changed = await index.changed_since(self.position or 0) or []
            self._due += reversed(changed)
            self.position = reached
            missing = len(index) - len(self._read)
            self._read.extend(0 for _ in range(missing))
            self._counts.extend(0 for _ in range(missing))
            while self._due:
                for summary in reversed(await index.read(self._due[-_AT_ONCE:])):
                    await self._look(self._due[-1], summary)
                    self._due.pop()
                await checkpoint()

    async def _look(self, place: int, summary: SessionSummary) -> None:
        if self._read[place] >= summary.position:
            return  # it was due twice
        reached = summary.position
        if any(may_have_met(rule, summary) for rule in self.rules):
            session = summary.session
            fold = self._folds.get(session) or FiringFold(session, self.rules, self._options)
            self._folds.keep(session, fold)
            async for record in self._log.read_all(session=session, after_position=fold.position):
                fold.feed(record)
            self._take(place, session, fold)
            reached = max(reached, fold.position)
        self.looked += not self._read[place]
        self._read[place] = reached

    def _take(self, place: int, session: str, fold: FiringFold) -> None:
        before, mask = self._masks.get(place, 0), 0
        for index, met in enumerate(fold.met):
            mask |= met << index
            self.met[index] += met - (before >> index & 1)
        if mask:
            self._masks[place] = mask
        else:
            self._masks.pop(place, None)
        self.count += len(fold.fired) - self._counts[place]
        self._counts[place] = len(fold.fired)
        fired = {one.key: Fired(one, fold.sent.get(one.key)) for one in fold.fired}
        if mask != before or fired != self._fired.get(session, {}):
            self.revision += 1
            self._put(session, fired)

    def _put(self, session: str, fired: dict[FiringKey, Fired]) -> None:
        for one in self._fired.pop(session, {}).values():
            key = _key(one.firing)
            place = bisect_left(self._order, key)
            if self._order[place : place + 1] == [key]:
                del self._order[place]
        if fired:
            self._fired[session] = fired
        for one in fired.values():
            insort(self._order, _key(one.firing))
        spare = max(len(self._order) - self._most, 0)
        for _, other, spared in self._order[:spare]:
            del self._fired[other][spared]
            if not self._fired[other]:
                del self._fired[other]
        del self._order[:spare]

    def page(self, size: int, before: int | None = None) -> list[Fired]:
        """Firings, the latest first: those with records before a position of the log.

        Those of one record are on one page, so that the next one begins before its position.
        """
        end = len(self._order)
        if before is not None:
            end = bisect_left(self._order, before, key=lambda one: one[0])
        start = max(end - size, 0)
        while start and self._order[start - 1][0] == self._order[start][0]:
            start -= 1
        found = self._order[start:end]
        return [self._fired[session][key] for _, session, key in reversed(found)]

    def has_before(self, position: int) -> bool:
        """Whether firings are kept with records before a position of the log."""
        return bool(self._order) and self._order[0][0] < position


def _key(firing: Firing) -> FiredKey:
    return firing.position, firing.session, firing.key
