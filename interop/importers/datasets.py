"""The rows of a data set, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Final, NamedTuple, final

import msgspec

from ...engine import codec
from ...engine.errors import InvalidInput
from ...engine.events import JSON
from .chat import steps_of
from .conversation.builder import Participants
from .conversation.steps import (
    AGENT,
    HUMAN,
    Ending,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from .conversation.transcript import Entry, Transcript, beginning_of, read_transcript
from .json_files import PIECE, decode, pieces_of
from .json_sniff import Shape
from .protocol import Diagnostic, Found, Reading
from .timestamps import seconds_of

__all__ = ("LmsysImporter", "ShareGptImporter")

_MAGIC: Final = b"PAR1"
_BATCH: Final = 64
_EXTRA: Final = 'reading Parquet needs pyarrow: pip install "duolog[analytics]"'


class Row(NamedTuple):
    """A row: its place in words, its number from 1, and its columns."""

    where: str
    number: int
    columns: Mapping[str, JSON]


def is_parquet(path: Path) -> bool:
    """Whether a file is one of Parquet.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error


def columns_of(path: Path) -> frozenset[str]:
    """Names of the columns of a Parquet file; none if there is nothing to read it with."""
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        return frozenset()
    try:
        return frozenset(pyarrow.parquet.read_schema(path).names)
    except (OSError, pyarrow.ArrowException):
        return frozenset()


def rows_of(path: Path) -> Iterator[Row | Diagnostic]:
    """The rows of a file; a diagnostic for one that is not an object.

    Raises:
        InvalidInput: it cannot be read.
        ModuleNotFoundError: it is Parquet, and pyarrow is missing.
    """
    if is_parquet(path):
        yield from _parquet(path)
        return
    for piece in pieces_of(path):
        try:
            columns = decode(piece.data, dict[str, JSON])
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid row: {error}", piece.where)
            continue
        yield Row(piece.where, piece.number, columns)


def _parquet(path: Path) -> Iterator[Row]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise InvalidInput(f"{path}: {_EXTRA}") from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=_BATCH):
                for columns in batch.to_pylist():
                    number += 1
                    yield Row(f"{path}, row {number}", number, _plain(columns))
    except (OSError, pyarrow.ArrowException) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error


def _plain(columns: Mapping[str, object]) -> Mapping[str, JSON]:
    return {name: _json(value) for name, value in columns.items()}


def _json(value: object) -> JSON:
    """A value of a column as JSON has it: times as text."""
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _json(held) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(held) for held in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def _over(row: Row) -> Entry:
    """The end of a conversation: those of a data set are over, and nothing says how."""
    return Entry("end", row.where, None, (Ending(),))


# --- the importer for LMSYS-Chat-1M and WildChat --------------------------------------------------


_NAME: Final = "lmsys"
_IDS: Final = ("conversation_id", "conversation_hash")
_KEPT: Final = ("language", "redacted", "toxic", "turn", "country", "state")


@final
class LmsysImporter:
    """Reads LMSYS-Chat-1M and WildChat."""

    name = _NAME
    about = "rows of LMSYS-Chat-1M and WildChat"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether the first row has a conversation with the id of one of both data sets."""
        if shape is not None:
            keys = shape.keys
            inner = shape.inner.get("conversation", frozenset())
            return bool(keys & set(_IDS)) and {"role", "content"} <= inner
        if source.is_dir() or not is_parquet(source):
            return False
        columns = columns_of(source)
        return "conversation" in columns and bool(columns & set(_IDS))

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads a session for each row.

        Raises:
            InvalidInput: it cannot be read.
        """
        for row in rows_of(source):
            if isinstance(row, Diagnostic):
                yield row
            else:
                yield from _read(row, reading)


def _read(row: Row, reading: Reading) -> Iterator[Found]:
    messages = row.columns.get("conversation")
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        yield Diagnostic("problem", "a row without a conversation", row.where)
        return
    own = next((row.columns[key] for key in _IDS if row.columns.get(key)), None)
    session = str(own) if own else f"{_NAME}-{codec.digest(messages)[:12]}"
    whole = seconds_of(row.columns.get("timestamp"), reading.zone)
    entries: list[Entry] = []
    for number, message in enumerate(messages, start=1):
        where = f"{row.where}, message {number}"
        try:
            steps = _steps(message)
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid message: {error}", where, session)
            continue
        stamp = message.get("timestamp") if isinstance(message, Mapping) else None
        entries.append(Entry(number, where, seconds_of(stamp, reading.zone), steps))
    entries.append(_over(row))
    model = row.columns.get("model")
    kept = {key: row.columns[key] for key in _KEPT if row.columns.get(key) is not None}
    transcript = Transcript(
        session=session,
        format=_NAME,
        where=row.where,
        entries=entries,
        participants=Participants(
            (step for entry in entries for step in entry.steps), (HUMAN, AGENT)
        ),
        start=whole if (first := beginning_of(entries)) is None else first,
        models={AGENT: model if isinstance(model, str) else None},
        config={"metadata": kept} if kept else {},
    )
    yield from read_transcript(transcript, reading)


def _steps(message: JSON) -> tuple[Step, ...]:
    if not isinstance(message, Mapping):
        raise InvalidInput("it is not an object")
    return tuple(steps_of({"role": message.get("role"), "content": message.get("content")}))


# --- the importer for data sets in the form of ShareGPT -------------------------------------------


_SHAREGPT: Final = "sharegpt"
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

    name = _SHAREGPT
    about = "data sets in the form of ShareGPT"

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
            if isinstance(row, Diagnostic):
                yield row
            else:
                yield from _read_sharegpt(row, source.stem, reading)


def _read_sharegpt(row: Row, name: str, reading: Reading) -> Iterator[Found]:
    turns = _turns(row.columns)
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        yield Diagnostic("problem", "a row without conversations", row.where)
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
            entries.append(Entry(number, where, None, tuple(_steps_sharegpt(turn))))
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid turn: {error}", where, session)
    entries.append(_over(row))
    model = row.columns.get("model")
    transcript = Transcript(
        session=session,
        format=_SHAREGPT,
        where=row.where,
        entries=entries,
        participants=Participants(
            (step for entry in entries for step in entry.steps), (HUMAN, AGENT)
        ),
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


def _steps_sharegpt(turn: JSON) -> Iterator[Step]:
    if not isinstance(turn, Mapping):
        raise InvalidInput("it is not an object")
    who, value = turn.get("from", turn.get("role")), turn.get("value", turn.get("content"))
    if not isinstance(who, str) or not isinstance(value, str | None):
        raise InvalidInput("it lacks text in from and value")
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
        raise InvalidInput(f"it is from {who!r}, not one of {', '.join(sorted(_SAID))}")


def _calls(value: str) -> Iterator[ToolCall]:
    """The calls in a turn, written as JSON: the name and arguments of one, or a list of them; the
    text as it is if it is none.
    """
    try:
        PIECE.check_json(value)
        held = msgspec.json.decode(value, type=dict[str, JSON] | list[dict[str, JSON]])
    except (InvalidInput, msgspec.DecodeError, RecursionError):
        yield ToolCall(AGENT, None, "", "function_call", {}, value)
        return
    for one in held if isinstance(held, list) else [held]:
        yield _call(one, value)


def _call(held: Mapping[str, JSON], value: str) -> ToolCall:
    name, arguments = held.get("name"), held.get("arguments", held.get("parameters"))
    if isinstance(arguments, str):
        try:
            PIECE.check_json(arguments)
            arguments = msgspec.json.decode(arguments, type=dict[str, JSON])
        except (InvalidInput, msgspec.DecodeError, RecursionError):
            arguments = None
    tool = name if isinstance(name, str) and name else "function_call"
    if not isinstance(arguments, Mapping):
        return ToolCall(AGENT, None, "", tool, {}, value)
    return ToolCall(AGENT, None, "", tool, arguments)
