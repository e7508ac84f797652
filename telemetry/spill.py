"""Spill files: where commands wait on the local disk while the store is away.

A file belongs to one process, which holds a lock on it, and has a line for each command: redacted, with
the id under which it will be in the log. When the store is back, the commands go to it from memory, and
the file is removed. A process that died, or was closed before, leaves its file behind; the next process
that opens the log on this machine sends what is in it. Ids make sure that nothing is written twice.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, cast, final
from urllib.parse import urlsplit

import msgspec

from ..engine import codec
from ..engine.errors import DuologError, InvalidInput
from ..engine.events import Event, Role, SessionOpened, Unknown
from ..engine.logger import get_logger
from ..engine.records import ENGINE, Draft, Redact
from ..engine.session.commands import (
    CloseSession,
    Command,
    GiveApproval,
    GiveFeedback,
    RateProgress,
    RecordEvent,
    ResolveAction,
    SubmitSnapshot,
    TakeAction,
)
from .queue import QueuedCommand, SessionQueue
from .receipt import Receipt, Ref
from .tally import TallyFiles, lock_file, take_file

__all__ = ("Leftover", "Sent", "Spill", "SpillFiles", "is_on_a_server", "tallies_near")

_ENDING: Final = ".spill"
_PAGE: Final = 1 << 20  # bytes read at once
_KINDS: Final[dict[str, type[Command]]] = {
    kind.__name__: kind
    for kind in (
        RecordEvent,
        TakeAction,
        ResolveAction,
        SubmitSnapshot,
        GiveApproval,
        RateProgress,
        GiveFeedback,
        CloseSession,
    )
}


@final
class Spill(msgspec.Struct, frozen=True, kw_only=True):
    """Where events wait on the local disk while the store is away, and how many.

    Attributes:
        directory: directory of the files. By default ``$DUOLOG_SPILL``, else ``duolog/spill`` in
            ``$XDG_STATE_HOME`` or ``~/.local/state``.
        size: bytes that one process may keep there. If that is not enough, further events wait in
            memory, and then they are dropped and counted.
        age: seconds. Events left behind longer ago are no longer recorded, and count as lost.
        after: seconds for which an event waits in memory before it is written to the disk.
    """

    directory: str | os.PathLike[str] | None = None
    size: int = 32 << 20
    age: float = 7 * 86_400.0
    after: float = 0.25

    def place(self) -> Path:
        """The directory."""
        if self.directory is not None:
            return Path(self.directory)
        if named := os.environ.get("DUOLOG_SPILL"):
            return Path(named)
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return Path(state) / "duolog" / "spill"


def tallies_near(url: str, redact: Redact | None) -> TallyFiles | None:
    """The tallies of a log in a file, next to that file; None for a log elsewhere."""
    if not url.startswith("sqlite:///"):
        return None

    def place() -> tuple[Path, str]:
        path = Path(_log_at(url))
        return path.parent, path.name

    return TallyFiles(place, redact, make=False)


def is_on_a_server(url: str) -> bool:
    """Whether a URL names a store that another machine may run, and that may be away."""
    scheme, separator, _ = url.partition("://")
    return bool(separator) and scheme not in ("memory", "sqlite")


def _log_at(url: str) -> str:
    """A URL as all users of a log have it: without the user, and with the whole path of a file."""
    if url.startswith("sqlite:///"):
        return os.path.realpath(url.removeprefix("sqlite:///").partition("?")[0])
    parts = urlsplit(url)
    shown = [one for one in parts.query.split("&") if one.startswith("schema=")]
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}?{'&'.join(shown)}"


_NOTHING: Final = msgspec.Raw()


Sent: TypeAlias = tuple[str, str]
"""The session and the id of an entry that waits no more: ids are unique in their session only."""


class _Line(msgspec.Struct, omit_defaults=True):
    """A line of a spill file: a command, or what has become of earlier ones.

    Attributes:
        session: session id; empty in a line that is about others.
        opened: how the session is opened; in its first line of a file.
        id: under which the log will have the event, or its caller gave it.
        tried: trace version with which it was sent before it had that id; it may be there.
        about: the event that it refers to, by trace version or id.
        settled: sessions and ids of earlier lines that need no sending any more.
    """

    session: str = ""
    opened: msgspec.Raw = _NOTHING
    opened_schema: int = 0
    verb: str = ""
    command: str = ""
    actor: str = ENGINE
    role: Role = "environment"
    time: float = 0.0
    taken: float = 0.0
    id: str | None = None
    tried: int | None = None
    about: int | str | None = None
    received: int | str | None = None
    kind: str = ""
    schema: int = 0
    body: msgspec.Raw = _NOTHING
    outcome: msgspec.Raw = _NOTHING
    outcome_schema: int = 0
    base: int | msgspec.UnsetType | None = msgspec.UNSET
    of: int | None = None
    settled: list[Sent] = []


Waiting: TypeAlias = tuple[SessionQueue, QueuedCommand]
"""An entry, and the session that it waits in."""


class Leftover(NamedTuple):
    """A command that another process has left behind.

    Attributes:
        session: session id.
        opened: how the session is opened, if the log does not hold it.
        entry: the command.
        taken: when it was handed over, UTC epoch seconds.
    """

    session: str
    opened: SessionOpened
    entry: QueuedCommand
    taken: float


class _File:
    """A spill file, open and locked. Used by one thread at a time.

    Attributes:
        path: the path of the file.
        size: bytes in it.
        opened: sessions whose openings are in it.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self.opened: set[str] = set()

    def append(self, lines: Sequence[bytes]) -> None:
        """Adds lines, all or none. Raises OSError."""
        data = b"".join(lines)
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self._descriptor, data[written:], self.size + written)
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)

    def close(self) -> None:
        """Leaves the file to others."""
        os.close(self._descriptor)

    def remove(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)
        self.close()


@final
class SpillFiles:
    """The spill files of a log on this machine; a ``Cache``, from which sessions can be forgotten.

    All methods but ``forget`` are for one worker thread at a time, since they wait for the disk.

    Args:
        settings: where they are, and how large.
        url: the URL of the log.
        redact: takes out of each event what must not be written.
    """

    def __init__(self, settings: Spill, url: str, redact: Redact | None) -> None:
        if settings.size < 1 or settings.age <= 0 or settings.after < 0:
            raise InvalidInput(f"a spill file needs a size and an age above 0, not {settings}")
        self.settings = settings
        self._redact = redact
        self._url = url
        self._run = secrets.token_hex(4)
        self._count = 0
        self._own: _File | None = None
        self._adopted: list[_File] = []
        self._warned = False

    @property
    def name(self) -> str:
        """Its name in the report of an erasure."""
        return f"the spill files in {self.settings.place()}"

    @cached_property
    def _prefix(self) -> str:
        return hashlib.sha256(_log_at(self._url).encode()).hexdigest()[:16]

    @cached_property
    def tallies(self) -> TallyFiles:
        """The tallies in the same directory."""
        return TallyFiles(lambda: (self.settings.place(), self._prefix), self._redact)

    @property
    def in_use(self) -> bool:
        """Whether this process has a file."""
        return self._own is not None or bool(self._adopted)

    # --- writing ----------------------------------------------------------------------------------

    def name_entry(self, entry: QueuedCommand) -> None:
        """Gives an entry an id under which the log will have it, if its caller gave it none.

        To be called where entries are written to the log from, before ``keep``.
        """
        if entry.id is None and entry.command is not None:
            self._count += 1
            entry.tried = entry.receipt.at
            entry.id = f"spill/{self._run}/{self._count}"
        entry.receipt.ident = entry.id

    def keep(self, entries: Sequence[Waiting], done: list[Sent]) -> tuple[list[Waiting], int]:
        """Writes entries to the disk, in order.

        Args:
            entries: what to write.
            done: entries that were written before and wait no more.

        Returns:
            Those that are on the disk now, and how many of all were dealt with: there is no room for
            the rest, and nothing is written, ``done`` included, if it is 0.
        """
        try:
            file = self._file()
        except OSError as error:
            self._warn(error)
            return [], 0
        lines = [_encode(_Line(settled=done)) + b"\n"] if done else []
        opened: set[str] = set()
        size = file.size + sum(map(len, lines))
        kept: list[Waiting] = []
        dealt = 0
        for queue, entry in entries:
            dealt += 1
            fresh = queue.session not in file.opened and queue.session not in opened
            try:
                line = _encode(self._line(queue, entry, fresh)) + b"\n"
            except Exception as error:  # noqa: BLE001  (the hook's own; said again when it is written)
                get_logger("telemetry").warning(
                    "an event cannot be kept on the disk", session=queue.session, error=str(error)
                )
                continue
            size += len(line)
            if size > self.settings.size:
                self._warn(f"{file.path} holds {file.size:,} bytes, and may hold no more")
                dealt -= 1
                break
            lines.append(line)
            opened.add(queue.session)
            kept.append((queue, entry))
        if entries and not dealt:
            return [], 0
        try:
            file.append(lines)
        except OSError as error:
            self._warn(error)
            return [], 0
        file.opened |= opened
        return kept, dealt

    def clear(self) -> None:
        """Removes this process's file and those that it took over: nothing in them waits any more."""
        for file in (*self._adopted, *([self._own] if self._own is not None else [])):
            file.remove()
        self._adopted.clear()
        self._own = None
        self._warned = False

    def leave(self, done: list[Sent]) -> None:
        """Leaves the files to the next process, without what is done."""
        if done:
            self.keep((), done)
        for file in (*self._adopted, *([self._own] if self._own is not None else [])):
            file.close()
        self._adopted.clear()
        self._own = None

    def _file(self) -> _File:
        if self._own is None:
            directory = self.settings.place()
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = directory / f"{self._prefix}-{os.getpid()}-{secrets.token_hex(4)}{_ENDING}"
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
            descriptor = os.open(path, flags, 0o600)
            lock_file(descriptor)
            self._own = _File(path, descriptor)
        return self._own

    def _line(self, queue: SessionQueue, entry: QueuedCommand, fresh: bool) -> _Line:
        line = _Line(
            session=queue.session,
            verb=entry.verb,
            actor=entry.actor,
            role=entry.role,
            time=entry.time,
            taken=entry.taken,
            id=entry.id,
            tried=entry.tried,
            about=_reference(entry.about),
            received=_reference(entry.received) or (1 if queue.begun else None),
        )
        if fresh:
            opening = self._redacted(queue.opened, ENGINE, "environment", entry.time)
            line.opened = msgspec.Raw(codec.encode_body(opening))
            line.opened_schema = opening.schema
        command = entry.command
        if command is not None:
            event = self._redacted(command.event, entry.actor, entry.role, entry.time)
            line.command = type(command).__name__
            line.kind, line.schema = codec.kind_of(event)
            line.body = msgspec.Raw(codec.encode_body(event))
            if isinstance(command, TakeAction) and command.outcome is not None:
                outcome = self._redacted(command.outcome, entry.actor, "environment", entry.time)
                line.outcome = msgspec.Raw(codec.encode_body(outcome))
                line.outcome_schema = outcome.schema
            elif isinstance(command, SubmitSnapshot):
                line.base = command.base
            elif isinstance(command, RateProgress):
                line.of = command.of
        return line

    def _redacted(
        self, event: Event | Unknown, actor: str, role: Role, at: float
    ) -> Event | Unknown:
        if self._redact is None:
            return event
        return self._redact(Draft(event, actor, role, at)).event

    def _warn(self, why: object) -> None:
        if not self._warned:
            self._warned = True
            get_logger("telemetry").warning(
                "events wait in memory alone, not on the disk",
                directory=str(self.settings.place()),
                error=str(why),
            )

    # --- reading ----------------------------------------------------------------------------------

    def check(self) -> None:
        """Warns if nothing can be written to the directory."""
        place = self.settings.place()
        existing = next(
            (path for path in (place, *place.parents) if path.exists()), Path(place.anchor)
        )
        if sys.platform == "win32" or not os.access(existing, os.W_OK | os.X_OK):
            self._warn(f"cannot write to {existing}")

    def take_over(self) -> list[Leftover]:
        """What processes that are gone have left behind of this log, in order; their files stay
        until ``clear``.
        """
        taken: list[tuple[_File, list[_Line]]] = []
        for path in sorted(self._paths(), key=_changed):
            descriptor = take_file(path)
            if descriptor is None:
                continue
            lines = [held for _, line in _lines(path) if (held := _decoded(line)) is not None]
            taken.append((_File(path, descriptor), lines))
        done = {one for _, lines in taken for line in lines for one in line.settled}
        found: list[Leftover] = []
        for file, lines in taken:
            waiting = list(_waiting(lines, done))
            found += waiting
            if waiting:
                self._adopted.append(file)
            else:
                file.remove()
        return found

    def _paths(self) -> list[Path]:
        try:
            return list(self.settings.place().glob(f"{self._prefix}-*{_ENDING}"))
        except OSError:
            return []

    def exist(self) -> bool:
        """Whether any process has files of this log here."""
        return bool(self._paths()) or self.tallies.exist()

    # --- erasing ----------------------------------------------------------------------------------

    async def forget(self, sessions: Sequence[str]) -> None:
        """Erases what the files hold of sessions, those of other processes too."""
        from anyio.to_thread import run_sync

        await run_sync(self._forget, frozenset(sessions))

    def _forget(self, sessions: frozenset[str]) -> None:
        self.tallies.erase(sessions)
        for path in self._paths():
            try:
                descriptor = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                continue
            try:
                # In place, since its process still appends to it.
                for at, line in _lines(path):
                    held = _decoded(line)
                    if held is not None and held.session in sessions:
                        os.pwrite(descriptor, b" " * len(line), at)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The whole lines of a file and their offsets; not the last one, if it was cut off."""
    at = 0
    with path.open("rb", buffering=_PAGE) as file:
        for line in file:
            if line.endswith(b"\n"):
                yield at, line[:-1]
            at += len(line)


def _decoded(line: bytes) -> _Line | None:
    if not line.strip():
        return None
    try:
        return _decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None


def _waiting(lines: Sequence[_Line], done: set[Sent]) -> Iterator[Leftover]:
    openings: dict[str, SessionOpened] = {}
    for line in lines:
        if not line.session:
            continue
        try:
            if line.opened != _NOTHING:
                opening = codec.decode_body("SessionOpened", line.opened_schema, bytes(line.opened))
                openings[line.session] = cast(SessionOpened, opening)
            if line.session not in openings:
                continue
            if line.id is not None and (line.session, line.id) in done:
                continue
            entry = _entry(line)
        except (DuologError, TypeError, ValueError) as error:
            get_logger("telemetry").warning(
                "a line of a spill file cannot be read",
                session=line.session,
                error=str(error),
            )
            continue
        yield Leftover(line.session, openings[line.session], entry, line.taken)


def _entry(line: _Line) -> QueuedCommand:
    receipt = Receipt(line.session, line.id)
    receipt.ident = line.id
    entry = QueuedCommand(
        line.verb, _command(line), line.actor, line.role, line.time, receipt, line.id, line.about
    )
    entry.taken = line.taken
    entry.tried = line.tried
    entry.spilled = entry.adopted = True
    if line.received:
        entry.received = received = Receipt(line.session)
        if isinstance(line.received, int):
            received.at = line.received
        else:
            received.ident = line.received
    return entry


def _command(line: _Line) -> Command | None:
    if line.body == _NOTHING:
        return None
    event = codec.decode_body(line.kind, line.schema, bytes(line.body))
    fields: dict[str, object] = {"event": event}
    kind = _KINDS[line.command]
    if line.outcome != _NOTHING:
        outcome = codec.decode_body("ActionResolved", line.outcome_schema, bytes(line.outcome))
        fields["outcome"] = outcome
    if kind is SubmitSnapshot:
        fields["base"] = line.base
    if kind is RateProgress:
        fields["of"] = line.of
    return kind(**fields)  # type: ignore[arg-type]  # as ``_line`` wrote them


def _reference(ref: Ref | None) -> int | str | None:
    if ref is None or isinstance(ref, (int, str)):
        return ref
    if isinstance(ref, Receipt):
        return ref.version if ref.settled and ref.version is not None else ref.ident or ref.id or 0
    return ref.version


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode
