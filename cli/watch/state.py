"""What ``duolog watch`` shows, read from the log as it is needed: no terminal is known here.

An index of the sessions follows the log and says which sessions have changed. The screen's contents
are then read: the selected session, and the rows of the list that can be seen. A *moment* is a position of
the log; if there is one, everything is shown as it was then.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import final

import anyio
from anyio.lowlevel import checkpoint

from ...engine.errors import DuologError, LogNotFound
from ...engine.log.contract import EventLog
from ...engine.log.follower import Follower
from ...engine.log.session_states import SessionStates
from ...scoring.columns.rows import Folded, SessionRow
from ...scoring.index.lines import SessionLine, SessionLines
from ...scoring.index.sessions import SessionIndex
from ...scoring.trajectory.options import Options
from .selection import Selection
from .timeline import Moment, Timeline

__all__ = ("WatchedLog",)

_PACE = 0.1  # seconds between two looks without a request, so that a busy log is read in batches
_FILE = 0.5  # seconds between looks whether the file is still there
_KEPT = 256  # rows in memory, at most
_AT_ONCE = 64  # records taken between two turns of other tasks


@final
class WatchedLog:
    """A log that is being watched: its sessions, the selected one, and the moment that is shown.

    ``run`` reads the log. All other methods are for drawing, and never wait.

    Args:
        log: the log, open.
        options: how to score.
        session: the session to begin with; None for the newest.
        full: show all of each output.
        file: where the log is, to notice when it goes away; None if it is in no file.

    Attributes:
        index: the sessions.
        selection: those that the list shows, and their order.
        moment: position whose state is shown; None for now.
        count: how many sessions there were at that moment.
        selected: the session that is shown; None while there is none.
        timeline: its records; None until they are being read.
        loading: whether some of them are still to be read.
        failure: why the log is followed no longer.
        changed: called whenever there is something new to draw.
    """

    def __init__(
        self,
        log: EventLog,
        options: Options,
        *,
        session: str | None = None,
        full: bool = False,
        file: Path | None = None,
    ) -> None:
        self.index = SessionIndex(log)
        self._lines = SessionLines(log, options, most=_KEPT)
        self.selection = Selection(self.index, self._lines, self._listed)
        self.moment: int | None = None
        self.count = 0
        self.selected = session
        self.timeline: Timeline | None = None
        self.loading = False
        self.failure: DuologError | None = None
        self.changed: Callable[[], None] = _nobody
        self._log = log
        self._options = options
        self._full = full
        self._file = file
        self._at_first: tuple[int, int] | None = None
        self._visible: list[int] = []
        self._rows: SessionStates[SessionLine] = SessionStates(_KEPT)
        self._wanted = anyio.Event()  # there is something to be read
        self._asked = anyio.Event()  # and the user waits for it
        self._reading = False
        self._then: tuple[object, list[int]] = (
            None,
            [],
        )  # the list of a moment, and its basis
        self._counted: int | None = None  # the moment that ``count`` is about

    # --- what is shown ----------------------------------------------------------------------------

    @property
    def listing(self) -> bool:
        """Whether the sessions are still being read."""
        return not self.index.loaded and self.failure is None

    @property
    def listed(self) -> int:
        """How many sessions the list shows at that moment."""
        return len(self.selection.list if self.moment is None else self._there())

    def sessions(self, start: int, end: int) -> list[str]:
        """Ids of the sessions in the list, from the one at ``start`` to before the one at ``end``."""
        return [self.index.names[place] for place in self._places(start, end)]

    def _places(self, start: int, end: int) -> list[int]:
        start, end = max(start, 0), max(end, 0)
        if self.moment is None:
            return [*self.selection.list.places(start, end)]
        return self._there()[start:end]

    def rank(self, session: str) -> int | None:
        """How many sessions come before one in that list; None if it is not in the list."""
        place = self.index.place(session)
        if place is None or self.moment is None:
            return None if place is None else self.selection.list.rank(place)
        there = self._there()
        return there.index(place) if place in there else None

    def _there(self) -> list[int]:
        """The places of the sessions in the list that had begun at the moment."""
        found = self.selection.list
        basis = (id(found), found.revision, self.count)
        if self._then[0] != basis:
            self._then = basis, [place for place in found.places() if place < self.count]
        return self._then[1]

    def row(self, session: str) -> SessionLine:
        """The row of a session of the list; without contents until they are read."""
        return self._rows.get(session) or SessionLine(
            Folded(SessionRow(session=session, unreadable="…"))
        )

    def is_late(self, row: SessionLine) -> bool:
        """Whether a row is of another moment than the one to be shown: it will be read soon."""
        return self.moment is not None and not row.holds_at(self.moment)

    def show(self, start: int, end: int) -> None:
        """Learns which sessions of the list can be seen."""
        visible = self._places(start, end)
        if visible != self._visible:
            self._visible = visible
            self._wanted.set()

    @property
    def shown(self) -> Moment:
        """The selected session as it was at the moment, as far as it has been read."""
        timeline = self.timeline
        return Moment() if timeline is None else timeline.at(timeline.count_at(self.moment))

    @property
    def settled(self) -> bool:
        """Whether all that is to be seen has been read."""
        return self.selection.settled and not (self._reading or self._wanted.is_set())

    # --- what the user wants ----------------------------------------------------------------------

    def select(self, session: str) -> None:
        """Shows a session."""
        if session != self.selected:
            self.selected = session
            self.timeline = None
            self._wake()

    def go(self, count: int) -> None:
        """Shows all as it was when the selected session had this many records, at least one."""
        timeline = self.timeline
        if timeline is not None and timeline.records:
            count = min(max(count, 1), len(timeline.records))
            self.go_to(timeline.position_of(count))

    def step(self, by: int) -> None:
        """Moves by records of the selected session; past the last one it follows."""
        timeline = self.timeline
        if timeline is None or (by > 0 and self.moment is None):
            return
        count = timeline.count_at(self.moment) + by
        if count > len(timeline.records):
            self.follow()
        else:
            self.go(count)

    def step_round(self, by: int) -> None:
        """Goes to the beginning of this round or of one before it, or of one that follows."""
        timeline = self.timeline
        if timeline is None or (by > 0 and self.moment is None):
            return
        count = timeline.count_at(self.moment)
        number = timeline.round_at(count)
        if by < 0 and timeline.begins(number) != count:
            by += 1  # the beginning of this one
        found = timeline.begins(max(number + by, 1))
        if found is None:
            self.follow()
        else:
            self.go(found)

    def follow(self) -> None:
        """Shows the present, and follows the log."""
        self.go_to(None)

    def go_to(self, moment: int | None) -> None:
        """Shows all as it was at a position of the log; None for now."""
        if moment != self.moment:
            self.moment = moment
            self._wake()

    def _listed(self) -> None:
        """The list, or one of its sessions, has changed."""
        if self.selected is None and self.index.loaded and self.index.names:
            self.selected = self.index.names[-1]
        if self.moment is None:
            self.count = len(self.index)
        self._wanted.set()
        self.changed()

    def _wake(self) -> None:
        self._asked.set()
        self._wanted.set()
        self.changed()

    # --- reading ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follows the log until it is cancelled, or until the log can no longer be read."""
        async with anyio.create_task_group() as tasks:
            if self._file is not None:
                tasks.start_soon(self._guard, tasks.cancel_scope)
            try:
                follower = Follower(self._log)  # it is not entered: the index follows
                async with anyio.create_task_group() as readers:
                    readers.start_soon(self.index.run)
                    readers.start_soon(self.selection.run, follower)
                    readers.start_soon(self._read, follower)
            except* DuologError as errors:
                error = next(error for error in _leaves(errors))
                # If the file is gone, reading may fail before the guard sees that, and say less.
                self._fail(await self._gone() or error)
            tasks.cancel_scope.cancel()

    def _fail(self, error: DuologError) -> None:
        self.failure = error
        self.loading = False
        self.changed()

    async def _guard(self, scope: anyio.CancelScope) -> None:
        """Notices when the file is no longer the one that was opened."""
        while (gone := await self._gone()) is None:  # noqa: ASYNC110  (nothing notifies of that)
            await anyio.sleep(_FILE)
        self._fail(gone)
        scope.cancel()

    async def _gone(self) -> LogNotFound | None:
        """The error if the file is not the one that was there at first; None if it is."""
        if self._file is None:
            return None
        try:
            found = await anyio.Path(self._file).stat()
            now = (found.st_dev, found.st_ino)
        except OSError:
            now = None
        self._at_first = self._at_first or now
        if now is not None and now == self._at_first:
            return None
        return LogNotFound(f"{self._file} is gone: it was moved, deleted or replaced")

    async def _read(self, follower: Follower) -> None:
        """Reads what is shown, again and again."""
        while True:
            await self._wanted.wait()
            self._wanted, self._asked, self._reading = anyio.Event(), anyio.Event(), True
            await follower.retry(self._read_shown)
            self._reading = False
            self.changed()
            with anyio.move_on_after(_PACE):
                await self._asked.wait()

    async def _read_shown(self) -> None:
        await self._read_selected()
        await self._count()
        await self._read_rows()

    async def _read_selected(self) -> None:
        session = self.selected
        if session is None:
            return
        timeline = self.timeline
        if timeline is None:
            timeline = self.timeline = Timeline(session, self._options, full=self._full)
        elif not self.loading and not self.index.has_news(session, timeline.position):
            return
        self.loading = True
        records = self._log.read_all(session=session, after_position=timeline.position)
        async for record in records:
            timeline.add(record)
            if len(timeline.records) % _AT_ONCE == 0:
                await checkpoint()
            if self.selected != session:
                break
        self.loading = False
        self.changed()

    async def _count(self) -> None:
        moment = self.moment
        if moment is None:
            self.count = len(self.index)
        elif moment != self._counted:
            self.count = await self.index.count_at(moment)
        self._counted = moment

    async def _read_rows(self) -> None:
        names = self.index.names
        late = await self.index.read(
            [place for place in self._visible if not self._is_read(names[place])]
        )
        if self.moment is None:
            await self._lines.prefetch(late)
        for summary in late:
            session = summary.session
            if self.moment is None:
                row = await self._lines.line(summary)
            else:
                row = await self._lines.at(session, self.moment)
            self._rows.keep(session, row)
            self.changed()
            if self._asked.is_set():
                return  # the rest can wait

    def _is_read(self, session: str) -> bool:
        """Whether the row of a session is as it was at the moment."""
        row = self._rows.get(session)
        if row is None or (row.until is None and self.index.has_news(session, row.position)):
            return False
        return row.until is None if self.moment is None else row.holds_at(self.moment)


def _nobody() -> None:
    pass


def _leaves(errors: BaseExceptionGroup[DuologError]) -> list[DuologError]:
    found: list[DuologError] = []
    for error in errors.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
