"""A message of a recorded session that comes in pieces, as a model streams it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar, final

from ..engine.errors import InvalidInput, error_text
from .receipt import Awaited, Receipt

__all__ = ("StreamedMessage",)

R = TypeVar("R")


@final
class StreamedMessage(Generic[R]):
    """A message that comes in pieces; it is recorded as one when the block is left.

    If the block raises, the text so far is recorded as the beginning of a message, with the reason.
    If there is no text yet, nothing is recorded.

    Args:
        say: records the text, and why it was cut off if it was.
    """

    def __init__(self, say: Callable[[str, str | None], R]) -> None:
        self._say = say
        self._pieces: list[str] = []

    def write(self, piece: str) -> None:
        """Takes the next piece.

        Raises:
            InvalidInput: it is not a text.
        """
        if not isinstance(piece, str):
            raise InvalidInput(f"a piece must be a text, not {type(piece).__name__}")
        self._pieces.append(piece)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    async def __aenter__(self: StreamedMessage[Awaited]) -> StreamedMessage[Awaited]:
        return self

    async def __aexit__(
        self: StreamedMessage[Awaited],
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.text:
            await self._say(self.text, _why(kind, error))

    def __enter__(self: StreamedMessage[Receipt]) -> StreamedMessage[Receipt]:
        return self

    def __exit__(
        self: StreamedMessage[Receipt],
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.text:
            self._say(self.text, _why(kind, error))


def _why(kind: type[BaseException] | None, error: BaseException | None) -> str | None:
    """Why a stream ended early; None if it did not."""
    if kind is None:
        return None
    # The message of a cancellation is about the program's tasks, so it is left out.
    said = error_text(error) if isinstance(error, Exception) else ""
    return f"{kind.__name__}: {said}" if said else kind.__name__
