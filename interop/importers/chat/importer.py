"""The importer for chat messages as OpenAI's interfaces have them: Chat Completions and Responses.

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
from ....engine.events import JSON, ModelCalled, SessionOpened, Tokens
from ....engine.records import ENVIRONMENT
from ..json_sniff import Shape
from ..protocol import Foreign, Found, Reading, Remark
from ..timestamps import seconds_of, zone_name
from ..trace_builder import TraceBuilder
from .files import Conversation, conversations_in, is_item, is_whole, stamp_of, usage_of
from .session import AGENT, Cast, ConversationBuilder
from .steps import Item, Step, steps_of

__all__ = ("ChatImporter",)

_NAME: Final = "chat"
_OTHERS: Final = frozenset({"termination_reason", "reward_info", "traj", "simulations"})


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
        return "chat messages as OpenAI's Chat Completions and Responses have them"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins with a message, an item, or an object that holds some."""
        if shape is None or shape.keys & _OTHERS:
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
    listed: list[tuple[int, Item, list[Step]]] = []
    for index, item in enumerate(found.items, start=1):
        try:
            listed.append((index, item, list(steps_of(item))))
        except InvalidInput as error:
            where = f"{found.where}, message {index}"
            yield Remark("problem", f"no message: {error}", where, found.session)
    if not listed:
        yield Remark("problem", "a conversation without messages", found.where, found.session)
        return
    builder = TraceBuilder(found.session)
    cast = Cast([step for _, _, steps in listed for step in steps])
    times = [seconds_of(stamp_of(item), reading.zone) for _, item, _ in listed]
    start = next((time for time in times if time is not None), None)
    yield _open(found, builder, cast, start, reading)
    talk = ConversationBuilder(builder, cast)
    model = found.about.get("model")
    for (index, item, steps), time in zip(listed, times, strict=True):
        now = builder.time if time is None else time
        usage = usage_of(item.get("usage"))
        if usage is not None:
            yield _call(builder, cast, item.get("model", model), "act", usage, now)
        yield from talk.add(index, steps, now, f"{found.where}, message {index}")
    usage = usage_of(found.about.get("usage"))
    if usage is not None:
        yield _call(builder, cast, model, "act (all calls)", usage, builder.time)


def _open(
    found: Conversation, builder: TraceBuilder, cast: Cast, start: float | None, reading: Reading
) -> Foreign:
    about = found.about
    imported: dict[str, JSON] = {"format": _NAME}
    if start is not None:
        imported["zone"] = zone_name(reading.zone)
    config: dict[str, JSON] = {"imported": imported}
    if isinstance(about.get("metadata"), Mapping) and about["metadata"]:
        config["metadata"] = about["metadata"]
    model, task = about.get("model"), about.get("task")
    opened = SessionOpened(
        task=task if isinstance(task, str) and task else _NAME,
        instance=found.session,
        participants=cast.participants(
            models={AGENT: model if isinstance(model, str) else None}, policies={}
        ),
        clock="virtual" if start is None else "utc",
        config=config,
    )
    return builder.put(opened, ENVIRONMENT, "environment", start or 0.0)


def _call(
    builder: TraceBuilder, cast: Cast, model: JSON, purpose: str, usage: Tokens, time: float
) -> Foreign:
    name = model if isinstance(model, str) and model else "unknown"
    called = ModelCalled(model=name, purpose=purpose, request="", tokens=usage)
    return builder.put(called, *cast.of(AGENT), time)
