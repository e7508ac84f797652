"""The importer for traces of Langfuse: traces with their observations, or a list of observations.

The traces of one session are one conversation. Feedback of users comes in as feedback. Other scores
are kept with the session, and are no utility: what they measure is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON, Tokens
from ..conversation.numbers import count_of
from ..conversation.steps import Feedback, Step
from ..conversation.transcript import Entry, Transcript, read_transcript
from ..documents import is_answer, listed_in, listed_keys
from ..json_files import AT_ONCE, Piece, decode, pieces_of, size_of
from ..json_sniff import Shape, shape_of
from ..json_stream import Member, read_at
from ..protocol import Found, Reading, Remark
from ..timestamps import seconds_of
from .ai_sdk import TOOL_CALL
from .conversations import transcripts_of
from .spans import Span, SpanKind, value_of
from .stored import SpanPiece, read_stored

__all__ = ("LangfuseImporter",)

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_KINDS: Final[Mapping[str, SpanKind]] = {"GENERATION": "model", "TOOL": "tool", "AGENT": "agent"}
_TURN: Final = re.compile(r"(?:invoke_agent|agent_run)\s+\[?([^\]]+)\]?")
"""What frameworks call the span of an agent's turn, with the agent's name behind it."""


class Score(msgspec.Struct, rename="camel"):
    """A score of a trace."""

    name: str
    value: JSON = None
    comment: str | None = None
    source: str | None = None


class Trace(msgspec.Struct, rename="camel"):
    """A trace; its observations stand in it, or beside it."""

    id: str
    name: str | None = None
    session_id: str | None = None
    input: JSON = None
    scores: list[Score | str] | None = None
    observations: list[msgspec.Raw] = []


class _Observation(msgspec.Struct, rename="camel"):
    id: str
    type: str
    start_time: str
    trace_id: str | None = None
    session_id: str | None = None
    name: str | None = None
    end_time: str | None = None
    parent_observation_id: str | None = None
    model: str | None = None
    level: str | None = None
    status_message: str | None = None
    input: JSON = None
    output: JSON = None
    usage_details: Mapping[str, JSON] | None = None
    usage: Mapping[str, JSON] | None = None
    input_usage: int | None = None
    output_usage: int | None = None
    metadata: JSON = None


def span_of_observation(
    data: bytes | msgspec.Raw, traces: Mapping[str, Trace], where: str, reading: Reading
) -> Span:
    """An observation as a span.

    Args:
        data: its JSON.
        traces: that are known, by id.
        where: its place.
        reading: how times are read.

    Raises:
        InvalidInput: it is none.
    """
    one = decode(data, _Observation)
    start = seconds_of(one.start_time, reading.zone)
    if start is None:
        raise InvalidInput(f"its startTime {one.start_time!r} is no time")
    trace = traces.get(one.trace_id or "") or next(iter(traces.values()), None)
    of = one.trace_id or (trace.id if trace is not None else one.id)
    attributes = _attributes(one.metadata)
    kind = _KINDS.get(one.type, "other")
    if kind == "other" and (
        attributes.get("gen_ai.operation.name") == "execute_tool" or one.name == TOOL_CALL
    ):
        kind = "tool"
    output = value_of(one.output)
    why = one.status_message or (output if isinstance(output, str) and output else "it failed")
    return Span(
        id=one.id,
        trace=of,
        where=where,
        name=one.name or one.type,
        kind=kind,
        start=start,
        parent=one.parent_observation_id,
        end=seconds_of(one.end_time, reading.zone),
        conversation=one.session_id or (trace.session_id if trace is not None else None),
        input=one.input,
        output=one.output,
        tool=_text(attributes, "gen_ai.tool.name") or _text(attributes, "ai.toolCall.name"),
        call=_text(attributes, "gen_ai.tool.call.id") or _text(attributes, "ai.toolCall.id"),
        agent=_agent(one, attributes) if kind == "agent" else None,
        model=one.model,
        tokens=_tokens(one) if kind == "model" else None,
        error=why if one.level == "ERROR" else None,
    )


def _attributes(metadata: JSON) -> Mapping[str, JSON]:
    """The attributes of the span that an observation was made from, where it was."""
    held = value_of(metadata)
    found = held.get("attributes") if isinstance(held, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _agent(one: _Observation, attributes: Mapping[str, JSON]) -> str | None:
    """The name of an agent; None where it is that of a run, of which each has another."""
    said = _text(attributes, "gen_ai.agent.name")
    found = _TURN.fullmatch(one.name or "")
    name = said or (found[1] if found is not None else one.name)
    if name is None or _UUID.search(name):
        return None
    outermost = one.parent_observation_id is None
    return None if outermost and said is None and found is None else name


def _tokens(one: _Observation) -> Tokens | None:
    names = {
        "prompt": ("input", "prompt", "promptTokens"),
        "completion": ("output", "completion", "completionTokens"),
        "cached": ("input_cache_read", "prompt_details.cache_read", "input_cached_tokens"),
        "reasoning": ("output_reasoning", "completion_details.reasoning"),
    }
    counts: dict[str, int] = {}
    for held in (one.usage_details or {}, one.usage or {}):
        for field, keys in names.items():
            for key in keys:
                value = count_of(held.get(key))
                if value is not None:
                    counts.setdefault(field, value)
    if not counts and (one.input_usage or one.output_usage):
        return Tokens(prompt=count_of(one.input_usage), completion=count_of(one.output_usage))
    return Tokens(**counts) if counts else None


def _text(attributes: Mapping[str, JSON], key: str) -> str | None:
    value = attributes.get(key)
    return value if isinstance(value, str) and value else None


# --- the importer for traces of Langfuse ----------------------------------------------------------


_NAME: Final = "langfuse"
_FEEDBACK: Final = frozenset({"user-feedback", "user_feedback", "feedback", "thumbs"})
_OBSERVATION: Final = frozenset({"traceId", "startTime", "type"})
_TRACE: Final = frozenset({"id", "timestamp", "observations"})


class _Export(msgspec.Struct):
    observations: list[msgspec.Raw]
    trace: Trace | None = None
    traces: list[Trace] = []
    id: str | None = None


class _Session(msgspec.Struct, rename="camel"):
    id: str | None = None
    session_id: str | None = None


class _Key(msgspec.Struct, rename="camel"):
    trace: _Session | None = None
    session_id: str | None = None


@final
class LangfuseImporter:
    """Reads traces of Langfuse."""

    @property
    def name(self) -> str:
        """``langfuse``."""
        return _NAME

    @property
    def about(self) -> str:
        """In a few words."""
        return "traces of Langfuse with their observations"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins with a trace and its observations, or with an observation."""
        if shape is None:
            return False
        keys = listed_keys(shape)
        beside = "observations" in keys and bool({"trace", "traces"} & keys)
        return beside or keys >= _TRACE or keys >= _OBSERVATION

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the conversations in a file.

        Raises:
            InvalidInput: it cannot be read.
        """
        shape = shape_of(source)
        if shape is not None and listed_keys(shape) >= _OBSERVATION:
            yield from _flat(source, reading)
            return
        for pieces in _by_session(source):
            exports: list[tuple[_Export, Piece]] = []
            for piece in pieces:
                try:
                    exports.append((_export(piece), piece))
                except InvalidInput as error:
                    yield Remark("problem", f"no trace: {error}", piece.where)
            if exports:
                yield from _read(exports, reading)


def _flat(source: Path, reading: Reading) -> Iterator[Found]:
    """The conversations in a list of observations."""

    def read(data: bytes | msgspec.Raw, where: str) -> Iterator[Span | Remark]:
        try:
            yield span_of_observation(data, {}, where, reading)
        except InvalidInput as error:
            yield Remark("problem", f"no observation: {error}", where)

    pieces = (
        SpanPiece(f"{source}, observation {number}", member, data)
        for number, (member, data) in enumerate(listed_in(source, shape_of(source)), start=1)
    )
    yield from read_stored(source, pieces, read, _NAME, reading)


def _by_session(source: Path) -> Iterator[list[Piece]]:
    """The traces in a file, those of a session together, in the order in which sessions begin."""
    shape = shape_of(source)
    if shape is None or (shape.form == "object" and not is_answer(shape)):
        yield list(pieces_of(source))
        return
    keep = size_of(source) <= AT_ONCE
    found: dict[str, list[tuple[str, int, Member, bytes | None]]] = {}
    what = "line" if shape.form == "lines" else "element"
    for number, (member, data) in enumerate(listed_in(source, shape), start=1):
        where = f"{source}, {what} {number}"
        found.setdefault(_key(data) or where, []).append(
            (where, number, member, data if keep else None)
        )
    for places in found.values():
        yield [
            Piece(where, number, read_at(source, member) if data is None else data)
            for where, number, member, data in places
        ]


def _key(data: bytes) -> str | None:
    try:
        held = decode(data, _Key)
    except InvalidInput:
        return None  # it is remarked on when it is read
    return held.session_id or (held.trace.session_id if held.trace is not None else None)


def _export(piece: Piece) -> _Export:
    """A trace with what was observed, whichever of them holds the other.

    Raises:
        InvalidInput: it is none, or holds only ids of observations.
    """
    export = decode(piece.data, _Export)
    if any(bytes(raw)[:1] == b'"' for raw in export.observations):
        raise InvalidInput("its observations are ids only; export them as well")
    if export.trace is None and not export.traces and export.id is not None:
        export.trace = decode(piece.data, Trace)
    return export


def _read(exports: Sequence[tuple[_Export, Piece]], reading: Reading) -> Iterator[Found]:
    spans: list[Span] = []
    traces: list[Trace] = []
    for export, piece in exports:
        own = [*([export.trace] if export.trace is not None else []), *export.traces]
        known = {trace.id: trace for trace in own}
        traces += own
        for number, raw in enumerate(export.observations, start=1):
            where = f"{piece.where}, observation {number}"
            try:
                spans.append(span_of_observation(raw, known, where, reading))
            except InvalidInput as error:
                yield Remark("problem", f"no observation: {error}", where)
    found = transcripts_of(
        spans,
        format=_NAME,
        where=exports[0][1].where,
        inputs=[trace.input for trace in traces],
        config=_config(traces),
    )
    for transcript in found:
        yield from read_transcript(_rated(transcript, traces), reading)


def _config(traces: Sequence[Trace]) -> dict[str, JSON]:
    held: list[Mapping[str, JSON]] = [
        {
            "trace": trace.id,
            "name": trace.name,
            "scores": {one.name: one.value for one in _scores(trace) if one.name not in _FEEDBACK},
        }
        for trace in traces
    ]
    return {} if not held else {_NAME: held[0] if len(held) == 1 else held}


def _rated(transcript: Transcript, traces: Sequence[Trace]) -> Transcript:
    """The conversation with the feedback of its user."""
    steps: list[Step] = []
    for score in (one for trace in traces for one in _scores(trace)):
        if score.name in _FEEDBACK:
            value = score.value
            number = isinstance(value, (int, float))
            steps.append(Feedback(thumbs=bool(value) if number else None, comment=_comment(score)))
    if not steps:
        return transcript
    entries = list(transcript.entries)
    entries.append(Entry("feedback", transcript.where, None, tuple(steps)))
    return msgspec.structs.replace(transcript, entries=entries)


def _scores(trace: Trace) -> list[Score]:
    return [one for one in trace.scores or () if isinstance(one, Score)]


def _comment(score: Score) -> str:
    return score.comment or (score.value if isinstance(score.value, str) else "")
