"""The importer for OpenHands: lists of events, event streams, and the output of an evaluation.

Actions of the agent are actions, but for messages, thoughts and its last words; an observation is
the outcome of the action that it names. A conversation is a file, or a directory with a file for each
event. In the output of an evaluation each line is a session, and over; its task text is the human's
request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, final

import msgspec

from ...engine import codec
from ...engine.errors import InvalidInput
from ...engine.events import JSON, DecisionSource, ScorerRef, Tokens, UtilityScored
from ...scoring.display.diff import unified
from ..json_parts import text_at
from .anthropic import plain_text
from .conversation.builder import Participants
from .conversation.numbers import RunningTotal, count_of
from .conversation.steps import (
    AGENT,
    HUMAN,
    ApprovalRequest,
    ApprovalResponse,
    Ending,
    FileEdit,
    ForeignEntry,
    Interruption,
    ModelUse,
    Omission,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from .conversation.transcript import Entry, Transcript, beginning_of, read_transcript
from .json_files import PIECE, check_held, decode, files_in, pieces_of, read_bytes
from .json_sniff import Shape, shape_of
from .protocol import Diagnostic, Found, Reading
from .timestamps import seconds_of

__all__ = ("OpenHandsImporter",)

_FORMAT: Final = "openhands"
_ASIDE: Final = frozenset(
    {"recall", "null", "agent_state_changed", "change_agent_state", "condensation"}
)
_SIDES: Final = {"user": HUMAN, "agent": AGENT}
_OWN_KEYS: Final = frozenset(
    "thought is_input blocking hidden confirmation_state security_risk keep_prompt".split()
)
"""Arguments of an action that the model did not give."""
_DECIDED: Final = {"user_confirmed": True, "user_rejected": False}
"""States that a user sets when the agent asks for a confirmation."""


@final
class ActionReader:
    """Reads events in order."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}  # what kind of action it was, by id
        self._past: set[str] = set()
        self._asked: list[str] = []  # ids of actions that wait for a confirmation
        self._count = 0
        self._total = RunningTotal()

    def steps(self, event: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        """The steps of an event.

        Args:
            event: the event.
            data: the same as bytes of the file.
        """
        action, observation = event.get("action"), event.get("observation")
        if isinstance(action, str):
            yield from self._used(event)
            yield from self._action(action, event, data)
        elif isinstance(observation, str):
            yield from self._observation(observation, event, data)
        else:
            yield ForeignEntry(f"{_FORMAT}.event", data)

    def _action(self, action: str, event: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        args = event.get("args")
        given: Mapping[str, JSON] = args if isinstance(args, Mapping) else {}
        side = _SIDES.get(str(event.get("source")), "system")
        thought = text_at(given, "thought")
        self._past.add(str(event.get("id")))
        if action in ("message", "finish"):
            text = text_at(given, "content") or text_at(event, "message")
            text = text or text_at(given, "final_thought") or thought
            if text.strip():
                yield Utterance(side, None, text)
        elif action == "system":
            yield Utterance("system", None, text_at(given, "content"))
        elif action == "think":
            yield Reasoning(thought)
        elif action == "change_agent_state" and text_at(given, "agent_state") in _DECIDED:
            approved = _DECIDED[text_at(given, "agent_state")]
            source: DecisionSource | None = "person" if side == HUMAN else None
            for call in self._asked:
                yield ApprovalResponse(call, approved, source=source)
            self._asked.clear()
        elif action in _ASIDE:
            yield Omission(f"{action} events")
        elif side == "system":
            yield ForeignEntry(f"{_FORMAT}.{action}", data)
        else:
            if thought.strip() and side == AGENT:
                yield Utterance(AGENT, None, thought)
            self._count += 1
            call = str(event.get("id", f"action-{self._count}"))
            self._open[call] = action
            arguments = {key: value for key, value in given.items() if key not in _OWN_KEYS}
            tool = _tool(event) or action
            yield ToolCall(side, None, call, tool, arguments)
            if given.get("confirmation_state") == "awaiting_confirmation" and side == AGENT:
                self._asked.append(call)
                yield ApprovalRequest(call, tool, arguments, f"May I call {tool}?")

    def _observation(self, kind: str, event: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        call = self._answered(kind, event)
        if call is None:
            if kind in _ASIDE:
                yield Omission(f"{kind} observations")
                return
            cause = str(event.get("cause", event.get("id")))
            if event.get("cause") in (None, -1) or cause in self._past:
                yield ForeignEntry(f"{_FORMAT}.{kind}", data)
                return
            call = cause  # whose call it was is not known
            self._past.add(call)
            yield ToolCall("environment", None, call, _tool(event) or kind, {}, _UNSEEN)
        self._open.pop(call, None)
        if call in self._asked:
            self._asked.remove(call)
            rejected = kind == "user_rejected"
            yield ApprovalResponse(call, not rejected, source="person" if rejected else None)
        extras = event.get("extras")
        extra: Mapping[str, JSON] = extras if isinstance(extras, Mapping) else {}
        content = text_at(event, "content")
        metadata = extra.get("metadata")
        code = metadata.get("exit_code") if isinstance(metadata, Mapping) else None
        failed = kind in ("error", "user_rejected") or (isinstance(code, int) and code != 0)
        why = content.strip() or (f"exit code {code}" if code else "it failed")
        yield ToolResult(call, content, why if failed else None)
        if kind == "edit" and not failed:
            yield from _edited(extra)

    def _answered(self, kind: str, event: Mapping[str, JSON]) -> str | None:
        """The open call that an observation answers; of old it does not say which."""
        cause = event.get("cause")
        if cause is not None:
            return str(cause) if str(cause) in self._open else None
        if kind in _ASIDE:
            return None
        alike = (call for call, action in self._open.items() if action == kind)
        return next(alike, next(iter(self._open), None))

    def _used(self, event: Mapping[str, JSON]) -> Iterator[Step]:
        metrics = event.get("llm_metrics")
        if not isinstance(metrics, Mapping):
            return
        used = self._total.since(tokens_of(metrics.get("accumulated_token_usage")))
        if used is not None:
            yield ModelUse(tokens=used)


def tokens_of(usage: JSON) -> Tokens | None:
    """Tokens, as OpenHands counts them."""
    if not isinstance(usage, Mapping):
        return None
    counts = {
        field: count_of(usage.get(key))
        for field, key in (
            ("prompt", "prompt_tokens"),
            ("completion", "completion_tokens"),
            ("cached", "cache_read_tokens"),
            ("cache_creation", "cache_write_tokens"),
            ("reasoning", "reasoning_tokens"),
        )
    }
    return Tokens(**counts)


def _tool(event: Mapping[str, JSON]) -> str | None:
    metadata = event.get("tool_call_metadata")
    name = metadata.get("function_name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) and name else None


# --- steps, out of events of the second generation, each of which names its kind ------------------


_UNSEEN: Final = "the file begins after this call"
_INNER: Final = "kind"
_THINKING: Final = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)


@final
class EventReader:
    """Reads events in order."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()  # ids of calls, which may come again
        self._pending: dict[str, tuple[str, Mapping[str, JSON]]] = {}  # calls without a result
        self._asked: dict[str, None] = {}  # those of them that wait for a confirmation
        self._totals: dict[str, RunningTotal] = {}

    def steps(self, event: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        """The steps of an event.

        Args:
            event: the event.
            data: the same as bytes of the file.
        """
        kind = str(event.get("kind"))
        if kind == "MessageEvent":
            yield from _message(event)
        elif kind == "ActionEvent":
            yield from self._action(event)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            yield from self._observation(kind, event)
        elif kind == "SystemPromptEvent":
            prompt = event.get("system_prompt")
            text = prompt.get("text") if isinstance(prompt, Mapping) else None
            yield Utterance("system", None, text if isinstance(text, str) else "")
        elif kind == "PauseEvent":
            yield Interruption("paused by the user")
        elif kind == "ConversationStateUpdateEvent":
            yield from self._state(event)
        else:
            yield ForeignEntry(f"{_FORMAT}.{kind}", data)

    def _action(self, event: Mapping[str, JSON]) -> Iterator[Step]:
        thought = plain_text(event.get("thought"))
        inside = _THINKING.match(thought)
        reasoning = event.get("reasoning_content") or (inside and inside[1])
        if isinstance(reasoning, str) and reasoning.strip():
            yield Reasoning(reasoning)
        thought = thought if inside is None else thought[inside.end() :]
        if thought.strip():
            yield Utterance(AGENT, None, thought)
        name, call = str(event.get("tool_name")), str(event.get("tool_call_id"))
        action = event.get("action")
        given: Mapping[str, JSON] = action if isinstance(action, Mapping) else {}
        if name == "think":
            yield Reasoning(str(given.get("thought", "")))
        elif name == "finish":
            yield Utterance(AGENT, None, str(given.get("message", "")))
        else:
            self._open[call] += 1
            arguments = {key: value for key, value in given.items() if key != _INNER}
            self._pending[call] = name, arguments
            written = event.get("tool_call")
            raw = text_at(written, "arguments") if isinstance(written, Mapping) else ""
            yield ToolCall(AGENT, None, call, name, arguments, None if arguments else raw or None)

    def _observation(self, kind: str, event: Mapping[str, JSON]) -> Iterator[Step]:
        call, name = str(event.get("tool_call_id")), str(event.get("tool_name"))
        if name in ("think", "finish"):
            yield Omission(f"what the tool {name} answers")
            return
        if not self._open[call]:  # whose call it was is not known
            yield ToolCall("environment", None, call, name, {}, _UNSEEN)
            self._open[call] += 1
        self._open[call] -= 1
        self._pending.pop(call, None)
        if call in self._asked:
            del self._asked[call]
            yield _decision(call, kind, event)
        observation = event.get("observation")
        held: Mapping[str, JSON] = observation if isinstance(observation, Mapping) else {}
        text = plain_text(held.get("content"))
        error: str | None = None
        if kind != "ObservationEvent":
            reason = event.get("error") or event.get("rejection_reason")
            error = reason if isinstance(reason, str) and reason else "it failed"
        elif held.get("is_error") is True or held.get("exit_code") not in (None, 0, -1):
            error = text.strip() or "it failed"
        yield ToolResult(call, text or error, error)
        if error is None:
            yield from _edited(held)

    def _state(self, event: Mapping[str, JSON]) -> Iterator[Step]:
        value = event.get("value")
        if value == "waiting_for_confirmation":
            for call, (tool, arguments) in self._pending.items():
                if call not in self._asked:
                    self._asked[call] = None
                    yield ApprovalRequest(call, tool, arguments, f"May I call {tool}?")
            return
        if event.get("key") != "stats" or not isinstance(value, Mapping):
            yield Omission("changes of state")
            return
        by_usage = value.get("usage_to_metrics")
        for usage, metrics in (by_usage if isinstance(by_usage, Mapping) else {}).items():
            if not isinstance(metrics, Mapping):
                continue
            total = tokens_of(metrics.get("accumulated_token_usage"))
            if total is None or not (total.prompt or total.completion):
                continue
            used = self._totals.setdefault(usage, RunningTotal()).since(total)
            if used is not None:
                yield _use(usage, metrics.get("model_name"), used)


def _decision(call: str, kind: str, event: Mapping[str, JSON]) -> ApprovalResponse:
    """The decision about a call that waited for a confirmation. OpenHands says who rejected one, and
    does not say who confirmed one.
    """
    if kind != "UserRejectObservation":
        return ApprovalResponse(call, True)
    hook = event.get("rejection_source") == "hook"
    comment = text_at(event, "rejection_reason")
    return ApprovalResponse(call, False, comment, "rule" if hook else "person")


def _edited(held: Mapping[str, JSON]) -> Iterator[FileEdit]:
    """The file that a tool edited, if what the tool gave holds all of its text."""
    path, now, before = held.get("path"), held.get("new_content"), held.get("old_content")
    if isinstance(path, str) and isinstance(now, str) and now != before:
        diff = unified(before if isinstance(before, str) else "", now)
        yield FileEdit(AGENT, None, path, now, diff)


def _use(usage: str, model: JSON, tokens: Tokens) -> ModelUse:
    name = model if isinstance(model, str) else None
    return ModelUse(model=name, tokens=tokens, purpose="act" if usage == "default" else usage)


def _message(event: Mapping[str, JSON]) -> Iterator[Step]:
    message = event.get("llm_message")
    held: Mapping[str, JSON] = message if isinstance(message, Mapping) else {}
    reasoning = held.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning.strip():
        yield Reasoning(reasoning)
    text = plain_text(held.get("content"))
    by_tool = held.get("role") == "tool" or held.get("tool_call_id") is not None
    side = (
        "system"
        if by_tool
        else {"user": HUMAN, "agent": AGENT}.get(str(event.get("source")), "system")
    )
    if text.strip():
        yield Utterance(side, None, text)


# --- the importer for OpenHands -------------------------------------------------------------------


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

    name = _NAME
    about = "events of OpenHands, and the output of its evaluations"

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
            PIECE.check_json(data)
            try:
                result = msgspec.json.decode(data, type=_Evaluated)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                events.append((piece.where, data))
                check_held(len(events), source)
                continue
            yield from _evaluated(result, piece.where, reading)
        if events:
            # From the first event alone, which stays the same while others are added.
            made = codec.digest(events[0][1].decode("utf-8", "replace"))[:12]
            yield from _session(f"{source.stem}-{made}", str(source), events, reading)


def _event_files(directory: Path) -> list[Path]:
    """The files of a conversation that has one for each event, in the order of their numbers."""
    inner = directory / "events"
    folder = inner if inner.is_dir() else directory
    files = files_in(folder, "*", within=directory)
    found = [(match, path) for path in files if (match := _EVENT.fullmatch(path.name))]
    files = [path for match, path in sorted(found, key=lambda one: int(one[0][1]))]
    shape = shape_of(files[0]) if files else None
    if shape is None or shape.form != "object" or not {"source", "id"} <= shape.keys:
        return []
    return files if shape.keys & {"kind", "action", "observation"} else []


def _evaluated(result: _Evaluated, where: str, reading: Reading) -> Iterator[Found]:
    flat: list[bytes] = []
    for raw in result.history:
        data = bytes(raw)
        # In older files, an action and its result are a pair.
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
            yield Diagnostic("problem", f"invalid event: {error}", place, session)
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
        participants=Participants((), (HUMAN, AGENT)),
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
    """Whether the task was solved, if the evaluation says so."""
    held = (result.test_result or {}) if result is not None else {}
    report = held.get("report", held)
    solved = report.get("resolved") if isinstance(report, Mapping) else None
    if not isinstance(solved, bool):
        return ()
    return (UtilityScored(scorer=_SCORER, value=float(solved)),)
