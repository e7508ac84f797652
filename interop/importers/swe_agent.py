"""The importer for trajectories of SWE-agent: one file, one session, read message by message.

The task text, which is the first message after the instructions, is the human's request. The
environment's answers are in messages of the user (older files) or of tools; demonstrations are left
out. A reply is a thought and an action; the thought is the agent's private note. A file without a
history has the same in its trajectory, step by step. Those of mini-swe-agent hold messages, in
which the action is a block of code or a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON, Tokens
from .anthropic import is_result, plain_text
from .chat import steps_of, text_of, usage_of
from .conversation.builder import Participants
from .conversation.steps import (
    AGENT,
    HUMAN,
    Ending,
    ModelUse,
    Omission,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from .conversation.transcript import Entry, Transcript, read_transcript
from .documents import Document
from .json_files import decode, load
from .json_sniff import Shape
from .json_stream import members_of
from .protocol import Diagnostic, Found, Reading

__all__ = ("SweAgentImporter",)

_NAME: Final = "swe-agent"
_COMMAND: Final = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n?```", re.DOTALL)
"""An action in a reply of mini-swe-agent."""
_EXIT: Final = "exit"


class _Answer(msgspec.Struct):
    model: str | None = None
    usage: JSON = None


class _Extra(msgspec.Struct):
    response: _Answer | None = None


class _Message(msgspec.Struct):
    role: str
    content: JSON = None
    thought: str | None = None
    action: str | None = None
    agent: str | None = None
    is_demo: bool | None = None
    tool_calls: JSON = None
    tool_call_ids: list[str] | None = None
    tool_call_id: str | None = None
    extra: _Extra | None = None


class _Stats(msgspec.Struct):
    tokens_sent: int | None = None
    tokens_received: int | None = None
    instance_cost: float | None = None


class _Info(msgspec.Struct):
    exit_status: str | None = None
    model_stats: _Stats | None = None


class _Done(msgspec.Struct):
    action: str | None = None
    observation: JSON = None
    thought: str | None = None
    response: JSON = None
    query: list[_Message] = []


class _Turn(NamedTuple):
    number: int
    where: str
    message: _Message


@final
class SweAgentImporter:
    """Reads trajectories of SWE-agent."""

    name = _NAME
    about = "trajectories of SWE-agent"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins like a trajectory."""
        if shape is None or shape.form != "object":
            return False
        if _is_of_mini(shape):
            return True
        if "history" not in shape.keys:
            return source.suffix == ".traj"
        return "role" in shape.inner.get("history", frozenset())

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the session in a file.

        Raises:
            InvalidInput: it cannot be read.
        """
        document = Document(source, str(source), None, members_of(source))
        if not {"history", "trajectory", "messages"} & document.members.keys():
            raise InvalidInput(f"{source} is not a SWE-agent trajectory: it lacks a history")
        session = f"{source.stem}-{document.digest()}"
        info = document.value("info", _Info) or _Info()
        transcript = Transcript(
            session=session,
            format=_NAME,
            where=str(source),
            entries=_entries(document, info, session),
            participants=Participants((), (HUMAN, AGENT)),
            policies={AGENT: _NAME},
            config={_NAME: {"exit_status": info.exit_status}},
        )
        yield from read_transcript(transcript, reading)


def _entries(document: Document, info: _Info, session: str) -> Iterator[Entry | Diagnostic]:
    reader = _Reader()
    number = 0
    for found in _turns(document, session):
        if isinstance(found, Diagnostic):
            yield found
            continue
        number, where, message = found
        try:
            yield Entry(number, where, None, tuple(reader.steps(message, number)))
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid message: {error}", where, session)
    yield Entry(number + 1, document.where, None, tuple(_ending(info)))


@final
class _Reader:
    """Reads messages in order."""

    def __init__(self) -> None:
        self._requested = False
        self._open_call = ""

    def steps(self, message: _Message, number: int) -> Iterator[Step]:
        """The steps of a message; raises InvalidInput if it is not a message."""
        if message.is_demo:
            yield Omission("a demonstration")
        elif message.role == "assistant":
            self._open_call = ""
            for step in _acted(message, number):
                self._open_call = step.call if isinstance(step, ToolCall) else self._open_call
                yield step
        elif message.role == "user" and not self._requested:
            self._requested = True
            yield Utterance(HUMAN, None, _text(message.content))
        elif message.role in ("user", "tool"):
            ids = message.tool_call_ids or ([self._open_call] if self._open_call else [])
            text, self._open_call = _text(message.content), ""
            yield from (ToolResult(call, text) for call in ids)
            if not ids:
                yield Utterance("system", None, text)
        else:
            yield Utterance("system", None, _text(message.content))


def _turns(document: Document, session: str) -> Iterator[_Turn | Diagnostic]:
    """The messages of a history; those that a trajectory's steps come to, if there is none."""
    mini = "messages" in document.members and "history" not in document.members
    if "history" not in document.members and not mini:
        yield from _done(document, session)
        return
    listed = document.elements("messages" if mini else "history")
    for number, data in enumerate(listed, start=1):
        where = f"{document.where}, message {number}"
        try:
            message = load(data, _Message, "")
            if message.role != _EXIT:  # the information says how it ended
                yield _Turn(number, where, _of_mini(message) if mini else message)
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid message{error}", where, session)


def _done(document: Document, session: str) -> Iterator[_Turn | Diagnostic]:
    number = 0
    for step, data in enumerate(document.elements("trajectory"), start=1):
        where = f"{document.where}, step {step}"
        try:
            done = decode(data, _Done)
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid step: {error}", where, session)
            continue
        messages = list(done.query) if step == 1 else []
        thought = done.thought if done.thought is not None else _text(done.response)
        messages.append(_Message(role=AGENT, thought=thought, action=done.action))
        if done.observation is not None:
            messages.append(_Message(role="tool", content=done.observation))
        for message in messages:
            number += 1
            yield _Turn(number, where, message)


def _is_of_mini(shape: Shape) -> bool:
    """Whether a file begins like a trajectory of mini-swe-agent."""
    return "messages" in shape.keys and "model_stats" in shape.inner.get("info", ())


def _of_mini(message: _Message) -> _Message:
    """The message with its action, and the ids of the call that it answers, if they belong."""
    if message.tool_call_id is not None:
        return msgspec.structs.replace(message, tool_call_ids=[message.tool_call_id])
    text = _text(message.content)
    found = _COMMAND.search(text)
    if found is None or message.role != AGENT or message.tool_calls:
        return message
    return msgspec.structs.replace(message, thought=text[: found.start()].strip(), action=found[1])


def _acted(message: _Message, number: int) -> Iterator[Step]:
    """A thought and an action: a call, or a command as text; and the model's call, if it is told."""
    answer = message.extra.response if message.extra is not None else None
    tokens = usage_of(answer.usage) if answer is not None else None
    if answer is not None and tokens is not None:
        yield ModelUse(model=answer.model, tokens=tokens)
    thought = message.thought if message.thought is not None else _text(message.content)
    if thought.strip():
        yield Reasoning(thought)
    if message.tool_calls:
        item: Mapping[str, JSON] = {"role": AGENT, "tool_calls": message.tool_calls}
        yield from (step for step in steps_of(item) if isinstance(step, ToolCall))
    elif message.action is not None and message.action.strip():
        command = message.action.strip()
        name = command.split(maxsplit=1)[0]
        arguments = {"command": command}
        yield ToolCall(AGENT, None, f"action/{number}", name, arguments)


def _ending(info: _Info) -> Iterator[Step]:
    stats = info.model_stats
    if stats is not None and (stats.tokens_sent or stats.tokens_received):
        tokens = Tokens(prompt=stats.tokens_sent, completion=stats.tokens_received)
        yield ModelUse(tokens=tokens, cost=stats.instance_cost, purpose="act (all calls)")
    if info.exit_status is not None:
        yield Ending("ended", AGENT, info.exit_status)


def _text(content: JSON) -> str:
    blocks = content if isinstance(content, list) else ()
    results = [one for one in blocks if isinstance(one, dict) and is_result(one.get("type"))]
    return "\n".join(plain_text(one.get("content")) for one in results) or text_of(content)[0]
