"""Messages that come in chunks, put together again."""

from __future__ import annotations

from typing import Final, NamedTuple, final

from ...engine.events import JSON
from .content import mapping_at, text_at, text_of_block

__all__ = ("CHUNKS", "Chunks", "Message")

CHUNKS: Final = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"})
"""Updates that hold a piece of a message."""


class Message(NamedTuple):
    """A message.

    Attributes:
        kind: of its chunks.
        text: all of it.
        time: of its last chunk.
    """

    kind: str
    text: str
    time: float


@final
class Chunks:
    """Puts chunks together: those of one kind and one message that follow each other."""

    def __init__(self) -> None:
        self._kind = ""
        self._id = ""
        self._pieces: list[str] = []
        self._time = 0.0

    def add(self, kind: str, update: JSON, time: float) -> Message | None:
        """Takes a chunk; gives the message before it, if the chunk begins another."""
        id = text_at(update, "messageId")
        done = self.take() if (kind, id) != (self._kind, self._id) else None
        self._kind, self._id, self._time = kind, id, time
        self._pieces.append(text_of_block(mapping_at(update, "content")))
        return done

    def take(self) -> Message | None:
        """The message so far, which is over; None if there is none."""
        text = "".join(self._pieces)
        self._pieces = []
        message = Message(self._kind, text, self._time) if text else None
        self._kind = self._id = ""
        return message
