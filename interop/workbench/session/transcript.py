"""A part of a session's transcript as HTML: entries, and the headings of the rounds among them."""

from __future__ import annotations

from typing import NamedTuple, final

from anyio.lowlevel import checkpoint

from ....engine.errors import CodecError
from ....engine.events import ActionResolved, ActionTaken, SnapshotTaken
from ....engine.log.contract import EventLog
from ....engine.records import TRACE, Record
from ..access.disclosure import Disclosure
from ..access.identity import Identity
from ..markup.html import Html, tag
from .contents import Beside
from .drafts import change_summary
from .entries import EntryContext, entry
from .reading import SessionReading

__all__ = ("Transcript",)


class _Action(NamedTuple):
    event: ActionTaken
    time: float


@final
class Transcript:
    """Makes the parts of a session's transcript.

    Args:
        log: the log.
        reading: of the session.
        identity: who sees it.
    """

    def __init__(self, log: EventLog, reading: SessionReading, identity: Identity) -> None:
        self._log = log
        self._reading = reading
        self._identity = identity
        self._actions: dict[int, _Action | None] = {}
        self._snapshots: dict[int, SnapshotTaken | None] = {}

    async def part(self, first: int, last: int) -> list[Html]:
        """The entries from one number to another, with the headings before them.

        Raises:
            LogError: the log cannot be read.
        """
        reading = self._reading
        records = await reading.window(first, last)
        opened = reading.opened_at
        parts: list[Html] = []
        for number, record in enumerate(records, start=max(first, 1)):
            if (round_ := reading.round_begins(number)) is not None:
                heading = tag("h2", f"Round {round_}", data_round=round_, data_i=number)
                parts.append(heading)
            context = EntryContext(
                number=number,
                opened=opened,
                advice=reading.advice.get(number, []),
                beside=Beside(await self._change(record), await self._action(record)),
            )
            parts.append(entry(record, context))
            await checkpoint()  # reading a text as Markdown may take a while
        return parts

    async def snapshot(self, version: int) -> SnapshotTaken | None:
        """A version of the output, as it may be seen; None where there is none."""
        if version not in self._snapshots:
            record = await self._trace(version)
            event = None if record is None else record.event
            self._snapshots[version] = event if isinstance(event, SnapshotTaken) else None
        return self._snapshots[version]

    async def _change(self, record: Record) -> Html | None:
        if record.kind != "SnapshotTaken" or record.stream != TRACE:
            return None
        try:
            event = record.event
            if not isinstance(event, SnapshotTaken):
                return None
            self._snapshots[record.version] = event
            earlier = self._reading.draft_before(record.version)
            before = None if earlier is None else await self.snapshot(earlier.version)
        except CodecError:
            return None
        return await change_summary(before, event)

    async def _action(self, record: Record) -> _Action | None:
        """The action that an outcome is of; of an action, remembers it."""
        try:
            event = record.event
        except CodecError:
            return None
        if isinstance(event, ActionTaken):
            self._actions[record.version] = _Action(event, record.time)
        if not isinstance(event, ActionResolved):
            return None
        if event.action not in self._actions:
            taken = await self._trace(event.action)
            action = None if taken is None else taken.event
            self._actions[event.action] = (
                _Action(action, taken.time)
                if taken is not None and isinstance(action, ActionTaken)
                else None
            )
        return self._actions[event.action]

    async def _trace(self, version: int) -> Record | None:
        """A record of the trace, as it may be seen."""
        disclosure = Disclosure(self._identity)
        async for record in self._log.read(self._reading.session, after_version=version - 1):
            return disclosure.see(record) if record.version == version else None
        return None
