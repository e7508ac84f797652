"""The importer for rollouts of Codex: one file, one session.

Typed texts are messages of the human; the environment, instructions and the editor's state that the
program puts in their place are not. A call whose exit code is not 0 failed. A turn that was aborted
ends the agent's turn. A file that a patch adds is a snapshot. Turns that a person took back are a
fork. Files from before August 2025 contain items only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON, Origin, Tokens
from ...engine.records import TRACE
from .chat import steps_of, usage_of
from .conversation.builder import Participants
from .conversation.numbers import RunningTotal
from .conversation.steps import (
    AGENT,
    HUMAN,
    FileEdit,
    ForeignEntry,
    Interruption,
    ModelUse,
    Omission,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from .conversation.transcript import Entry, Transcript, read_transcript
from .json_files import PIECE, Piece, decode, lines_of, size_of
from .json_sniff import Shape
from .protocol import Diagnostic, Foreign, Found, Reading
from .timestamps import seconds_of

__all__ = ("CodexImporter",)

_BEGIN: Final = "*** Begin Patch"
_ADD: Final = "*** Add File: "


def added_files(call: ToolCall) -> Iterator[FileEdit]:
    """The files that a call of the patch tool adds, in their state after it.

    Files that it changes are left out: a patch does not hold the whole of their text.
    """
    patch = call.arguments.get("input", call.raw)
    command = call.arguments.get("command")
    if isinstance(command, list | tuple):
        patch = next((part for part in command if _BEGIN in str(part)), None)
    if not isinstance(patch, str) or _BEGIN not in patch:
        return
    path: str | None = None
    lines: list[str] = []
    for line in patch.split("\n"):  # a file may hold what else ends lines
        if path is not None and line.startswith("+"):
            lines.append(line[1:])
            continue
        if path is not None:
            yield _file(path, lines)
        path = line.removeprefix(_ADD) if line.startswith(_ADD) else None
        lines = []
    if path is not None:
        yield _file(path, lines)


def _file(path: str, lines: list[str]) -> FileEdit:
    text = "".join(f"{line}\n" for line in lines)
    diff = "\n".join([f"@@ -0,0 +1,{len(lines)} @@", *(f"+{line}" for line in lines)])
    return FileEdit(AGENT, None, path, text, diff)


# --- steps, out of the lines of a rollout ---------------------------------------------------------


_SHOWN_TWICE: Final = frozenset(
    {"user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content"}
)
_ASIDE: Final = frozenset(
    "task_started task_complete turn_started turn_complete context_compacted thread_name_updated"
    " thread_rolled_back thread_settings_applied session_configured item_started item_completed"
    " exec_command_begin exec_command_end patch_apply_begin patch_apply_end mcp_tool_call_begin"
    " mcp_tool_call_end web_search_begin web_search_end view_image_tool_call image_generation_end"
    " turn_diff plan_update".split()
)
"""Events for the display that say again what items say, or nothing of the conversation."""
_COMPACTED: Final = "compacted"
"""A line that repeats what the model still reads, after a summary took the place of the rest."""
_INJECTED: Final = re.compile(
    r"\s*(<(environment_context|user_instructions|INSTRUCTIONS|turn_aborted|user_shell_command"
    r"|user_action|skill|subagent_notification|permissions instructions|collaboration_mode"
    r"|goal_context|recommended_plugins)\b|# AGENTS\.md instructions"
    r"|Another language model started to solve this problem and produced a summary"
    r"|Warning: (apply_patch|The maximum number of|Your account|Heads up))"
)
_HEADINGS: Final = ("# Context from my IDE setup:", "# Files mentioned by the user:")
_REQUEST: Final = "## My request for Codex:"
_IMAGE: Final = re.compile(r"^</?image\b[^>\n]*>\n?", re.MULTILINE)
_EXIT: Final = re.compile(
    r"(?:Chunk ID: [^\n]*\n)?(?:Wall time: [^\n]*\n)?"
    r"(?:Exit code: |Process exited with code )([0-9]{1,9})\n"
)
"""How a result begins that is text, and not JSON."""
_PROGRAM: Final = "codex"


@final
class RolloutReader:
    """Reads the lines of a rollout in order.

    Args:
        helper: it is a subagent's, whose "user" is the agent that called it.
    """

    def __init__(self, *, helper: bool = False) -> None:
        self._helper = helper
        self._model: str | None = None
        self._total = RunningTotal()
        self._calls: dict[str, ToolCall] = {}

    def steps(self, kind: str, payload: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        """The steps of a line.

        Args:
            kind: the kind of the line.
            payload: its contents.
            data: the line itself.

        Raises:
            InvalidInput: it is not as the format has it.
        """
        if kind == "response_item":
            yield from self._item(payload)
        elif kind == "turn_context":
            model = payload.get("model")
            self._model = model if isinstance(model, str) else self._model
        elif kind == "event_msg":
            yield from self._event(payload, data)
        elif kind == _COMPACTED:
            yield Omission(f"{kind} lines")
        elif kind != "session_meta":
            yield ForeignEntry(f"{_PROGRAM}.{kind}", data)

    def _item(self, item: Mapping[str, JSON]) -> Iterator[Step]:
        for step in steps_of(item):
            if isinstance(step, Utterance) and step.role == HUMAN:
                yield _by_program(step) if self._helper else _typed(step)
            elif isinstance(step, ToolCall):
                self._calls[step.call] = step
                yield step
            elif isinstance(step, ToolResult):
                call = self._calls.pop(step.call, None)
                if call is None:
                    yield Omission("a result of a call that is not in the file")
                    continue
                result = _outcome(step)
                yield result
                if result.error is None:
                    yield from added_files(call)
            else:
                yield step

    def _event(self, event: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        kind = str(event.get("type"))
        if kind == "token_count":
            info = event.get("info")
            if isinstance(info, Mapping):
                yield from self._used(usage_of(_flat(info.get("total_token_usage"))))
        elif kind == "turn_aborted":
            yield Interruption(f"interrupted: {event.get('reason') or 'by the user'}")
        elif kind in _ASIDE:
            yield Omission(f"{kind} events")
        elif kind not in _SHOWN_TWICE:
            yield ForeignEntry(f"{_PROGRAM}.{kind}", data)

    def _used(self, total: Tokens | None) -> Iterator[Step]:
        """The calls since the last count."""
        used = self._total.since(total)
        if used is not None:
            yield ModelUse(model=self._model, tokens=used)


def _flat(usage: JSON) -> JSON:
    """Token counts with the details where OpenAI's interface has them."""
    if not isinstance(usage, Mapping):
        return None
    return {
        **usage,
        "input_tokens_details": {"cached_tokens": usage.get("cached_input_tokens")},
        "output_tokens_details": {"reasoning_tokens": usage.get("reasoning_output_tokens")},
    }


def is_typed(text: str) -> bool:
    """Whether a person typed a text that is recorded as the person's."""
    return _INJECTED.match(text) is None


def _typed(said: Utterance) -> Step:
    """A message that a person typed, or a text that the program recorded as the person's."""
    if not is_typed(said.text):
        return _by_program(said)
    text = _IMAGE.sub("", said.text)
    if text.lstrip().startswith(_HEADINGS) and _REQUEST in text:
        text = text.partition(_REQUEST)[2].strip()
    return said if text == said.text else Utterance(said.role, said.name, text)


def _by_program(said: Utterance) -> Step:
    return Utterance("system", _PROGRAM, said.text)


def _outcome(result: ToolResult) -> ToolResult:
    """A result, failed if the exit code says so."""
    if not isinstance(result.output, str):
        return result
    written = _EXIT.match(result.output)
    if written is not None:
        return _failed(result, result.output, int(written[1]))
    if not result.output.startswith("{") or not PIECE.holds(result.output):
        return result
    try:
        held = msgspec.json.decode(result.output, type=dict[str, JSON])
    except (msgspec.DecodeError, RecursionError):
        return result
    metadata = held.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, Mapping) else None
    output = held.get("output", result.output) if metadata is not None else result.output
    return _failed(result, output, code if isinstance(code, int) else 0)


def _failed(result: ToolResult, output: JSON, code: int) -> ToolResult:
    if not code:
        return ToolResult(result.call, output)
    text = output if isinstance(output, str) else ""
    return ToolResult(result.call, output, text.strip() or f"exit code {code}")


# --- turns that a person took back ----------------------------------------------------------------


_BACK: Final = b"thread_rolled_back"
_USER: Final = b"response_item"


class Branch(NamedTuple):
    """Lines that were left: their numbers, from the first to the last."""

    first: int
    last: int

    def holds(self, number: int) -> bool:
        """Whether it contains a line."""
        return self.first <= number <= self.last


class _Part(msgspec.Struct):
    text: str = ""


class _RollbackPayload(msgspec.Struct):
    type: str = ""
    role: str = ""
    content: list[_Part] | str = []
    num_turns: int = 0


class _RollbackLine(msgspec.Struct):
    payload: _RollbackPayload | None = None


def branches_in(pieces: Iterator[Piece]) -> list[Branch]:
    """The branches of a rollout, in the order in which they were left."""
    turns: list[int] = []
    left: list[Branch] = []
    for piece in pieces:
        data = bytes(piece.data)
        if _BACK not in data and _USER not in data[:200]:
            continue
        payload = _payload(data)
        if payload is None:
            continue
        if payload.type == "message" and payload.role == "user" and _said(payload):
            turns.append(piece.number)
        elif payload.type == _BACK.decode() and payload.num_turns > 0 and turns:
            back = min(payload.num_turns, len(turns))
            left.append(Branch(turns[-back], piece.number))
            del turns[-back:]
    return left


def _payload(data: bytes) -> _RollbackPayload | None:
    try:
        return decode(data, _RollbackLine).payload
    except InvalidInput:
        return None  # of another shape, or broken, which is reported when it is read


def _said(payload: _RollbackPayload) -> bool:
    content: JSON = payload.content if isinstance(payload.content, str) else None
    if content is None and not isinstance(payload.content, str):
        content = "\n".join(part.text for part in payload.content)
    return is_typed(str(content))


# --- the importer for rollouts of Codex -----------------------------------------------------------


_NAME: Final = "codex"
_ITEMS: Final = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "local_shell_call"}
)
_SAID: Final = ("cwd", "cli_version", "originator", "model_provider", "model")


class _About(msgspec.Struct):
    """The known facts about a session: id, model, start, and program."""

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

    name = _NAME
    about = "rollouts of Codex"

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
            yield Diagnostic("difference", "a file without a conversation", str(source))
            return
        about = _survey(source, lines(), reading)
        left = branches_in(lines())
        void = [branch for branch in left if not any(_within(branch, other) for other in left)]
        yield from _session(about, source, reading, lines(), void)
        for number, branch in enumerate(left):
            # It shares the part of the main line before the branch.
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
        participants=Participants((), (AGENT,) if about.helper else (HUMAN, AGENT)),
        start=about.start,
        models={AGENT: about.model},
        policies={AGENT: _NAME},
        config={_NAME: about.said} if about.said else {},
        forked_from=origin,
    )
    return read_transcript(transcript, reading)


def _survey(source: Path, lines: Iterator[Piece], reading: Reading) -> _About:
    """The known facts about a session; stops reading lines once it has them all."""
    found = _About(session=source.stem)
    named = False
    for piece in lines:
        try:
            head = decode(piece.data, _Head)
        except InvalidInput:
            continue  # it is reported when it is read
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
) -> Iterator[Entry | Diagnostic]:
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
            yield Diagnostic("problem", f"invalid line of a rollout: {error}", piece.where)
            continue
        yield Entry(piece.number, piece.where, seconds_of(time, reading.zone), steps)


def _read(piece: Piece) -> tuple[str, Mapping[str, JSON], str | None]:
    """The kind of a line, its contents and its time; in older files, a line is an item itself."""
    line = decode(piece.data, _Line)
    if line.payload is not None:
        return line.type, line.payload, line.timestamp
    if line.type in _ITEMS:
        return "response_item", decode(piece.data, dict[str, JSON]), line.timestamp
    if not line.type and (line.id is not None or line.record_type is not None):
        return "session_meta", {}, line.timestamp
    raise InvalidInput("it lacks a payload")


def _bytes(piece: Piece) -> bytes:
    return bytes(piece.data).strip()
