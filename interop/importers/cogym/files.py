"""The files of Collaborative Gym: result directories, event logs, and the files near them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON, Role
from ..json_files import Piece, decode, files_in, lines_of, load, read_bytes
from ..json_sniff import Shape, shape_of
from ..protocol import Diagnostic
from ..timestamps import seconds_of

__all__ = (
    "LOG_NAMES",
    "ChatLine",
    "Differences",
    "Row",
    "Run",
    "Survey",
    "is_log",
    "loose_logs",
    "results_of",
    "row_of",
    "rows_of",
    "runs_at",
    "survey",
)

LOG_NAMES: Final = ("event_log.jsonl", "event_log.json")
"""File names of event logs; the second, an array, is an older form."""

_KEYS: Final = frozenset({"role", "action", "action_type"})
_ARCHIVED: Final = ("_old", ".del")
_NUMBERED: Final = re.compile(r"env_(.+)_(\d+)")


class ChatLine(msgspec.Struct):
    """A message in the chat, which each record holds from the beginning."""

    role: str
    message: str = ""
    timestamp: str | float | None = None


class Row(msgspec.Struct):
    """A record of an event log: an act, how it came out, and the state after it."""

    role: str
    action: str
    action_status: str = "succeeded"
    action_type: str = ""
    timestamp: str | float | None = None
    current_chat_history: msgspec.Raw = msgspec.Raw(b"null")
    current_observation: msgspec.Raw = msgspec.Raw(b"null")


class Run(NamedTuple):
    """One session's files.

    Attributes:
        log: its event log.
        name: the name of the session, as far as the files name it.
        group: name of the experiment, which is the directory above, or the one above that if
            the one above is called ``results``; empty for a file on its own.
        directory: where the rest of its results are; None for a file on its own.
    """

    log: Path
    name: str
    group: str
    directory: Path | None

    @property
    def numbered(self) -> tuple[str, str] | None:
        """Task and instance, if the name holds them: ``env_travel_planning_21``."""
        found = _NUMBERED.fullmatch(self.name) if self.directory else None
        return (found.group(1), found.group(2)) if found else None


def is_log(shape: Shape | None) -> bool:
    """Whether a file begins with a record of an event log."""
    return shape is not None and shape.keys >= _KEYS


def loose_logs(directory: Path) -> list[Path]:
    """Event logs right in a directory, under any names."""
    return [path for path in files_in(directory, "*.jsonl") if is_log(shape_of(path))]


def runs_at(source: Path) -> Iterator[Run | Diagnostic]:
    """The sessions below a directory, or the one that a file is the log of.

    A directory without results may hold event logs on their own, under any names.

    Raises:
        InvalidInput: there is none.
    """
    if not source.is_dir():
        yield _run(source)
        return
    found = sorted(path for name in LOG_NAMES for path in files_in(source, f"**/{name}"))
    if not found:
        loose = loose_logs(source)
        if not loose:
            raise InvalidInput(
                f"{source} is not a result of Collaborative Gym: no {LOG_NAMES[0]} lies below it"
            )
        yield from map(_run, loose)
    whole = {path.parent for path in found if path.name == LOG_NAMES[0]}
    for path in found:
        if path.name != LOG_NAMES[0] and path.parent in whole:
            continue
        if path.parent != source and any(mark in path.parent.name for mark in _ARCHIVED):
            what = "set aside by a later run, and left out; import it by its own name"
            yield Diagnostic("difference", what, str(path.parent))
            continue
        yield _run(path)


def _run(path: Path) -> Run:
    if path.name in LOG_NAMES:
        directory = path.resolve().parent
        above = directory.parent
        group = above.parent.name if above.name == "results" else above.name
        return Run(path, directory.name, group, directory)
    return Run(path, path.stem, "", None)


def rows_of(path: Path) -> Iterator[Piece]:
    """The records of an event log, not looked at yet.

    Raises:
        InvalidInput: it cannot be read.
    """
    if path.suffix != ".json":
        yield from lines_of(path)
        return
    for number, raw in enumerate(load(read_bytes(path), list[msgspec.Raw], str(path)), start=1):
        yield Piece(f"{path}, record {number}", number, raw)


def row_of(piece: Piece) -> Row | Diagnostic:
    """A record; a diagnostic if it is not one."""
    try:
        return decode(piece.data, Row)
    except InvalidInput as error:
        return Diagnostic("problem", f"invalid record of Collaborative Gym: {error}", piece.where)


class _Glance(msgspec.Struct):
    role: str
    timestamp: str | float | None = None


class _Members(msgspec.Struct):
    private: Mapping[str, msgspec.Raw] = {}


class _Start(msgspec.Struct):
    current_observation: _Members | None = None


@final
class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The facts needed about a log before its first record is turned into events.

    Attributes:
        session: id of the session. It is made from the names of the directory and the one above,
            and from the log's first record; from the whole log if that has no time.
        members: who takes part, by role as the log has it, in order of their appearance.
        complete: whether the log itself lists them, so that members missing there took no part.
    """

    session: str
    members: tuple[str, ...]
    complete: bool


def survey(run: Run) -> Survey:
    """Looks through a log once.

    Raises:
        InvalidInput: it cannot be read.
    """
    whole = hashlib.sha256()
    first: bytes | None = None
    timed = False
    roles: dict[str, None] = {}
    listed: tuple[str, ...] = ()
    for piece in rows_of(run.log):
        data = bytes(piece.data).strip()
        whole.update(data)
        try:
            glance = decode(piece.data, _Glance)
        except InvalidInput:
            continue
        if glance.role != "environment":
            roles.setdefault(glance.role)
        if first is None:
            first = data
            timed = seconds_of(glance.timestamp, None) is not None
            listed = _members(data)
    named = hashlib.sha256(f"{run.group}/{run.name}\n".encode())
    named.update(first if timed and first is not None else whole.digest())
    return Survey(
        session=f"{run.name}-{named.hexdigest()[:12]}",
        members=tuple(dict.fromkeys([*listed, *roles])),
        complete=bool(listed),
    )


def _members(data: bytes) -> tuple[str, ...]:
    """The team, which the first record's private observations are listed by."""
    try:
        start = decode(data, _Start)
    except InvalidInput:
        return ()
    return tuple(start.current_observation.private) if start.current_observation else ()


def results_of(path: Path) -> Mapping[str, JSON] | None:
    """An object in a file of results; None if the file is missing.

    Raises:
        InvalidInput: it holds something else.
    """
    return load(read_bytes(path), dict[str, JSON], str(path)) if path.exists() else None


# --- where the published analysis of Collaborative Gym's logs counts otherwise than Duolog, on purp


_EDIT: Final = "EDITOR_UPDATE"
_TYPED: Final = re.compile(r"EDITOR_UPDATE\(text=(.*)\)", re.DOTALL)

FAILED: Final = "the published analysis takes an edit that failed for an update"
MENTIONED: Final = "the published analysis takes the mention of an edit for an update"
LAST: Final = (
    "the published analysis reads an update's text out of the round's last mention of an edit, "
    "though that edit failed, or is none; here it is that of the last edit that succeeded"
)
TYPED: Final = (
    "the published analysis has an update's text as it was typed, or none where it cannot read it; "
    "here it is as the editor shows it, without quotes around it and signs for line ends"
)
UNREAD: Final = "the published analysis takes an edit for an update whose text nobody can tell"
OWN: Final = (
    "the published analysis lists the human's own last turn among the acts that followed it"
)
NONE: Final = "the published analysis finds no rounds, since the human took no turn; here it is one"


@final
class Differences:
    """Follows a log as the published analysis does, and as Duolog does.

    Args:
        session: id of the session.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._turns = 0
        self._own = ""
        self._found: list[Diagnostic] = []
        self._begin()

    def _begin(self) -> None:
        """A stretch between turns of the human begins."""
        self._last: str | None = None
        self._edits = False
        self._ours: str | None = None
        self._why = MENTIONED

    def take(self, row: Row, role: Role, edited: str | None) -> None:
        """Takes the next record after the first.

        Args:
            row: the record.
            role: whose act it is.
            edited: the output after it, if it is an edit that succeeded.
        """
        action = row.action
        if role == "human" and "collaborative" in row.action_type:
            self._compare()
            self._turns += 1
            self._begin()
            self._own = action
        elif _EDIT in action:
            self._last = action
            self._edits = edited is not None
            if edited is not None:
                self._ours = edited
            elif action.lstrip().startswith(_EDIT):
                ok = row.action_status.startswith("succeeded")
                self._why = UNREAD if ok else FAILED

    def diagnostics(self) -> Iterator[Diagnostic]:
        """What differs, once the log is at its end."""
        if not self._turns:
            yield self._diagnostic(NONE)
            return
        if self._last is None and _EDIT in self._own:
            self._last = self._own
        self._compare()
        yield from self._found
        yield self._diagnostic(OWN)

    def _compare(self) -> None:
        """Compares the counts of a stretch."""
        if self._last is None:
            return
        if self._ours is None:
            self._found.append(self._diagnostic(self._why))
        elif not self._edits:
            self._found.append(self._diagnostic(LAST))
        else:
            typed = _TYPED.fullmatch(self._last)
            if typed is None or typed.group(1) != self._ours:
                self._found.append(self._diagnostic(TYPED))

    def _diagnostic(self, what: str) -> Diagnostic:
        return Diagnostic("difference", what, f"round {self._turns + 1}", self._session)
