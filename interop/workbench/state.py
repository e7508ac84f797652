"""The shared state of the workbench: the log, its known sessions, and its limits."""

from __future__ import annotations

from typing import NamedTuple, final

import anyio
import msgspec

from ...engine.errors import InvalidInput
from ...engine.log.contract import EventLog
from ...scoring.index.contents import ContentSearch
from ...scoring.index.lists import SessionLists
from ...scoring.index.sessions import SessionIndex
from ...scoring.trajectory.options import Options
from ..http.limits import HttpLimits
from ..http.sse import EventStream
from .access.identity import Access
from .access.sharing import Links
from .alerts.rules import AlertRules
from .session.forking import Forker

__all__ = ("Workbench", "WorkbenchLimits")


class WorkbenchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for one client of the workbench.

    Attributes:
        reads: requests that read, of one user at one address, or of all strangers at one address: at
            once, and a second in the long run.
        writes: requests that change something, likewise.
        entries: attempts to enter with a wrong token, likewise.
        body: bytes in the body of a request.
        page: sessions on a page.
        window: records that are read at once.
        pace: seconds between two messages of a live page.
        heartbeat: seconds between beats of an event stream; a page that hears none of three connects
            again.

    Raises:
        InvalidInput: one of them is not above 0.
    """

    reads: tuple[float, float] = (400, 100)
    writes: tuple[float, float] = (100, 20)
    entries: tuple[float, float] = (10, 0.5)
    body: int = 1 << 20
    page: int = 50
    window: int = 40
    pace: float = 0.1
    heartbeat: float = 5.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not all(one > 0 for one in (value if isinstance(value, tuple) else (value,))):
                raise InvalidInput(f"the limit {name!r} must be above 0, not {value}")


@final
class Workbench(NamedTuple):
    """The shared state of the parts.

    Attributes:
        log: the log.
        name: the name of the log, for titles and commands.
        sessions: its sessions.
        lists: lists of them, with the measurements of each.
        access: the rights of users.
        options: how sessions are scored.
        limits: what one client may take.
        http: the limits of the connections.
        streams: the event streams that are open.
        stopping: set when the server stops.
        places: the addresses that the navigation leads to.
        forks: begins forks of sessions; None to disable them.
        links: the shared links.
        contents: searches what sessions say.
        alerts: the rules of which the page of alerts shows when they fired.
    """

    log: EventLog
    name: str
    sessions: SessionIndex
    lists: SessionLists
    access: Access
    options: Options
    limits: WorkbenchLimits
    http: HttpLimits
    streams: set[EventStream]
    stopping: anyio.Event
    places: frozenset[str]
    forks: Forker | None
    links: Links
    contents: ContentSearch
    alerts: AlertRules
