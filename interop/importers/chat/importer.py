"""The importer for chat messages as OpenAI's interfaces have them, Chat Completions and Responses, and
as Anthropic's has them: Messages.

A file holds one conversation (a list of messages or items, or one on each line), or several (objects
with ``messages``, or with ``input`` and ``output``; a list of them, or one on each line). What users
and assistants say are messages, tool calls are actions with their results, reasoning is a note of
the assistant's own; instructions are messages by the environment that only the assistants see.
Arguments that are no JSON object stay as they were written.

A conversation never says that it has ended, so its session stays open. One whose messages have no
times is on a virtual clock that stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, final

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..conversation.cast import Cast
from ..conversation.questions import QuestionReader
from ..conversation.steps import AGENT, ModelUse
from ..conversation.transcript import Entry, Transcript, beginning_of, read_transcript
from ..json_sniff import Shape
from ..protocol import Found, Reading, Remark
from ..timestamps import seconds_of
from .files import Conversation, conversations_in, is_item, is_whole, stamp_of, usage_of
from .steps import Item, steps_of

__all__ = ("ChatImporter",)

_NAME: Final = "chat"
_OTHERS: Final = frozenset(
    "termination_reason reward_info traj simulations leafUuid parentUuid traceId observations"
    " model_stats".split()
)
"""Keys of other formats, some of them in their ``info``."""


@final
class ChatImporter:
    """Reads chat messages."""

    @property
    def name(self) -> str:
        """``chat``."""
        return _NAME

    @property
    def about(self) -> str:
        """In a few words."""
        return "chat messages as OpenAI's Chat Completions and Responses, or Anthropic's Messages, have them"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins with a message, an item, or an object that holds some."""
        if shape is None or (shape.keys | shape.inner.get("info", frozenset())) & _OTHERS:
            return False
        return is_item(shape) or is_whole(shape)

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads all conversations.

        Raises:
            InvalidInput: there are none, or a file cannot be read.
        """
        for found in conversations_in(source):
            if isinstance(found, Remark):
                yield found
            else:
                yield from _read(found, reading)


def _read(found: Conversation, reading: Reading) -> Iterator[Found]:
    model = found.about.get("model")
    entries: list[Entry] = []
    questions = QuestionReader()
    for index, item in enumerate(found.items, start=1):
        where = f"{found.where}, message {index}"
        try:
            used = _usage(item, item.get("model", model), "act", _name(item))
            steps = (*used, *questions.read(steps_of(item)))
        except InvalidInput as error:
            yield Remark("problem", f"no message: {error}", where, found.session)
            continue
        entries.append(Entry(index, where, seconds_of(stamp_of(item), reading.zone), steps))
    if not entries:
        yield Remark("problem", "a conversation without messages", found.where, found.session)
        return
    named = (_name(item) for item in found.items if item.get("role") == AGENT)
    whole = _usage(found.about, model, "act (all calls)", next(named, None))
    entries.append(Entry(len(found.items) + 1, found.where, None, whole))
    metadata, task = found.about.get("metadata"), found.about.get("task")
    transcript = Transcript(
        session=found.session,
        format=_NAME,
        where=found.where,
        entries=entries,
        cast=Cast(step for entry in entries for step in entry.steps),
        start=beginning_of(entries),
        task=task if isinstance(task, str) else None,
        models={AGENT: model if isinstance(model, str) else None},
        config={"metadata": metadata} if isinstance(metadata, Mapping) and metadata else {},
    )
    yield from read_transcript(transcript, reading)


def _name(item: Item) -> str | None:
    """Who sent a message, where its role does not say it already."""
    name = item.get("name")
    return name if isinstance(name, str) and name else None


def _usage(item: Item, model: JSON, purpose: str, agent: str | None) -> tuple[ModelUse, ...]:
    """The model call behind a message, where its tokens are counted."""
    usage = usage_of(item.get("usage"))
    if usage is None:
        return ()
    named = model if isinstance(model, str) and model else None
    return (ModelUse(model=named, tokens=usage, purpose=purpose, name=agent),)
