"""The importer for streams of AG-UI's events in files: one event on each line, as server-sent events
or bare, or a list of them.

Texts and arguments of calls come in pieces and are put together. Each run's input repeats the
conversation: a person's messages follow the last reply in it, as do results of the front end's
tools. A snapshot of all messages adds only those that came in no other way. The shared state is the
shared output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, final

import msgspec

from ...engine import codec
from ...engine.errors import InvalidInput
from ...engine.events import JSON, Tokens
from ..importers.conversation.builder import Participants
from ..importers.conversation.numbers import amount_of, count_of
from ..importers.conversation.steps import (
    AGENT,
    HUMAN,
    ForeignEntry,
    Interruption,
    ModelUse,
    Omission,
    Output,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from ..importers.conversation.transcript import Entry, Transcript, beginning_of, read_transcript
from ..importers.json_files import Piece, check_held, lines_of, pieces_of
from ..importers.json_sniff import Shape, shape_of
from ..importers.protocol import Diagnostic, Found, Reading
from ..importers.timestamps import seconds_of
from ..importers.trace_builder import arguments_of
from ..importers.traces.messages import Message, messages_of
from .assembler import Assembler, Whole, WholeCall, WholeEvent, WholeMessage
from .json_patch import apply_patch
from .names import AguiEvent
from .parse import Unreadable, parse_events

__all__ = ("AguiImporter",)

_NAME: Final = "ag-ui"
_MILLI: Final = 1e-3
_INPUT: Final = "application/json"
_SEEN: Final = frozenset({"STEP_STARTED", "STEP_FINISHED", "RAW"})
_DATA: Final = b"data:"
_HEAD: Final = 4096


@final
class AguiImporter:
    """Reads streams of AG-UI's events."""

    name = _NAME
    about = "streams of AG-UI's events, one on each line"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins with the start of a run."""
        if shape is None and source.is_file():
            with source.open("rb") as file:
                head = file.read(_HEAD)
            return head.startswith(_DATA) and b'"RUN_STARTED"' in head
        return shape is not None and {"type", "threadId", "runId"} <= shape.keys

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the conversations in a file.

        Raises:
            InvalidInput: it cannot be read.
        """
        threads: list[_Thread] = []
        shape = shape_of(source)
        array = shape is not None and shape.form == "array"
        lines = lines_of(source, growing=reading.growing)
        for piece in pieces_of(source) if array else lines:
            check_held(piece.number, source)
            data = bytes(piece.data)
            if data.startswith((b":", b"event:", b"id:", b"retry:")):
                continue  # other fields of server-sent events
            for event in parse_events(data.removeprefix(_DATA)):
                if isinstance(event, Unreadable):
                    yield Diagnostic("problem", event.why, piece.where)
                    continue
                if event.get("type") == "RUN_STARTED" or not threads:
                    thread = _thread_of(event, threads)
                    if thread is None:
                        thread = _Thread(str(event.get("threadId") or source.stem), str(source))
                        threads.append(thread)
                    threads.remove(thread)
                    threads.append(thread)  # the last one continues
                yield from threads[-1].take(event, piece)
        for thread in sorted(threads, key=lambda one: one.first):
            yield from read_transcript(thread.transcript(reading), reading)


def _thread_of(event: AguiEvent, threads: Sequence[_Thread]) -> _Thread | None:
    """The conversation that a run continues: by its thread, else by the messages it repeats."""
    for thread in threads:
        if thread.session == event.get("threadId"):
            return thread
    said = [one.text for one in _given(event) if one.role == HUMAN]
    for thread in reversed(threads):
        if thread.said and said[: len(thread.said)] == thread.said:
            return thread
    return None


def _given(event: AguiEvent) -> list[Message]:
    return messages_of([_plain(one) for one in _listed(event)], HUMAN)


def _listed(event: AguiEvent) -> Sequence[JSON]:
    """The messages in a run's input, or in a snapshot."""
    held = event.get("input", event)
    messages = held.get("messages") if isinstance(held, Mapping) else None
    return messages if isinstance(messages, Sequence) and not isinstance(messages, str) else ()


def _ids(messages: Sequence[JSON]) -> list[str]:
    """Ids of messages, each followed by those of its calls; of one without an id its contents."""
    found: list[str] = []
    for message in messages:
        if not isinstance(message, Mapping):
            found.append("")
            continue
        own = message.get("id")
        found.append(str(own) if own else codec.digest(message))
        calls = message.get("toolCalls")
        if isinstance(calls, Sequence) and not isinstance(calls, str):
            found += [str(call.get("id")) for call in calls if isinstance(call, Mapping)]
    return found


def _plain(message: JSON) -> JSON:
    """A message with the names that other interfaces give to its parts."""
    if not isinstance(message, Mapping):
        return message
    plain = dict(message)
    for ours, theirs in (("tool_calls", "toolCalls"), ("tool_call_id", "toolCallId")):
        if theirs in plain:
            plain[ours] = plain.pop(theirs)
    return plain


@final
class _Thread:
    """One conversation, as its events come."""

    def __init__(self, session: str, where: str) -> None:
        self.session = session
        self.where = where
        self.first = 0
        self.said: list[str] = []
        self._entries: list[Entry] = []
        self._assembler = Assembler()
        self._open: set[str] = set()
        self._known: set[str] = set()  # ids of messages and calls that were read
        self._state: JSON = None
        self._digest: str | None = None

    def take(self, event: AguiEvent, piece: Piece) -> Iterator[Diagnostic]:
        """Takes the next event; a diagnostic if something is wrong with it."""
        self.first = self.first or piece.number
        steps: list[Step] = []
        if event.get("type") == "RUN_STARTED":
            steps += self._heard(event)
        for whole in self._assembler.take(event):
            problem = whole.problem
            if problem is not None:
                yield Diagnostic("problem", problem, piece.where, self.session)
            try:
                steps += self._steps(whole)
            except InvalidInput as error:
                yield Diagnostic("problem", str(error), piece.where, self.session)
        if steps:
            time = _time(event.get("timestamp"))
            self._entries.append(Entry(piece.number, piece.where, time, tuple(steps)))

    def transcript(self, reading: Reading) -> Transcript:
        """The whole transcript; for a growing stream, only the finished messages."""
        pieces = () if reading.growing else self._assembler.finish()
        rest = tuple(step for whole in pieces for step in self._steps(whole))
        entries = [*self._entries, Entry("rest", self.where, None, rest)]
        used = (step for entry in entries for step in entry.steps if isinstance(step, ModelUse))
        models = (step.model for step in used)
        return Transcript(
            session=self.session,
            format=_NAME,
            where=self.where,
            entries=entries,
            participants=Participants(
                (step for entry in entries for step in entry.steps), (HUMAN, AGENT)
            ),
            start=beginning_of(entries),
            models={AGENT: next((model for model in models if model), None)},
        )

    def _heard(self, event: AguiEvent) -> Iterator[Step]:
        """Yields the new messages in a run's input."""
        given = _given(event)
        self._known.update(_ids(_listed(event)))
        last = max((n for n, one in enumerate(given) if one.role == AGENT), default=-1)
        for one in given[last + 1 :]:
            if one.role == "tool":
                for step in one.steps:
                    if isinstance(step, ToolResult) and step.call in self._open:
                        self._open.discard(step.call)
                        yield step
            elif one.role == HUMAN:
                yield from one.steps
        self.said = [one.text for one in given if one.role == HUMAN]

    def _unheard(self, event: AguiEvent) -> Iterator[Step]:
        """Yields messages that came only in a snapshot of all messages."""
        for item in _listed(event):
            (own, *calls) = _ids([item])
            for message in messages_of([_plain(item)], HUMAN):
                for step in message.steps:
                    if isinstance(step, ToolCall):
                        if step.call in self._known:
                            continue
                        self._open.add(step.call)
                    elif isinstance(step, ToolResult):
                        if step.call not in self._open:
                            continue
                        self._open.discard(step.call)
                    elif (
                        own in self._known
                        or (message.role == HUMAN and message.text in self.said)
                        or isinstance(step, Utterance)
                        and not step.text.strip()
                    ):
                        continue
                    yield step
            self._known.update((own, *calls))

    def _steps(self, whole: Whole) -> Iterator[Step]:
        if isinstance(whole, WholeMessage):
            self._known.add(whole.id)
            if whole.reasoning:
                yield Reasoning(whole.text, whole.subagent)
            elif whole.text.strip() and whole.role != "user":
                side = AGENT if whole.role == "assistant" else "system"
                yield Utterance(side, whole.subagent, whole.text)
        elif isinstance(whole, WholeCall):
            self._open.add(whole.id)
            self._known.add(whole.id)
            arguments, raw = arguments_of(whole.arguments) if whole.arguments else ({}, None)
            yield ToolCall(AGENT, whole.subagent, whole.id, whole.tool, arguments, raw)
        else:
            yield from self._event(whole)

    def _event(self, whole: WholeEvent) -> Iterator[Step]:
        event, kind = whole.event, str(whole.event.get("type"))
        if kind == "TOOL_CALL_RESULT":
            call = str(event.get("toolCallId"))
            if call in self._open:
                self._open.discard(call)
                error = event.get("error")
                failed = None if error is None else str(error)
                yield ToolResult(call, event.get("content"), failed)
        elif kind in ("STATE_SNAPSHOT", "STATE_DELTA"):
            if kind == "STATE_SNAPSHOT":
                self._state = event.get("snapshot")
            else:
                self._state = apply_patch(self._state, event.get("delta"))
            digest = codec.digest(self._state)
            if self._state is not None and digest != self._digest:
                self._digest = digest
                yield Output(AGENT, None, self._state, _INPUT)
        elif kind == "RUN_FINISHED":
            yield from _used(event.get("usage"))
        elif kind == "RUN_ERROR":
            yield Interruption(f"the run failed: {event.get('message') or 'nothing says why'}")
        elif kind == "MESSAGES_SNAPSHOT":
            yield from self._unheard(event)
        elif kind in _SEEN:
            if kind != "STEP_STARTED":
                yield Omission(f"{kind} events")
        elif kind != "RUN_STARTED":
            yield ForeignEntry(f"{_NAME}.{kind}", msgspec.json.encode(event))


def _time(stamp: JSON) -> float | None:
    """Seconds of a time stamp, which is in milliseconds if it is a number."""
    milliseconds = amount_of(stamp)
    return seconds_of(stamp if milliseconds is None else milliseconds * _MILLI, None)


def _used(usage: JSON) -> Iterator[Step]:
    """The tokens of a run, by its models."""
    for one in usage if isinstance(usage, Sequence) and not isinstance(usage, str) else ():
        if not isinstance(one, Mapping):
            continue
        names = {
            "prompt": "inputTokens",
            "completion": "outputTokens",
            "reasoning": "reasoningTokens",
            "cached": "cachedInputTokens",
            "cache_creation": "cacheWriteInputTokens",
        }
        tokens = Tokens(**{field: count_of(one.get(name)) for field, name in names.items()})
        model = one.get("model")
        yield ModelUse(model=model if isinstance(model, str) else None, tokens=tokens)
