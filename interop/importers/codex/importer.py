"""The importer for rollouts of Codex: one file, one session.

What people typed are messages of the human; the environment, instructions and the editor's state
that the program puts in their place are not. A call whose exit code is not 0 failed. A turn that
was aborted ends the agent's turn. A file that a patch adds is a snapshot. Turns that a person took
back are a fork. Of the format of before August 2025 there are items only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON, Origin
from ....engine.records import TRACE
from ..conversation.cast import Cast
from ..conversation.steps import AGENT, HUMAN
from ..conversation.transcript import Entry, Transcript, read_transcript
from ..json_files import Piece, decode, lines_of, size_of
from ..json_sniff import Shape
from ..protocol import Foreign, Found, Reading, Remark
from ..timestamps import seconds_of
from .rollbacks import Branch, branches_in
from .steps import RolloutReader

__all__ = ("CodexImporter",)

_NAME: Final = "codex"
_ITEMS: Final = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "local_shell_call"}
)
_SAID: Final = ("cwd", "cli_version", "originator", "model_provider", "model")


class _About(msgspec.Struct):
    """What is known of a session: its id, the model, when it began, and of the program."""

    session: str
    model: str | None = None
    start: float | None = None
    helper: bool = False
    said: Mapping[str, JSON] = {}


class _Line(msgspec.Struct):
    type: str = ""
    id: str | None = None
    record_type: str | None = None
    timestamp: str | None = None
    payload: dict[str, JSON] | None = None


class _Payload(msgspec.Struct):
    source: JSON = None
    id: str | None = None
    model: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    originator: str | None = None
    model_provider: str | None = None


class _Head(msgspec.Struct):
    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    payload: _Payload | None = None


@final
class CodexImporter:
    """Reads rollouts of Codex."""

    @property
    def name(self) -> str:
        """``codex``."""
        return _NAME

    @property
    def about(self) -> str:
        """In a few words."""
        return "rollouts of Codex"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins like a rollout."""
        if shape is None or shape.form == "array":
            return False
        keys = shape.keys
        return {"timestamp", "type", "payload"} <= keys or (
            {"id", "timestamp", "instructions"} <= keys and "type" not in keys
        )

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the session in a file.

        Raises:
            InvalidInput: it cannot be read, or is a directory.
        """
        if source.is_dir():
            raise InvalidInput(f"{source} is a directory; its files are read one by one")
        upto = size_of(source) if reading.growing else None
        lines = partial(lines_of, source, growing=reading.growing, upto=upto)
        if next(lines(), None) is None:
            yield Remark("difference", "a file without a conversation", str(source))
            return
        about = _survey(source, lines(), reading)
        left = branches_in(lines())
        void = [branch for branch in left if not any(_within(branch, other) for other in left)]
        yield from _session(about, source, reading, lines(), void)
        for number, branch in enumerate(left):
            # What it shares with the main line is what stands before it there.
            before = _session(about, source, reading, lines(), void, until=branch.first - 1)
            shared = sum(isinstance(one, Foreign) and one.stream == TRACE for one in before)
            fork = msgspec.structs.replace(about, session=f"{about.session}-branch-{branch.last}")
            origin = Origin(session=about.session, version=shared)
            yield from _session(
                fork, source, reading, lines(), left[:number], until=branch.last, origin=origin
            )


def _within(branch: Branch, other: Branch) -> bool:
    return branch is not other and other.first <= branch.first and branch.last <= other.last


def _session(
    about: _About,
    source: Path,
    reading: Reading,
    lines: Iterator[Piece],
    void: Sequence[Branch],
    *,
    until: int | None = None,
    origin: Origin | None = None,
) -> Iterator[Found]:
    """A session of the lines up to one, without those that are void."""
    transcript = Transcript(
        session=about.session,
        format=_NAME,
        where=str(source),
        entries=_entries(lines, reading, about, void, until),
        cast=Cast((), (AGENT,) if about.helper else (HUMAN, AGENT)),
        start=about.start,
        models={AGENT: about.model},
        policies={AGENT: _NAME},
        config={_NAME: about.said} if about.said else {},
        forked_from=origin,
    )
    return read_transcript(transcript, reading)


def _survey(source: Path, lines: Iterator[Piece], reading: Reading) -> _About:
    """What is known of a session; lines are looked at only until all of that is found."""
    found = _About(session=source.stem)
    named = False
    for piece in lines:
        try:
            head = decode(piece.data, _Head)
        except InvalidInput:
            continue  # it is remarked on when it is read
        if found.start is None:
            found.start = seconds_of(head.timestamp, reading.zone)
        held = head.payload or _Payload()
        own = head.id if not head.type else held.id
        if (head.type == "session_meta" or (not head.type and piece.number == 1)) and not named:
            named = own is not None
            found.session = own or found.session
            found.helper = isinstance(held.source, Mapping) and "subagent" in held.source
            said = msgspec.structs.asdict(held)
            found.said = {key: said[key] for key in _SAID if said[key]}
        elif head.type == "turn_context":
            found.model = held.model
        if named and found.model is not None and found.start is not None:
            break
    return found


def _entries(
    lines: Iterator[Piece],
    reading: Reading,
    about: _About,
    void: Sequence[Branch],
    until: int | None,
) -> Iterator[Entry | Remark]:
    reader = RolloutReader(helper=about.helper)
    for piece in lines:
        if until is not None and piece.number > until:
            return
        if any(branch.holds(piece.number) for branch in void):
            continue
        try:
            kind, payload, time = _read(piece)
            steps = tuple(reader.steps(kind, payload, _bytes(piece)))
        except InvalidInput as error:
            yield Remark("problem", f"no line of a rollout: {error}", piece.where)
            continue
        yield Entry(piece.number, piece.where, seconds_of(time, reading.zone), steps)


def _read(piece: Piece) -> tuple[str, Mapping[str, JSON], str | None]:
    """The kind of a line, what it holds, and its time; of old, a line is an item itself."""
    line = decode(piece.data, _Line)
    if line.payload is not None:
        return line.type, line.payload, line.timestamp
    if line.type in _ITEMS:
        return "response_item", decode(piece.data, dict[str, JSON]), line.timestamp
    if not line.type and (line.id is not None or line.record_type is not None):
        return "session_meta", {}, line.timestamp
    raise InvalidInput("it has no payload")


def _bytes(piece: Piece) -> bytes:
    return bytes(piece.data).strip()
