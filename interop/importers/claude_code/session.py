"""One session file, read into a session and its forks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, final

from ....engine.errors import InvalidInput
from ....engine.events import JSON, Origin
from ....engine.records import TRACE
from ..conversation.cast import Cast
from ..conversation.steps import AGENT, HUMAN, ModelUse, Step
from ..conversation.transcript import Entry, Transcript, read_transcript
from ..protocol import Foreign, Found, Reading, Remark
from ..timestamps import seconds_of
from .bookkeeping import note_in
from .entries import Envelope, Line, envelopes_in, line_at
from .steps import StepReader
from .tree import EntryTree

__all__ = ("SessionFile",)

_NAME: Final = "claude-code"
_HELPER_LINES: Final = 10_000_000
"""The lines of the n-th subagent's file are numbered from n times this, so that ids are unique."""
_SYNTHETIC: Final = "<synthetic>"
_REPLY: Final = "assistant"
_CONVERSATION: Final = frozenset({"user", _REPLY})


class _Source(NamedTuple):
    """A line to be read, the file that it is in, and whose it is."""

    envelope: Envelope
    path: Path
    helper: str | None = None
    offset: int = 0


@final
class SessionFile:
    """A session file.

    Args:
        path: of the file.
        reading: how times are read.
    """

    def __init__(self, path: Path, reading: Reading) -> None:
        self._path = path
        self._reading = reading

    def read(self) -> Iterator[Found]:
        """The session, and the branches that were left, as its forks.

        Raises:
            InvalidInput: the file cannot be read.
        """
        found = list(envelopes_in(self._path, growing=self._reading.growing))
        yield from (one for one in found if isinstance(one, Remark))
        entries = _once(one for one in found if isinstance(one, Envelope))
        tree = [one for one in entries if one.uuid is not None and not one.sidechain]
        if not tree:
            yield from self._without_main_line(entries)
            return
        lines = EntryTree(tree)
        main = {one.uuid for one in lines.main}
        kept = [one for one in entries if one.uuid in main or one.uuid is None or one.sidechain]
        session = _session_of(tree) or self._path.stem
        yield from self._session(session, kept, None)
        numbers = [one.number for one in kept]
        for branch in lines.branches():
            cut = branch.entries[branch.shared - 1].number if branch.shared else 0
            before = kept[: bisect_right(numbers, cut)]
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
            yield Remark("difference", "a file without a conversation", str(self._path))
            return
        session = _session_of(side) or self._path.stem
        main = self._file_of(session)
        if main is not None:
            what = "a subagent's file, which is read with that of its session"
            yield Remark("difference", what, str(self._path), session)
            return
        yield from self._session(f"{session}-{self._path.stem}", side, None)

    def _session(
        self, session: str, entries: Sequence[Envelope], origin: Origin | None
    ) -> Iterator[Found]:
        sources = list(self._sources(entries))
        helpers = list(dict.fromkeys(one.helper for one in sources if one.helper))
        times = (self._time(one) for one in sources)
        models: dict[str, str | None] = {AGENT: _model_of(sources, None)}
        models.update({name: _model_of(sources, name) for name in helpers})
        agents = [ModelUse(), *(ModelUse(name=name) for name in helpers)]
        with ExitStack() as files:
            transcript = Transcript(
                session=session,
                format=_NAME,
                where=str(self._path),
                entries=self._entries(sources, files),
                cast=Cast(agents, (HUMAN,)),
                start=next((time for time in times if time is not None), None),
                models=models,
                policies={AGENT: _NAME},
                config=self._about(entries),
                forked_from=origin,
            )
            yield from read_transcript(transcript, self._reading)

    def _sources(self, entries: Sequence[Envelope]) -> Iterator[_Source]:
        """The lines to read in order, those of a subagent before the result that it brings."""
        roots: dict[str | None, str] = {}
        brought = 0
        for one in entries:
            if one.sidechain:
                root = (
                    roots.get(one.parent) or one.agent or f"subagent-{len(set(roots.values())) + 1}"
                )
                roots[one.uuid] = root
                yield _Source(one, self._path, root)
                continue
            beside = self._helper_file(one.helper) if one.helper else None
            if beside is not None:
                brought += 1
                for other in envelopes_in(beside):
                    if isinstance(other, Envelope):
                        yield _Source(other, beside, one.helper, brought * _HELPER_LINES)
            yield _Source(one, self._path)

    def _entries(self, sources: Sequence[_Source], files: ExitStack) -> Iterator[Entry | Remark]:
        opened: dict[Path, BinaryIO] = {}
        readers: dict[str | None, StepReader] = {None: StepReader()}
        owed: tuple[StepReader, Entry] | None = None  # whose last reply may go on
        at: Path | None = None
        for source in sources:
            envelope, path, name, offset = source
            if path is not at:  # most lines are in the file of the line before
                at = path
                if path not in opened:
                    opened[path] = files.enter_context(path.open("rb"))
                file, lines = opened[path], f"{path}, line "
            reader = readers.get(name)
            if reader is None:
                reader = readers[name] = StepReader(name, helper=True)
            where = f"{lines}{envelope.number}"
            number = envelope.number + offset
            try:
                line, data = line_at(file, envelope)
                if owed is not None and _ends(owed[0], reader, envelope, line):
                    yield owed[1]._replace(steps=owed[0].rest())
                    owed = None
                steps: Sequence[Step] = reader.steps(envelope, line, data)
            except InvalidInput as error:
                yield Remark("problem", f"no entry: {error}", where)
                continue
            entry = Entry(number, where, self._time(source), steps)
            yield entry
            if reader.owes and line.type == _REPLY:
                owed = reader, entry
        if owed is not None and not self._reading.growing:
            yield owed[1]._replace(steps=owed[0].rest())

    def _time(self, source: _Source) -> float | None:
        return seconds_of(source.envelope.timestamp, self._reading.zone)

    def _about(self, entries: Sequence[Envelope]) -> dict[str, JSON]:
        """What the file says of the program: its version, and where it was run."""
        for one in entries:
            if one.type not in ("user", "assistant"):
                continue
            with self._path.open("rb") as file:
                line, _ = line_at(file, one)
            held = {"version": line.version, "directory": line.cwd, "branch": line.git_branch}
            return {_NAME: {key: value for key, value in held.items() if value}}
        return {}

    def _helper_file(self, agent: str) -> Path | None:
        """The file of a subagent, which lies beside that of the session or in a folder of its own."""
        name = f"agent-{agent}.jsonl"
        if "/" in agent or "\\" in agent:
            return None
        places = (self._path.parent, self._path.parent / self._path.stem / "subagents")
        return next((place / name for place in places if (place / name).is_file()), None)

    def _file_of(self, session: str) -> Path | None:
        """The file of the session that a subagent belongs to, where it lies beside the subagent's."""
        for place in (self._path.parent, self._path.parent.parent.parent):
            named = place / f"{session}.jsonl"
            if "/" not in session and named.is_file():
                return named
        mark = self._path.stem.removeprefix("agent-")
        for other in sorted(self._path.parent.glob("*.jsonl")):
            if other != self._path and any(
                isinstance(one, Envelope) and one.helper == mark for one in envelopes_in(other)
            ):
                return other
        return None


def _ends(before: StepReader, reader: StepReader, envelope: Envelope, line: Line) -> bool:
    """Whether a line says that the reply before it is over, whatever comes later: so its call is
    counted at the same place and time, however far the file is there.
    """
    if reader is before and reader.goes_on(envelope):
        return False
    return line.type in _CONVERSATION or note_in(envelope, line) is None


def _once(entries: Iterable[Envelope]) -> list[Envelope]:
    """The entries, each once: a session that is resumed may have been written again."""
    seen: set[str] = set()
    kept: list[Envelope] = []
    for one in entries:
        if one.uuid is None or one.uuid not in seen:
            kept.append(one)
        if one.uuid is not None:
            seen.add(one.uuid)
    return kept


def _session_of(entries: Sequence[Envelope]) -> str | None:
    return next((one.session for one in reversed(entries) if one.session), None)


def _model_of(sources: Sequence[_Source], helper: str | None) -> str | None:
    models = (one.envelope.model for one in sources if one.helper == helper and one.envelope.model)
    return next((model for model in models if model != _SYNTHETIC), None)
