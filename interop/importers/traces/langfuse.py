"""The importer for traces of Langfuse: traces with their observations, or a list of observations.

The traces of one session are one conversation. Feedback of users comes in as feedback. Other scores
are kept with the session. They are not a utility, since they may measure anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON, Tokens
from ..conversation.numbers import amount_of, count_of
from ..conversation.steps import AGENT, Feedback, ToolCall, Utterance
from ..conversation.transcript import Entry, Transcript, read_transcript
from ..documents import is_answer, listed_in, listed_keys
from ..json_files import AT_ONCE, Piece, check_held, decode, pieces_of, size_of
from ..json_sniff import Shape, shape_of
from ..json_stream import Member, read_at
from ..protocol import Diagnostic, Found, Reading
from ..timestamps import seconds_of
from .ai_sdk import TOOL_CALL
from .conversations import by_session, transcripts_of
from .spans import LEVELS, Span, SpanKind, value_of
from .stored import SpanPiece, read_stored

__all__ = ("LangfuseImporter",)

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_KINDS: Final[Mapping[str, SpanKind]] = {"GENERATION": "model", "TOOL": "tool", "AGENT": "agent"}
_TURN: Final = re.compile(r"(?:invoke_agent|agent_run)\s+\[?([^\]]+)\]?")
"""Names that frameworks give to the span of an agent's turn, before the agent's name."""


class ScoreConfig(msgspec.Struct, rename="camel"):
    """The bounds of a score."""

    min_value: float | None = None
    max_value: float | None = None


class Score(msgspec.Struct, rename="camel"):
    """A score of a trace, of an observation in it, or of a session."""

    name: str
    value: JSON = None
    string_value: str | None = None
    comment: str | None = None
    source: str | None = None
    data_type: str | None = None
    timestamp: str | None = None
    trace_id: str | None = None
    observation_id: str | None = None
    config: ScoreConfig | None = None


class Trace(msgspec.Struct, rename="camel"):
    """A trace; its observations are in it or listed separately."""

    id: str
    name: str | None = None
    session_id: str | None = None
    input: JSON = None
    scores: list[Score | str] | None = None
    observations: list[msgspec.Raw] = []
    user_id: str | None = None
    tags: list[str] | None = None
    environment: str | None = None
    release: str | None = None
    version: str | None = None


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
    cost_details: Mapping[str, JSON] | None = None
    provided_cost_details: Mapping[str, JSON] | None = None
    calculated_total_cost: float | None = None
    total_cost: float | None = None


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
        raise InvalidInput(f"its startTime {one.start_time!r} is not a time")
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
        cost=_cost(one) if kind == "model" else None,
        error=why if one.level == "ERROR" else None,
    )


def _attributes(metadata: JSON) -> Mapping[str, JSON]:
    """The attributes of the span that an observation was made from; empty if there is none."""
    held = value_of(metadata)
    found = held.get("attributes") if isinstance(held, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _agent(one: _Observation, attributes: Mapping[str, JSON]) -> str | None:
    """The name of an agent; None if it is the name of a single run."""
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


def _cost(one: _Observation) -> float | None:
    """US dollars; None if unknown, which Langfuse writes as 0."""
    for held in (one.cost_details, one.provided_cost_details):
        amounts = {key: amount_of(value) for key, value in (held or {}).items()}
        if (total := amounts.get("total")) is not None:
            return total
        known = [amount for amount in amounts.values() if amount is not None]
        if known:
            return sum(known)
    return amount_of(one.calculated_total_cost) or amount_of(one.total_cost) or None


def _text(attributes: Mapping[str, JSON], key: str) -> str | None:
    value = attributes.get(key)
    return value if isinstance(value, str) and value else None


# --- the importer for traces of Langfuse ----------------------------------------------------------


_NAME: Final = "langfuse"
_FEEDBACK: Final = frozenset(
    "user-feedback feedback thumbs user-rating user-score rating stars csat".split()
)
"""Names of the scores that users give; with ``_`` or a space for ``-``, in any case."""
_JUDGES: Final = frozenset({"EVAL", "ANNOTATION"})
"""Sources of scores that no user gave: a model's, and a reviewer's."""
_UP: Final = frozenset("up thumbs-up 👍 positive good like liked helpful yes true correct".split())
_DOWN: Final = frozenset(
    "down thumbs-down 👎 negative bad dislike disliked unhelpful not-helpful no false incorrect".split()
)
_STARS: Final = 5
_PLEASED, _DISPLEASED = 4, 2  # of five: the usual reading of customer satisfaction
_STARRED: Final = frozenset({"user-rating", "rating", "stars", "csat"})
_OF: Final = re.compile(r"\b[0-5]\s*(?:/|of|out of)\s*5\b")
_OBSERVATION: Final = frozenset({"traceId", "startTime", "type"})
_TRACE: Final = frozenset({"id", "timestamp", "observations"})


class _Export(msgspec.Struct):
    observations: list[msgspec.Raw]
    trace: Trace | None = None
    traces: list[Trace] = []
    scores: list[Score | str] | None = None
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

    name = _NAME
    about = "traces of Langfuse with their observations"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins with a trace and its observations, or with an observation."""
        if shape is None:
            return False
        keys = listed_keys(shape)
        both = "observations" in keys and bool({"trace", "traces"} & keys)
        return both or keys >= _TRACE or keys >= _OBSERVATION

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
                    yield Diagnostic("problem", f"invalid trace: {error}", piece.where)
            if exports:
                yield from _read(exports, reading)


def _flat(source: Path, reading: Reading) -> Iterator[Found]:
    """The conversations in a list of observations."""

    def read(data: bytes | msgspec.Raw, where: str) -> Iterator[Span | Diagnostic]:
        try:
            yield span_of_observation(data, {}, where, reading)
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid observation: {error}", where)

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
        check_held(number, source)
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
        return None  # it is reported when it is read
    return held.session_id or (held.trace.session_id if held.trace is not None else None)


def _export(piece: Piece) -> _Export:
    """A trace with its observations, whichever of them holds the other.

    Raises:
        InvalidInput: it is none, or holds only ids of observations.
    """
    export = decode(piece.data, _Export)
    if any(bytes(raw)[:1] == b'"' for raw in export.observations):
        raise InvalidInput("its observations are ids only; export them as well")
    if export.trace is None and not export.traces and export.id is not None:
        export.trace = decode(piece.data, Trace)
        export.scores = None  # the same as the trace's own
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
                yield Diagnostic("problem", f"invalid observation: {error}", where)
    scores = _all_scores(exports, traces)
    turns = _Turns(spans)
    for members in by_session(spans).values():
        among = {span.trace for span in members}
        own = [trace for trace in traces if trace.id in among] or traces
        rated = [one for one in scores if one.trace_id is None or one.trace_id in among]
        found = transcripts_of(
            members,
            format=_NAME,
            where=exports[0][1].where,
            inputs=[trace.input for trace in own],
            config=_config(own, rated),
        )
        for transcript in found:
            yield from read_transcript(_rated(transcript, rated, turns, reading), reading)


def _config(traces: Sequence[Trace], scores: Sequence[Score]) -> dict[str, JSON]:
    held: list[Mapping[str, JSON]] = [
        {
            "trace": trace.id,
            "name": trace.name,
            "scores": {
                one.name: one.value if one.string_value is None else one.string_value
                for one in scores
                if one.trace_id == trace.id and not _is_feedback(one)
            },
        }
        for trace in traces
    ]
    if not held:
        return {}
    return {_NAME: held[0] if len(held) == 1 else held, **_group(traces)}


def _group(traces: Sequence[Trace]) -> dict[str, JSON]:
    """The labels of a session: each from the first trace that has it, and the tags of all traces."""
    tags = sorted({tag for trace in traces for tag in trace.tags or () if tag.strip()})
    labels: dict[str, Sequence[str | None]] = {
        "user": [trace.user_id for trace in traces],
        "environment": [trace.environment for trace in traces],
        "release": [trace.release for trace in traces],
        "version": [trace.version for trace in traces],
        "tags": [", ".join(tags)],
    }
    group: dict[str, JSON] = {}
    for label, values in labels.items():
        value = next((one for one in values if one and one.strip()), None)
        if value is not None:
            group[label] = value
    return {"group": group} if group else {}


# --- scores of users ------------------------------------------------------------------------------


@final
class _Turns:
    """Where in a conversation a trace or an observation ended.

    Args:
        spans: the spans of the whole.
    """

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = {(span.trace, span.id): span for span in spans}

    def ends(self, entries: Sequence[Entry | Diagnostic], score: Score) -> int | None:
        """The place of the entry that a score is about: the last by the agent in that trace or
        observation; None if there is none.
        """
        trace = score.trace_id
        if trace is None:
            return None
        own = {span.key: span for span in self._spans.values() if span.trace == trace}
        found: int | None = None
        within: int | None = None
        for place, entry in enumerate(entries):
            span = own.get(str(entry.number)) if isinstance(entry, Entry) else None
            if span is None or not isinstance(entry, Entry):
                continue
            spoke = any(
                isinstance(step, (Utterance, ToolCall)) and step.role == AGENT
                for step in entry.steps
            )
            if spoke:
                found = place
                within = place if self._lies_in(span, score.observation_id) else within
        return found if within is None else within

    def _lies_in(self, span: Span | None, observation: str | None) -> bool:
        seen: set[str] = set()
        while span is not None and span.id not in seen and len(seen) <= LEVELS:
            if span.id == observation:
                return True
            seen.add(span.id)
            span = self._spans.get((span.trace, span.parent or ""))
        return False


def _rated(
    transcript: Transcript, scores: Sequence[Score], turns: _Turns, reading: Reading
) -> Transcript:
    """The conversation with the feedback of its user, each behind what it is about, at its time."""
    given = [score for score in scores if _is_feedback(score)]
    if not given:
        return transcript
    scales = _scales(given)
    entries = list(transcript.entries)
    behind: dict[int, list[Entry]] = {}
    for number, score in enumerate(given, start=1):
        place = turns.ends(entries, score)
        about = None if place is None else entries[place]
        of = about.number if isinstance(about, Entry) else None
        time = seconds_of(score.timestamp, reading.zone)
        step = _feedback(score, scales[score.name], of)
        at = len(entries) - 1 if place is None else _place_of(entries, place, time)
        name = "feedback" if len(given) == 1 else f"feedback-{number}"
        behind.setdefault(at, []).append(Entry(name, transcript.where, time, (step,)))
    ordered = (one for n, entry in enumerate(entries) for one in (entry, *behind.get(n, ())))
    return msgspec.structs.replace(transcript, entries=list(ordered))


def _place_of(entries: Sequence[Entry | Diagnostic], place: int, time: float | None) -> int:
    """The last entry before a time, from the one that was scored on."""
    for later in range(place + 1, len(entries)):
        entry = entries[later]
        at = entry.time if isinstance(entry, Entry) else None
        if time is None or (at is not None and at > time):
            break
        place = later
    return place


def _is_feedback(score: Score) -> bool:
    name = re.sub(r"[\s_]+", "-", score.name.strip().casefold())
    return name in _FEEDBACK and score.source not in _JUDGES


def _scales(scores: Iterable[Score]) -> dict[str, float]:
    """By name of a score: the best that it can be, as far as its values, its settings and its name
    say.
    """
    found: dict[str, float] = {}
    for score in scores:
        best = score.config.max_value if score.config is not None else None
        number = _number(score)
        named = re.sub(r"[\s_]+", "-", score.name.strip().casefold()) in _STARRED
        starred = named or _OF.search(score.comment or "") is not None
        if best is None:
            above = number is not None and number > 1
            best = 1.0 if not above and not starred else max(_STARS, number or 0.0)
            if score.data_type == "BOOLEAN":
                best = 1.0
        found[score.name] = max(best, found.get(score.name, 0.0))
    return found


def _number(score: Score) -> float | None:
    value = score.value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def _feedback(score: Score, best: float, of: int | str | None) -> Feedback:
    """A score as feedback: as thumbs if it is clearly up or down, with its value in the comment
    otherwise.
    """
    number = _number(score)
    said = score.string_value or (score.value if isinstance(score.value, str) else "")
    word = re.sub(r"[\s_]+", "-", said.strip().casefold())
    thumbs: bool | None = None
    note = ""
    if isinstance(score.value, bool):
        thumbs = score.value
    elif word:
        thumbs = True if word in _UP else False if word in _DOWN else None
        note = said if thumbs is None else ""
    elif number is not None and best == 1:
        thumbs = {1.0: True, 0.0: False, -1.0: False}.get(number)
        note = f"{number:g} of 1" if thumbs is None else ""
    elif number is not None:
        if best == _STARS:
            thumbs = True if number >= _PLEASED else False if number <= _DISPLEASED else None
        note = f"{number:g} of {best:g}"
    comment = "; ".join(one for one in (note, score.comment or "") if one)
    return Feedback(thumbs=thumbs, comment=comment, of=of)


def _all_scores(exports: Sequence[tuple[_Export, Piece]], traces: Sequence[Trace]) -> list[Score]:
    """The scores in traces and those listed separately, each once, in order of time."""
    found: list[Score] = []
    for trace in traces:
        own = [score for score in trace.scores or () if isinstance(score, Score)]
        for score in own:
            score.trace_id = score.trace_id or trace.id
        found += own
    known = {trace.id for trace in traces}
    apart = (score for export, _ in exports for score in export.scores or ())
    found += [
        one
        for one in apart
        if isinstance(one, Score) and (one.trace_id is None or one.trace_id in known)
    ]
    unique = {msgspec.json.encode(one): one for one in found}
    ordered = list(unique.values())
    ordered.sort(key=lambda one: one.timestamp or "")
    return ordered
