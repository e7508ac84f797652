"""The importer for traces of Langfuse: a trace with its observations, or a list of them.

Feedback of users comes in as feedback. Other scores are kept with the session, and are no utility:
what they measure is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON, Tokens
from ..conversation.steps import Feedback, Step
from ..conversation.transcript import Entry, Transcript, read_transcript
from ..json_files import Piece, decode, pieces_of
from ..json_sniff import Shape
from ..protocol import Found, Reading, Remark
from ..timestamps import seconds_of
from .conversations import transcripts_of
from .messages import value_of
from .spans import Span, SpanKind

__all__ = ("LangfuseImporter",)

_NAME: Final = "langfuse"
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_KINDS: Final[Mapping[str, SpanKind]] = {"GENERATION": "model", "TOOL": "tool", "AGENT": "agent"}
_FEEDBACK: Final = frozenset({"user-feedback", "user_feedback", "feedback", "thumbs"})


class _Score(msgspec.Struct, rename="camel"):
    name: str
    value: JSON = None
    comment: str | None = None
    source: str | None = None


class _Trace(msgspec.Struct, rename="camel"):
    id: str
    name: str | None = None
    timestamp: str | None = None
    session_id: str | None = None
    input: JSON = None
    scores: list[_Score] = []


class _Observation(msgspec.Struct, rename="camel"):
    id: str
    type: str
    start_time: str
    name: str | None = None
    end_time: str | None = None
    parent_observation_id: str | None = None
    model: str | None = None
    level: str = "DEFAULT"
    status_message: str | None = None
    input: JSON = None
    output: JSON = None
    usage_details: Mapping[str, JSON] | None = None


class _Export(msgspec.Struct):
    trace: _Trace
    observations: list[msgspec.Raw]


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
        """Whether a file begins with a trace and its observations."""
        return shape is not None and {"trace", "observations"} <= shape.keys

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the conversations in a file.

        Raises:
            InvalidInput: it cannot be read.
        """
        for piece in pieces_of(source):
            try:
                export = decode(piece.data, _Export)
            except InvalidInput as error:
                yield Remark("problem", f"no trace: {error}", piece.where)
                continue
            yield from _read(export, piece, reading)


def _read(export: _Export, piece: Piece, reading: Reading) -> Iterator[Found]:
    trace = export.trace
    spans: list[Span] = []
    for number, raw in enumerate(export.observations, start=1):
        where = f"{piece.where}, observation {number}"
        try:
            spans.append(_span(decode(raw, _Observation), trace, where, reading))
        except InvalidInput as error:
            yield Remark("problem", f"no observation: {error}", where, trace.id)
    scores = {one.name: one.value for one in trace.scores if one.name not in _FEEDBACK}
    config: dict[str, JSON] = {_NAME: {"trace": trace.id, "name": trace.name, "scores": scores}}
    found = transcripts_of(
        spans, format=_NAME, where=piece.where, inputs=[trace.input], config=config
    )
    for transcript in found:
        yield from read_transcript(_rated(transcript, trace), reading)


def _rated(transcript: Transcript, trace: _Trace) -> Transcript:
    """The conversation with the feedback of its user."""
    steps: list[Step] = []
    for score in trace.scores:
        if score.name in _FEEDBACK:
            value = score.value
            number = isinstance(value, (int, float))
            steps.append(Feedback(thumbs=bool(value) if number else None, comment=_comment(score)))
    if not steps:
        return transcript
    entries = list(transcript.entries)
    entries.append(Entry("feedback", transcript.where, None, tuple(steps)))
    return msgspec.structs.replace(transcript, entries=entries)


def _comment(score: _Score) -> str:
    return score.comment or (score.value if isinstance(score.value, str) else "")


def _span(one: _Observation, trace: _Trace, where: str, reading: Reading) -> Span:
    start = seconds_of(one.start_time, reading.zone)
    if start is None:
        raise InvalidInput(f"its startTime {one.start_time!r} is no time")
    failed = one.level == "ERROR"
    kind = _KINDS.get(one.type, "other")
    output = value_of(one.output)
    why = one.status_message or (output if isinstance(output, str) and output else "it failed")
    return Span(
        id=one.id,
        trace=trace.id,
        where=where,
        name=one.name or one.type,
        kind=kind,
        start=start,
        parent=one.parent_observation_id,
        end=seconds_of(one.end_time, reading.zone),
        conversation=trace.session_id,
        input=one.input,
        output=one.output,
        agent=_agent(one) if kind == "agent" else None,
        model=one.model,
        tokens=_tokens(one.usage_details) if kind == "model" else None,
        error=why if failed else None,
    )


def _agent(one: _Observation) -> str | None:
    """The name of an agent; None where it is that of a run, of which each has another."""
    if one.parent_observation_id is None or _UUID.search(one.name or ""):
        return None
    return one.name


def _tokens(usage: Mapping[str, JSON] | None) -> Tokens | None:
    held = usage or {}
    names = {
        "prompt": ("input", "prompt"),
        "completion": ("output", "completion"),
        "cached": ("input_cache_read", "prompt_details.cache_read", "input_cached_tokens"),
        "reasoning": ("output_reasoning", "completion_details.reasoning"),
    }
    counts: dict[str, int] = {}
    for field, keys in names.items():
        for key in keys:
            value = held.get(key)
            if isinstance(value, int):
                counts.setdefault(field, value)
    return Tokens(**counts) if counts else None
