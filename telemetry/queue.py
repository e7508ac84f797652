"""The entries that pass through the intake on their way to the log, session by session."""

from __future__ import annotations

from collections import deque
from typing import Literal, TypeAlias, final

import anyio
import msgspec

from ..engine.events import Role, SessionOpened
from ..engine.session.commands import Command
from ..engine.session.state import TraceState
from .receipt import Receipt, Ref
from .tally import Killed

__all__ = ("IntakeStatistics", "OnFull", "QueuedCommand", "SessionQueue", "Unwritten")

OnFull: TypeAlias = Literal["drop", "block"]
"""What happens to an event if the queue is full: it is dropped and counted, or its caller waits."""


class IntakeStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """State of the intake. Counts are of events as they were handed over.

    Attributes:
        accepted: handed over, and taken.
        waiting: taken, and not settled yet.
        written: settled: durable, or there was nothing to write (a second close).
        repeated: how many of those written were sent again with an id that the log had already.
        refused: against the rules: after the close, from an outdated base, or with an id in use.
        failed: taken, and lost because the log could not be written.
        spilled: how many of those that wait are kept on the disk, see ``duolog.telemetry.spill``.
        late: how many of those written were kept on the disk before, by this process or an earlier one.
        dropped: not taken, because there was no room.
        dropped_verbs: those, by the verb.
        retries: attempts to write that failed and were made again.
        error: why the latest of those that were refused, failed or dropped was; empty if none was.
    """

    accepted: int = 0
    waiting: int = 0
    written: int = 0
    repeated: int = 0
    refused: int = 0
    failed: int = 0
    spilled: int = 0
    late: int = 0
    dropped: int = 0
    dropped_verbs: dict[str, int] = {}
    retries: int = 0
    error: str = ""


class Unwritten(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a session that a closing log could not write.

    Attributes:
        session: session id.
        events: how many, as they were handed over.
        spilled: how many of them are kept on the disk, and are written when the log is opened next.
        error: the reason, if it is known.
    """

    session: str
    events: int
    spilled: int = 0
    error: str = ""


@final
class QueuedCommand:
    """A command on its way to the log, with its sender, time and receipt.

    It is handled only when it is its turn to be written, because it may refer to events whose trace
    versions are not known earlier.

    Attributes:
        verb: the recorder's word for it.
        command: the command; None only to open the session.
        actor: name of its sender.
        role: the actor's role.
        time: when it happened, UTC epoch seconds.
        receipt: the receipt of its event.
        id: the caller's id.
        about: the event that it refers to.
        received: what its sender had received when it was handed over: the event handed over before.
        stale: it is a snapshot whose base looked outdated when it was handed over.
        shortened: values that the log cannot hold were replaced in the command.
        taken: when it was handed over, UTC epoch seconds.
        spilled: it is in a spill file.
        adopted: another process has left it behind, in a spill file.
        tried: trace version with which it was sent to the log before it had an id.
        settled: its fate is known.
        tallied: how many events the tally counts for it.
        killed: what it notes was lost with the process that had it in memory alone.
    """

    __slots__ = (
        "about",
        "actor",
        "adopted",
        "command",
        "id",
        "killed",
        "receipt",
        "received",
        "role",
        "settled",
        "shortened",
        "spilled",
        "stale",
        "taken",
        "tallied",
        "time",
        "tried",
        "verb",
    )

    def __init__(
        self,
        verb: str,
        command: Command | None,
        actor: str,
        role: Role,
        time: float,
        receipt: Receipt,
        id: str | None = None,
        about: Ref | None = None,
    ) -> None:
        self.verb = verb
        self.command = command
        self.actor = actor
        self.role: Role = role
        self.time = time
        self.receipt = receipt
        self.id = id
        self.about = about
        self.stale = False
        self.received: Receipt | None = None
        self.shortened = False
        self.taken = 0.0
        self.spilled = self.adopted = self.settled = False
        self.tried: int | None = None
        self.tallied = 0
        self.killed: Killed | None = None


@final
class SessionQueue:
    """One session on its way to the log.

    Attributes:
        session: session id.
        opened: the opening to record if the log does not have the session.
        state: state of its trace; None if that has to be read (again).
        aliases: ids of events that the log holds without them, and their trace versions.
        opening: the opening as a tally keeps it; None if it was not needed.
        begun: its opening was written from here, so that whoever records has received that.
    """

    __slots__ = (
        "__weakref__",
        "aliases",
        "alone",
        "begun",
        "busy",
        "closing",
        "entries",
        "error",
        "last",
        "latest",
        "lock",
        "lost",
        "opened",
        "opening",
        "session",
        "state",
    )

    def __init__(self, session: str, opened: SessionOpened) -> None:
        self.session = session
        self.opened = opened
        self.opening: bytes | None = None
        self.state: TraceState | None = None
        self.lock = anyio.Lock(fast_acquire=True)  # one at a time reads or writes the trace
        # The intake's lock protects these.
        self.entries: deque[QueuedCommand] = deque()
        self.busy = False
        self.closing = False
        self.last: Receipt | None = None  # of the last entry handed over
        self.latest: Ref | None = None  # the latest snapshot, waiting ones included
        self.lost: QueuedCommand | None = None  # the mark of lost events, while it can count more
        # The task that writes owns these.
        self.aliases: dict[str, int] = {}
        self.begun = False
        self.alone = 0  # how many commands are written one by one, since together they failed
        self.error = ""

    @property
    def is_in_the_log(self) -> bool:
        """Whether the log is known to have the session."""
        return self.state is not None and self.state.version > 0

    def is_outdated(self, base: Ref) -> bool:
        """Whether a base looks outdated, so that it is worth waiting for what the log says."""
        latest = self.latest
        if latest is None or base is latest:
            return False
        if isinstance(base, str) and isinstance(latest, Receipt) and base == latest.id:
            return False
        mine, last = self._known(base), self._known(latest)
        return last is None or mine is None or mine < last

    def follow(self, state: TraceState) -> None:
        """Notes the latest snapshot of a trace, unless a newer one waits to be written, and whether
        it is closed.
        """
        self.closing = self.closing or state.closed is not None
        if not isinstance(self.latest, Receipt) or self.latest.settled:
            self.latest = state.snapshot

    def _known(self, ref: Ref) -> int | None:
        if isinstance(ref, str):
            state = self.state
            return None if state is None else state.ids.get(ref)
        return ref if isinstance(ref, int) else ref.version
