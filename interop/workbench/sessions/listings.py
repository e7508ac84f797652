"""The lists that are being looked at: one for each query and order, shared by all who look at it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NamedTuple, final

import anyio

from ....engine.log.contract import EventLog
from ....engine.log.session_states import SessionStates
from .address import ListAddress
from .listing import Key, Listing
from .table import SessionTable

__all__ = ("ListChange", "Listings")

_KEPT: Final = 12
_MOST: Final = 300  # sessions in one message: where more have changed, the page is loaded again


class ListChange(NamedTuple):
    """What has changed in a list.

    Attributes:
        position: of the log, up to which this is so.
        rows: the sessions in the list that have changed, and where they stand now.
        gone: the sessions that have changed, and are not in it.
        reload: whether too much has changed to be listed.
        found: how many sessions the list holds.
        total: how many the log holds.
        looked: how many were looked at.
        complete: whether that is all.
        loaded: whether the log's list was read.
    """

    position: int
    rows: list[tuple[str, Key]]
    gone: list[str]
    reload: bool
    found: int
    total: int
    looked: int
    complete: bool
    loaded: bool


@final
class Listings:
    """Lists by query and order; those that were not used for the longest time are dropped.

    Args:
        log: the log.
        table: its sessions.
    """

    def __init__(self, log: EventLog, table: SessionTable) -> None:
        self._log = log
        self._table = table
        self._held: SessionStates[Listing] = SessionStates(_KEPT)

    def of(self, address: ListAddress) -> Listing:
        """The list that an address asks for; to be refreshed."""
        name = str(address.first_page())
        held = self._held.get(name)
        if held is None:  # one that holds nothing is false
            held = Listing(self._log, self._table, address.query, address.order)
        self._held.keep(name, held)
        return held

    async def follow(
        self, address: ListAddress, after: int, pace: float
    ) -> AsyncIterator[ListChange]:
        """What changes in a list after a position of the log, in messages at a pace.

        Raises:
            LogError: the log cannot be read.
        """
        table = self._table
        position = after
        was_loaded = table.loaded
        before: ListChange | None = None
        listing = self.of(address)  # held here, however many others are looked at
        while True:
            await listing.soon()
            reached = listing.position  # the list may have had no time for what the table has
            places = table.changed_since(position, _MOST) if table.loaded else []
            rows = [
                (table.summaries[place].session, key)
                for place in places or ()
                if (key := listing.key(place)) is not None
            ]
            kept = {session for session, _ in rows}
            sessions = [table.summaries[place].session for place in places or ()]
            change = ListChange(
                position=max(reached, position) if table.loaded else position,
                rows=rows,
                gone=[session for session in sessions if session not in kept],
                reload=places is None or (table.loaded and not was_loaded),
                found=len(listing),
                total=len(table),
                looked=listing.looked,
                complete=listing.complete,
                loaded=table.loaded,
            )
            was_loaded = table.loaded
            if change != before:
                yield change
            before = change._replace(rows=[], gone=[], reload=False)
            position = change.position
            if listing.complete and table.position <= position:
                await table.wait()
            await anyio.sleep(pace)
