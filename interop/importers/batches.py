"""What an importer reads, batch by batch: without secrets, encoded, and split by session and stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from ...engine.errors import InvalidInput
from ...engine.events import SessionOpened
from ...engine.plugins import PluginCall
from ...engine.records import Draft
from .intake import taken_in
from .protocol import Found, Importer, Reading, Remark

__all__ = ("BATCH", "BYTES", "Batch", "Part", "Run", "next_batch", "read_from")

BATCH: Final = 1024
"""Events in a batch."""
BYTES: Final = 1 << 20
"""Bytes of bodies in a batch; of one event there may be more."""


class Run(NamedTuple):
    """Events of one stream, one behind the other.

    Attributes:
        session: that they belong to.
        stream: that they belong to.
        opened: the opening that they begin with; None where the session goes on.
        drafts: the events, without secrets.
        bodies: of the events, encoded.
    """

    session: str
    stream: str
    opened: SessionOpened | None
    drafts: list[Draft]
    bodies: list[bytes]


Part: TypeAlias = Run | Remark
"""A part of a batch."""


class Batch(NamedTuple):
    """What was read next.

    Attributes:
        parts: in order.
        size: bytes of bodies.
        error: why it goes no further, if it does not.
    """

    parts: Sequence[Part]
    size: int
    error: InvalidInput | None = None


def read_from(source: Path, importer: Importer, reading: Reading) -> Iterator[Found]:
    """What an importer reads, whatever the source holds.

    Raises:
        InvalidInput: the source as a whole cannot be read.
        PluginFailed: the importer raised what is no ``Exception``.
    """
    try:
        with PluginCall(f"importer {importer.name!r}"):
            found = importer.read(source, reading)
        yield from found
    except RecursionError as error:
        raise InvalidInput(f"{source}: something in it nests too deeply to be read") from error
    except OSError as error:
        raise InvalidInput(f"cannot read {source}: {error.strerror or error}") from error


def next_batch(found: Iterator[Found]) -> Batch | None:
    """The next batch; None at the end. Blocks, as the importer does.

    Raises:
        PluginFailed: the importer raised what is no ``Exception``.
    """
    parts: list[Part] = []
    run: Run | None = None
    count = size = 0
    try:
        with PluginCall("the importer"):
            for one in found:
                count += 1
                fit = one if isinstance(one, Remark) else taken_in(one)
                if isinstance(fit, Remark):
                    parts.append(fit)
                    run = None
                else:
                    (session, stream, draft), body = fit
                    event = draft.event
                    opened = event if isinstance(event, SessionOpened) else None
                    if run is None or opened or stream != run.stream or session != run.session:
                        run = Run(session, stream, opened, [], [])
                        parts.append(run)
                    run.drafts.append(draft)
                    run.bodies.append(body)
                    size += len(body)
                if count >= BATCH or size >= BYTES:
                    break
    except InvalidInput as error:
        return Batch(parts, size, error)
    return Batch(parts, size) if parts else None
