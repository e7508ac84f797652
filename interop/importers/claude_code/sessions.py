"""One session file, read into a session and its forks."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from glob import escape
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, final

from ....engine.budget import is_inside
from ....engine.errors import InvalidInput
from ....engine.events import JSON, Origin
from ....engine.records import TRACE
from ..conversation.builder import Participants
from ..conversation.steps import AGENT, HUMAN, ModelUse, Step
from ..conversation.transcript import Entry, Transcript, read_transcript
from ..json_files import PIECE, files_in
from ..json_sniff import Shape
from ..protocol import Diagnostic, Foreign, Found, Reading
from ..timestamps import seconds_of
from .entries import Envelope, Line, envelopes_in, line_at, note_in
from .steps import StepReader

__all__ = ("ClaudeCodeImporter", "EntryTree")

_BOUNDARY = "compact_boundary"
_NONE: Final = -1


class Branch(NamedTuple):
    """A path that was left.

    Attributes:
        entries: the whole path from the root, in the order of the file.
        shared: how many of them it shares with the main line, at its beginning.
    """

    entries: Sequence[Envelope]
    shared: int


@final
class EntryTree:
    """The entries of a session as a tree.

    Args:
        entries: each with its own id, in the order of the file; without those of subagents.
    """

    def __init__(self, entries: Sequence[Envelope]) -> None:
        self._entries = entries
        self._main: Sequence[int]
        if _is_one_line(entries):
            self._main = range(len(entries))
            self._parents = array("q")
            return
        self._parents = _parents(entries)
        # By place, the children that may lie off the main line, parts of replies and results: the
        # place of the only one; if there are several, their places by reply (None for results).
        self._only = array("q", [_NONE]) * len(entries)
        self._several: dict[int, dict[str | None, list[int]]] = {}
        for place, entry in enumerate(entries):
            parent = self._parents[place]
            if parent != _NONE and (entry.reply or entry.result):
                self._hang(place, parent)
        self._main = self._line(len(entries) - 1)

    @property
    def main(self) -> list[Envelope]:
        """The path to the last leaf, with all its calls and results, in file order."""
        return [self._entries[place] for place in self._main]

    def branches(self) -> Iterator[Branch]:
        """The branches off the main line, each as a path from the root to its leaf."""
        if len(self._main) == len(self._entries):
            return
        main = set(self._main)
        left = [place for place in range(len(self._entries)) if place not in main]
        inner = {self._parents[place] for place in left}
        for leaf in left:
            if leaf in inner or self._entries[leaf].type not in ("user", "assistant"):
                continue
            path = self._line(leaf)
            shared = next((n for n, place in enumerate(path) if place not in main), len(path))
            yield Branch([self._entries[place] for place in path], shared)

    def _hang(self, place: int, parent: int) -> None:
        only, several = self._only[parent], self._several.get(parent)
        if only == _NONE and several is None:
            self._only[parent] = place
            return
        if several is None:
            self._only[parent] = _NONE
            several = self._several[parent] = {self._entries[only].reply or None: [only]}
        several.setdefault(self._entries[place].reply or None, []).append(place)

    def _line(self, leaf: int) -> list[int]:
        """Places of the entries on the way to a leaf, with their calls and results."""
        kept: set[int] = set()
        at = leaf
        while at != _NONE and at not in kept:
            kept.add(at)
            at = self._parents[at]
        replies: set[str | None] = {self._entries[place].reply for place in kept}
        waiting = list(kept)
        while waiting:
            for place in self._hanging(waiting.pop(), replies):
                if place not in kept:
                    kept.add(place)
                    waiting.append(place)
        return sorted(kept)

    def _hanging(self, place: int, replies: set[str | None]) -> Iterator[int]:
        """Places of an entry's children that belong to one of these replies, and of results."""
        only = self._only[place]
        if only != _NONE:
            reply = self._entries[only].reply
            if not reply or reply in replies:
                yield only
            return
        hanging = self._several.get(place)
        if hanging is None:
            return
        yield from hanging.get(None, ())
        # Goes through the shorter one: a message may have been answered a thousand times.
        few, many = (hanging, replies) if len(hanging) <= len(replies) else (replies, hanging)
        for reply in few:
            if reply is not None and reply in many:
                yield from hanging[reply]


def _is_one_line(entries: Sequence[Envelope]) -> bool:
    """Whether each entry's parent is the one before it, as when nothing ran in parallel."""
    return all(entry.parent == before.uuid for before, entry in pairwise(entries))


def _parents(entries: Sequence[Envelope]) -> array[int]:
    """By place, the place of the entry before it in its line; ``_NONE`` for where a line begins."""
    ids = {entry.uuid for entry in entries}
    flat = all(entry.parent is None for entry in entries)
    places: dict[str | None, int] = {}
    parents = array("q")
    before = _NONE
    for place, entry in enumerate(entries):
        if entry.parent in places:
            parent = places[entry.parent]
        elif entry.logical_parent in places:
            parent = places[entry.logical_parent]
        elif flat or entry.subtype == _BOUNDARY or (entry.parent and entry.parent not in ids):
            parent = before  # its parent is not in the file: use the order of the file
        else:
            parent = _NONE
        places[entry.uuid] = before = place
        parents.append(parent)
    return parents


_AGAIN: Final = 20
"""How many times as many lines as a file has may be read again for branches: each repeats its beginning, so
that a file of many branches becomes quadratically larger."""

_LEAST: Final = 20_000  # lines that are read again in any case

# --- one session file, read into a session and its forks ------------------------------------------


_NAME: Final = "claude-code"
_HELPER_LINES: Final = 10_000_000
"""The lines of the n-th subagent's file are numbered from n times this, so that ids are unique."""
_SYNTHETIC: Final = "<synthetic>"
_REPLY: Final = "assistant"
_CONVERSATION: Final = frozenset({"user", _REPLY})


class _Part(NamedTuple):
    """Consecutive lines of one file, and the actor they belong to.

    Attributes:
        path: the path of the file.
        helper: the subagent that they belong to; None for the main agent.
        offset: added to the numbers of the lines.
        lines: to be read.
        problems: the places of invalid lines.
    """

    path: Path
    helper: str | None
    offset: int
    lines: list[Envelope]
    problems: Sequence[Diagnostic] = ()


@final
class SessionFile:
    """A session file.

    Args:
        path: the path of the file.
        reading: how times are read.
    """

    def __init__(self, path: Path, reading: Reading) -> None:
        self._path = path
        self._reading = reading
        self._version = 0  # of the last event that was read of the session that is being read

    def read(self) -> Iterator[Found]:
        """The session, and the branches that were left, as its forks.

        Raises:
            InvalidInput: the file cannot be read.
        """
        problems: list[Diagnostic] = []
        entries = _once(envelopes_in(self._path, growing=self._reading.growing), problems)
        yield from problems
        tree = [one for one in entries if one.uuid is not None and not one.sidechain]
        if not tree:
            yield from self._without_main_line(entries)
            return
        lines = EntryTree(tree)
        kept: Sequence[Envelope] = entries
        if len(lines.main) < len(tree):
            main = {one.uuid for one in lines.main}
            kept = [one for one in entries if one.uuid in main or one.uuid is None or one.sidechain]
        session = _session_of(tree) or self._path.stem
        yield from self._session(session, kept, None)
        left = max(_LEAST, _AGAIN * len(tree))
        for branch in lines.branches():
            left -= len(branch.entries)
            if left < 0:
                what = "further branches, each of which would repeat too much of the session"
                yield Diagnostic("difference", what, str(self._path), session)
                return
            cut = branch.entries[branch.shared - 1].number if branch.shared else 0
            before = kept[: bisect_right(kept, cut, key=attrgetter("number"))]
            events = self._session(session, before, None)
            shared = sum(isinstance(one, Foreign) and one.stream == TRACE for one in events)
            leaf = str(branch.entries[-1].uuid)[:8]
            own = [*before, *branch.entries[branch.shared :]]
            yield from self._session(
                f"{session}-branch-{leaf}", own, Origin(session=session, version=shared)
            )

    def _without_main_line(self, entries: Sequence[Envelope]) -> Iterator[Found]:
        """A subagent's own file, or one in which nothing was said."""
        side = [one for one in entries if one.sidechain]
        if not side:
            yield Diagnostic("difference", "a file without a conversation", str(self._path))
            return
        session = _session_of(side) or self._path.stem
        main = self._file_of(session)
        if main is not None:
            what = "a subagent's file, which is read with that of its session"
            yield Diagnostic("difference", what, str(self._path), session)
            return
        yield from self._session(f"{session}-{self._path.stem}", side, None)

    def _session(
        self, session: str, entries: Sequence[Envelope], origin: Origin | None
    ) -> Iterator[Found]:
        parts = self._parts(entries)
        helpers = list(dict.fromkeys(part.helper for part in parts if part.helper))
        models: dict[str, str | None] = {AGENT: _model_of(parts, None)}
        models.update({name: _model_of(parts, name) for name in helpers})
        agents = [ModelUse(), *(ModelUse(name=name) for name in helpers)]
        with ExitStack() as files:
            transcript = Transcript(
                session=session,
                format=_NAME,
                where=str(self._path),
                entries=self._entries(session, parts, files),
                participants=Participants(agents, (HUMAN,)),
                start=self._start(parts),
                models=models,
                policies={AGENT: _NAME},
                config=_about(parts),
                forked_from=origin,
            )
            self._version = 0
            for one in read_transcript(transcript, self._reading):
                self._version += isinstance(one, Foreign)
                yield one

    def _parts(self, entries: Sequence[Envelope]) -> list[_Part]:
        """The lines to read in order, those of a subagent before the result that it brings."""
        parts: list[_Part] = []
        roots: dict[str | None, str] = {}
        brought = 0
        for one in entries:
            whose: str | None = None
            if one.sidechain:
                whose = (
                    roots.get(one.parent) or one.agent or f"subagent-{len(set(roots.values())) + 1}"
                )
                roots[one.uuid] = whose
            elif one.helper and (helper_file := self._helper_file(one.helper)) is not None:
                brought += 1
                found = list(envelopes_in(helper_file, growing=self._reading.growing))
                lines = [other for other in found if isinstance(other, Envelope)]
                wrong = [other for other in found if isinstance(other, Diagnostic)]
                parts.append(_Part(helper_file, one.helper, brought * _HELPER_LINES, lines, wrong))
            if not parts or parts[-1].path is not self._path or parts[-1].helper != whose:
                parts.append(_Part(self._path, whose, 0, []))
            parts[-1].lines.append(one)
        return parts

    def _entries(
        self, session: str, parts: Sequence[_Part], files: ExitStack
    ) -> Iterator[Entry | Diagnostic]:
        counted = self._reading.counted.get(session, {})
        opened: dict[Path, BinaryIO] = {}
        readers: dict[str | None, StepReader] = {None: StepReader()}
        owed: tuple[StepReader, Entry] | None = None  # whose last reply may continue
        for path, name, offset, lines, problems in parts:
            yield from problems
            if path not in opened:
                opened[path] = files.enter_context(path.open("rb"))
            file, reader = opened[path], readers.get(name)
            if reader is None:
                reader = readers[name] = StepReader(name, helper=True)
            for envelope in lines:
                where = f"{path}, line {envelope.number}"
                try:
                    line, data = line_at(file, envelope)
                    if owed is not None and _ends(owed[0], reader, envelope, line):
                        yield owed[1]._replace(steps=owed[0].rest())
                        owed = None
                    steps: Sequence[Step] = reader.steps(envelope, line, data)
                except InvalidInput as error:
                    yield Diagnostic("problem", f"invalid entry: {error}", where)
                    continue
                entry = Entry(envelope.number + offset, where, self._time(line), steps)
                yield entry
                if not (reader.owes and line.type == _REPLY):
                    continue
                owed = reader, entry
                due = reader.due if counted else None
                if due is not None and due.tokens == counted.get(self._version + 1):
                    # The file ended here in an earlier import: later tokens are counted separately.
                    yield entry._replace(steps=reader.rest())
                    owed = None
        if owed is not None and not self._reading.growing:
            yield owed[1]._replace(steps=owed[0].rest())

    def _start(self, parts: Sequence[_Part]) -> float | None:
        times = (self._time(line) for line in _readable(parts))
        return next((time for time in times if time is not None), None)

    def _time(self, line: Line) -> float | None:
        return seconds_of(line.timestamp, self._reading.zone)

    def _helper_file(self, agent: str) -> Path | None:
        """The file of a subagent, in the session's folder or in a ``subagents`` folder below it."""
        name = f"agent-{agent}.jsonl"
        if "/" in agent or "\\" in agent:
            return None
        places = (self._path.parent, self._path.parent / self._path.stem / "subagents")
        found = (
            path for place in places for path in files_in(place, escape(name), within=places[0])
        )
        return next(found, None)

    def _file_of(self, session: str) -> Path | None:
        """The file of a subagent's session, in the same folder or above ``subagents``."""
        for place in (self._path.parent, self._path.parent.parent.parent):
            named = place / f"{session}.jsonl"
            if "/" not in session and named.is_file() and is_inside(named, place):
                return named
        mark = self._path.stem.removeprefix("agent-")
        for other in files_in(self._path.parent, "*.jsonl"):
            if other == self._path or not _mentions(other, mark):
                continue
            if any(isinstance(one, Envelope) and one.helper == mark for one in envelopes_in(other)):
                return other
        return None


def _mentions(path: Path, name: str) -> bool:
    """Whether a file contains a name, which is far quicker to find than to read its lines."""
    with path.open("rb") as file:
        return any(name.encode() in line for line in PIECE.lines(file))


def _ends(before: StepReader, reader: StepReader, envelope: Envelope, line: Line) -> bool:
    """Whether a line says that the reply before it is over, whatever comes later: so its call is
    counted at the same place and time, however far the file is there.
    """
    if reader is before and reader.goes_on(envelope):
        return False
    return line.type in _CONVERSATION or note_in(envelope, line) is None


def _once(found: Iterable[Envelope | Diagnostic], problems: list[Diagnostic]) -> list[Envelope]:
    """The entries, each once: a resumed session may have been written again. Collects problems."""
    seen: set[str] = set()
    kept: list[Envelope] = []
    for one in found:
        if isinstance(one, Diagnostic):
            problems.append(one)
        elif one.uuid is None or one.uuid not in seen:
            kept.append(one)
            if one.uuid is not None:
                seen.add(one.uuid)
    return kept


def _session_of(entries: Sequence[Envelope]) -> str | None:
    return next((one.session for one in reversed(entries) if one.session), None)


def _model_of(parts: Sequence[_Part], helper: str | None) -> str | None:
    own = (one.model for part in parts if part.helper == helper for one in part.lines)
    return next((model for model in own if model and model != _SYNTHETIC), None)


def _readable(parts: Sequence[_Part]) -> Iterator[Line]:
    """The contents of the lines, in order; unreadable lines are reported when their turn comes."""
    for part in parts:
        with part.path.open("rb") as file:
            for one in part.lines:
                try:
                    yield line_at(file, one)[0]
                except InvalidInput:
                    continue


def _about(parts: Sequence[_Part]) -> dict[str, JSON]:
    """The facts in the file about the program: its version and working directory."""
    own = [part for part in parts if part.offset == 0]
    for line in _readable(own):
        if line.type in _CONVERSATION:
            held = {"version": line.version, "directory": line.cwd, "branch": line.git_branch}
            return {_NAME: {key: value for key, value in held.items() if value}}
    return {}


# --- the importer for session files of Claude Code ------------------------------------------------


@final
class ClaudeCodeImporter:
    """Reads session files of Claude Code."""

    name = _NAME
    about = "session files of Claude Code"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins like a session file."""
        if shape is None or shape.form == "array" or "type" not in shape.keys:
            return False
        keys = shape.keys
        if {"parentUuid", "sessionId"} <= keys or {"summary", "leafUuid"} <= keys:
            return True
        return {"messageId", "isSnapshotUpdate"} <= keys or {"operation", "sessionId"} <= keys

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the session in a file, and its forks.

        Raises:
            InvalidInput: it cannot be read, or is a directory.
        """
        if source.is_dir():
            raise InvalidInput(f"{source} is a directory; its files are read one by one")
        yield from SessionFile(source, reading).read()
