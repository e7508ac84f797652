"""The importer for data sets in the form of ShareGPT: ``conversations`` of ``from`` and ``value``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, final

import msgspec

from ....engine import codec
from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..conversation.cast import Cast
from ..conversation.steps import AGENT, HUMAN, Reasoning, Step, ToolCall, ToolResult, Utterance
from ..conversation.transcript import Entry, Transcript, read_transcript
from ..json_sniff import Shape
from ..protocol import Found, Reading, Remark
from .rows import Row, columns_of, is_parquet, rows_of

__all__ = ("ShareGptImporter",)

_NAME: Final = "sharegpt"
_SAID: Final[Mapping[str, str]] = {
    "human": HUMAN,
    "user": HUMAN,
    "prompter": HUMAN,
    "gpt": AGENT,
    "assistant": AGENT,
    "chatgpt": AGENT,
    "bard": AGENT,
    "bing": AGENT,
    "model": AGENT,
    "ai": AGENT,
    "system": "system",
}
_CALLS: Final = frozenset({"function_call", "tool_call"})
_RESULTS: Final = frozenset(
    {"observation", "tool", "tool_response", "function_response", "function"}
)


@final
class ShareGptImporter:
    """Reads data sets in the form of ShareGPT."""

    @property
    def name(self) -> str:
        """``sharegpt``."""
        return _NAME

    @property
    def about(self) -> str:
        """In a few words."""
        return "data sets in the form of ShareGPT"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether the first row has conversations of ``from`` and ``value``."""
        if shape is not None:
            whole = shape.inner.get("conversations", frozenset())
            if {"from", "value"} <= whole or {"role", "content"} <= whole:
                return True
            return {"from", "value"} <= shape.inner.get("conversation", frozenset())
        if source.is_dir() or not is_parquet(source):
            return False
        return "conversations" in columns_of(source)

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads a session for each row.

        Raises:
            InvalidInput: it cannot be read.
        """
        for row in rows_of(source):
            if isinstance(row, Remark):
                yield row
            else:
                yield from _read(row, source.stem, reading)


def _read(row: Row, name: str, reading: Reading) -> Iterator[Found]:
    turns = _turns(row.columns)
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        yield Remark("problem", "a row without conversations", row.where)
        return
    own = row.columns.get("id")
    said = isinstance(own, (str, int)) and str(own).strip()
    session = str(own) if said else f"{name}-{row.number}-{codec.digest(turns)[:12]}"
    entries: list[Entry] = []
    system = row.columns.get("system")
    if isinstance(system, str) and system:
        steps: tuple[Step, ...] = (Utterance("system", None, system),)
        entries.append(Entry(0, row.where, None, steps))
    for number, turn in enumerate(turns, start=1):
        where = f"{row.where}, turn {number}"
        try:
            entries.append(Entry(number, where, None, tuple(_steps(turn))))
        except InvalidInput as error:
            yield Remark("problem", f"no turn: {error}", where, session)
    model = row.columns.get("model")
    transcript = Transcript(
        session=session,
        format=_NAME,
        where=row.where,
        entries=entries,
        cast=Cast((step for entry in entries for step in entry.steps), (HUMAN, AGENT)),
        models={AGENT: model if isinstance(model, str) else None},
    )
    yield from read_transcript(transcript, reading)


def _turns(columns: Mapping[str, JSON]) -> JSON:
    """The turns in a row; under the name that other data sets have as well, those of this form only."""
    if "conversations" in columns:
        return columns["conversations"]
    turns = columns.get("conversation")
    first = turns[0] if isinstance(turns, Sequence) and turns else None
    return turns if isinstance(first, Mapping) and "from" in first else None


def _steps(turn: JSON) -> Iterator[Step]:
    if not isinstance(turn, Mapping):
        raise InvalidInput("it is no object")
    who, value = turn.get("from", turn.get("role")), turn.get("value", turn.get("content"))
    if not isinstance(who, str) or not isinstance(value, str | None):
        raise InvalidInput("it has no text in from and value")
    side = who.strip().lower()
    if side in _SAID:
        if value is not None:
            yield Utterance(_SAID[side], None, value)
    elif side in _CALLS:
        yield from _calls(value or "")
    elif side in _RESULTS:
        yield ToolResult("", value or "")
    elif side == "thought":
        yield Reasoning(value or "")
    else:
        raise InvalidInput(f"it is from {who!r}, and none of {', '.join(sorted(_SAID))}")


def _calls(value: str) -> Iterator[ToolCall]:
    """The calls in a turn, written as JSON: the name and arguments of one, or a list of them; the
    text as it is where it is none.
    """
    try:
        held = msgspec.json.decode(value, type=dict[str, JSON] | list[dict[str, JSON]])
    except (msgspec.DecodeError, RecursionError):
        yield ToolCall(AGENT, None, "", "function_call", {}, value)
        return
    for one in held if isinstance(held, list) else [held]:
        yield _call(one, value)


def _call(held: Mapping[str, JSON], value: str) -> ToolCall:
    name, arguments = held.get("name"), held.get("arguments", held.get("parameters"))
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments, type=dict[str, JSON])
        except (msgspec.DecodeError, RecursionError):
            arguments = None
    tool = name if isinstance(name, str) and name else "function_call"
    if not isinstance(arguments, Mapping):
        return ToolCall(AGENT, None, "", tool, {}, value)
    return ToolCall(AGENT, None, "", tool, arguments)
