"""Steps, out of the lines of a session file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import Tokens
from ..anthropic import blocks_of, is_result, plain_text, result_of, spoken, tokens_of, typed
from ..conversation.steps import (
    AGENT,
    ForeignEntry,
    Interruption,
    ModelUse,
    Omission,
    Step,
    Utterance,
)
from .entries import (
    INTERRUPTED,
    Attachment,
    Envelope,
    Line,
    command_in,
    edited_file,
    is_injected,
    note_in,
    typed_part,
)
from .questions import QuestionReader

__all__ = ("StepReader",)

_SYNTHETIC: Final = "<synthetic>"
_PROGRAM: Final = "claude-code"
_QUEUED: Final = "queued_command"
_REMEMBERED: Final = 64  # replies that may continue after results of their calls


@final
class StepReader:
    """Reads lines of one actor in order.

    Args:
        name: the name of the agent; None for the main one.
        helper: it is a subagent, whose "user" is the agent that called it.
    """

    def __init__(self, name: str | None = None, *, helper: bool = False) -> None:
        self._name = name
        self._helper = helper
        self._questions = QuestionReader()
        self._usage: ModelUse | None = None
        self._reply: str | None = None
        self._counted: dict[str, Tokens] = {}

    def steps(self, envelope: Envelope, line: Line, data: bytes) -> list[Step]:
        """The steps of a line.

        Args:
            envelope: the envelope of the line.
            line: its contents.
            data: the line itself.

        Raises:
            InvalidInput: it is not as the format has it.
        """
        if line.type == "assistant":
            return self._spoken(envelope, line)
        if line.type == "user":
            return list(self._user(line))
        if line.attachment is not None and line.attachment.type == _QUEUED:
            return list(self._queued(line, line.attachment))
        known = note_in(envelope, line)
        if known is not None:
            return [Omission(f"{known} entries")]
        return [ForeignEntry(f"{_PROGRAM}.{line.type}", data.strip())]

    @property
    def owes(self) -> bool:
        """Whether the last reply's model call is not counted yet, since the reply may continue."""
        return self._usage is not None

    def goes_on(self, envelope: Envelope) -> bool:
        """Whether a line is a further part of the reply before it."""
        return envelope.reply is not None and envelope.reply == self._reply

    @property
    def due(self) -> ModelUse | None:
        """The model call of the last reply, as far as it is not counted; None for none."""
        usage, before = self._usage, self._counted.get(self._reply or "")
        if usage is None or before is None:
            return usage
        more = _more(usage.tokens, before)
        return None if more is None else msgspec.structs.replace(usage, tokens=more)

    def rest(self) -> list[Step]:
        """The model call of the reply that is over: its parts repeat the usage, and only the last
        has all of it. If a reply continued after something else, only the uncounted part.
        """
        due, usage, reply = self.due, self._usage, self._reply
        self._usage = self._reply = None
        if usage is not None and reply is not None:
            self._counted.pop(reply, None)
            self._counted[reply] = usage.tokens
            if len(self._counted) > _REMEMBERED:
                del self._counted[next(iter(self._counted))]
        return [] if due is None else [due]

    def _spoken(self, envelope: Envelope, line: Line) -> list[Step]:
        message = line.message
        if message is None:
            raise InvalidInput("it lacks a message")
        blocks = blocks_of(message.content)
        if message.model == _SYNTHETIC or line.is_api_error_message:
            return [Utterance("system", _PROGRAM, plain_text(blocks))]
        said = [spoken(block, self._name) for block in blocks]
        steps = list(self._questions.read(step for step in said if step is not None))
        tokens = tokens_of(message.usage)
        if message.model or tokens is not None:
            self._reply = envelope.reply
            self._count(message.model, tokens or Tokens())
        if self._reply is None:
            steps += self.rest()
        return steps

    def _count(self, model: str | None, tokens: Tokens) -> None:
        before = self._counted.get(self._reply or "")
        if self._usage is not None:
            before = self._usage.tokens
        if before is not None and before != tokens:
            most = {
                field: max(one for one in (getattr(before, field), value) if one is not None)
                for field, value in msgspec.structs.asdict(tokens).items()
                if value is not None
            }
            tokens = msgspec.structs.replace(before, **most)
        self._usage = ModelUse(model=model, tokens=tokens, role=AGENT, name=self._name)

    def _user(self, line: Line) -> Iterator[Step]:
        blocks = blocks_of(line.message.content if line.message else None)
        texts: list[str] = []
        others: list[str] = []
        for block in blocks:
            if is_result(block["type"]):
                result = result_of(block)
                if not self._questions.is_open(result.call):
                    yield Omission("a result of a call that is not in the file")
                    continue
                yield from self._questions.read([result], line.tool_use_result)
                edited = edited_file(line.tool_use_result, self._name)
                if edited is not None and result.error is None:
                    yield edited
            elif block["type"] == "text":
                texts.append(str(block.get("text") or ""))
            else:
                others.append(str(block["type"]))
        if texts or others:
            yield from self._typed(line, texts, others)

    def _queued(self, line: Line, held: Attachment) -> Iterator[Step]:
        """Text that a person typed while the agent worked; the agent reads it between two calls."""
        blocks = blocks_of(held.prompt)
        texts = [str(block.get("text") or "") for block in blocks if block["type"] == "text"]
        others = [str(block["type"]) for block in blocks if block["type"] != "text"]
        if held.command_mode in (None, "prompt"):
            yield from self._typed(line, texts, others)
        elif texts:
            yield Utterance("system", _PROGRAM, "\n".join(texts))

    def _typed(self, line: Line, texts: Sequence[str], others: Sequence[str]) -> Iterator[Step]:
        brought = line.origin is not None and line.origin.kind not in (None, "human")
        brought = brought or line.source_tool_use_id is not None  # by a tool
        if line.is_meta or line.is_compact_summary or self._helper or brought:
            if texts:
                yield Utterance("system", _PROGRAM, "\n".join(texts))
            return
        own: list[str] = []
        for text in texts:
            if text.lstrip().startswith(INTERRUPTED):
                yield Interruption("interrupted by the user", self._name)
            elif (command := command_in(text)) is not None:
                own.append(command)
            elif is_injected(text):
                yield Utterance("system", _PROGRAM, text)
            else:
                said = typed_part(text)
                if said != text:
                    yield Omission("what the program put around a message")
                own.append(said)
        yield from typed(own, others)


def _more(tokens: Tokens, before: Tokens) -> Tokens | None:
    """Tokens used since an earlier count of the same call; None if there are none."""
    more = {
        field: value - (getattr(before, field) or 0)
        for field, value in msgspec.structs.asdict(tokens).items()
        if value is not None and value > (getattr(before, field) or 0)
    }
    return Tokens(**more) if more else None
