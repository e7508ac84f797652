"""The importer for OpenHands: lists of events, event streams, and the output of an evaluation.

Actions of the agent are actions, but for messages, thoughts and its last words; an observation is
the outcome of the action that it names. A conversation is a file, or a directory with a file for each
event. In the output of an evaluation each line is a session, and over; its task text is the human's
request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, final

import msgspec

from ....engine import codec
from ....engine.errors import InvalidInput
from ....engine.events import JSON, ScorerRef, UtilityScored
from ..conversation.cast import Cast
from ..conversation.steps import AGENT, HUMAN, Ending, ModelUse, Step
from ..conversation.transcript import Entry, Transcript, beginning_of, read_transcript
from ..json_files import decode, pieces_of, read_bytes
from ..json_sniff import Shape, shape_of
from ..protocol import Found, Reading, Remark
from ..timestamps import seconds_of
from .actions import ActionReader, tokens_of
from .events import EventReader

__all__ = ("OpenHandsImporter",)

_NAME: Final = "openhands"
_EVENT: Final = re.compile(r"(?:event-)?(\d+)(?:-[\w-]+)?\.json")
_SCORER: Final = ScorerRef(name=_NAME, version="1", config=codec.digest({"value": "resolved"}))


class _Reader(Protocol):
    def steps(self, event: Mapping[str, JSON], data: bytes) -> Iterator[Step]: ...


class _Evaluated(msgspec.Struct):
    history: list[msgspec.Raw]
    instance_id: str = ""
    metadata: Mapping[str, JSON] | None = None
    metrics: Mapping[str, JSON] | None = None
    test_result: Mapping[str, JSON] | None = None
    error: str | None = None


@final
class OpenHandsImporter:
    """Reads events of OpenHands."""

    @property
    def name(self) -> str:
        """``openhands``."""
        return _NAME

    @property
    def about(self) -> str:
        """In a few words."""
        return "events of OpenHands, and the output of its evaluations"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins with an event, or with the result of an evaluation; or a directory
        holds a file for each event.
        """
        if shape is None:
            return source.is_dir() and bool(_event_files(source))
        keys = shape.keys
        if {"kind", "source", "timestamp", "id"} <= keys:
            return True
        if {"source", "id"} <= keys and keys & {"action", "observation"}:
            return True
        inner = shape.inner.get("history", frozenset())
        return "instance_id" in keys and bool(inner & {"action", "observation"})

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the sessions in a file.

        Raises:
            InvalidInput: it cannot be read.
        """
        events: list[tuple[str, bytes]] = []
        if source.is_dir():
            events = [(str(path), read_bytes(path)) for path in _event_files(source)]
        for piece in () if source.is_dir() else pieces_of(source):
            data = bytes(piece.data).strip()
            try:
                result = msgspec.json.decode(data, type=_Evaluated)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                events.append((piece.where, data))
                continue
            yield from _evaluated(result, piece.where, reading)
        if events:
            # Of the first event alone, which stays as it is while the others come.
            made = codec.digest(events[0][1].decode("utf-8", "replace"))[:12]
            yield from _session(f"{source.stem}-{made}", str(source), events, reading)


def _event_files(directory: Path) -> list[Path]:
    """The files of a conversation that has one for each event, in the order of their numbers."""
    inner = directory / "events"
    folder = inner if inner.is_dir() else directory
    found = [(match, path) for path in folder.iterdir() if (match := _EVENT.fullmatch(path.name))]
    files = [path for match, path in sorted(found, key=lambda one: int(one[0][1]))]
    shape = shape_of(files[0]) if files else None
    if shape is None or shape.form != "object" or not {"source", "id"} <= shape.keys:
        return []
    return files if shape.keys & {"kind", "action", "observation"} else []


def _evaluated(result: _Evaluated, where: str, reading: Reading) -> Iterator[Found]:
    flat: list[bytes] = []
    for raw in result.history:
        data = bytes(raw)
        # Of old, an action and what came of it are a pair.
        flat += map(bytes, decode(data, list[msgspec.Raw])) if data[:1] == b"[" else [data]
    events = [(f"{where}, event {n}", data) for n, data in enumerate(flat, start=1)]
    made = codec.digest([data.decode("utf-8", "replace") for _, data in events])[:12]
    name = result.instance_id or _NAME
    yield from _session(f"{name}-{made}", where, events, reading, result)


def _session(
    session: str,
    where: str,
    events: Sequence[tuple[str, bytes]],
    reading: Reading,
    result: _Evaluated | None = None,
) -> Iterator[Found]:
    reader: _Reader | None = None
    entries: list[Entry] = []
    for number, (place, data) in enumerate(events, start=1):
        try:
            event = decode(data, dict[str, JSON])
        except InvalidInput as error:
            yield Remark("problem", f"no event: {error}", place, session)
            continue
        if reader is None:
            reader = EventReader() if "kind" in event else ActionReader()
        time = seconds_of(event.get("timestamp"), reading.zone)
        entries.append(Entry(number, place, time, tuple(reader.steps(event, data))))
    used = [step for entry in entries for step in entry.steps if isinstance(step, ModelUse)]
    if result is not None and not used:
        total = tokens_of((result.metrics or {}).get("accumulated_token_usage"))
        if total is not None:
            use = ModelUse(tokens=total, purpose="act (all calls)")
            entries.append(Entry(len(events) + 1, where, None, (use,)))
    if result is not None:
        over = Ending("failed" if result.error else "ended", detail=(result.error or "")[:200])
        entries.append(Entry(len(events) + 2, where, None, (over,)))
    transcript = Transcript(
        session=session,
        format=_NAME,
        where=where,
        entries=entries,
        cast=Cast((), (HUMAN, AGENT)),
        start=beginning_of(entries),
        instance=result.instance_id or None if result is not None else None,
        models={AGENT: _model(result) or next((use.model for use in used if use.model), None)},
        policies={AGENT: _NAME},
        scores=_scores(result),
    )
    yield from read_transcript(transcript, reading)


def _model(result: _Evaluated | None) -> str | None:
    config = (result.metadata or {}).get("llm_config") if result is not None else None
    model = config.get("model") if isinstance(config, Mapping) else None
    return model if isinstance(model, str) else None


def _scores(result: _Evaluated | None) -> tuple[UtilityScored, ...]:
    """Whether the task was solved, where the evaluation says so."""
    held = (result.test_result or {}) if result is not None else {}
    report = held.get("report", held)
    solved = report.get("resolved") if isinstance(report, Mapping) else None
    if not isinstance(solved, bool):
        return ()
    return (UtilityScored(scorer=_SCORER, value=float(solved)),)
