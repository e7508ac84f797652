"""Records of another log, checked on their way into this one: many of them beside the event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias, TypeVar

import anyio.to_thread

from ..errors import DuologError
from ..events import Event, Forgotten, Unknown
from ..records import Draft, Record
from .append import Append, Redact, check_late, checked, prepare, redacted, restored

__all__ = ("Restoration", "restorations")

T = TypeVar("T")

Restoration: TypeAlias = Append | DuologError
"""An append that takes a record as it is, or why no log takes it."""

_AT_ONCE: Final = 1 << 15  # bytes of bodies that are checked at once; more are checked in a thread


async def restorations(records: Sequence[Record], redact: Redact | None) -> list[Restoration]:
    """For each record the append that takes it, behind the version before its own.

    Args:
        records: as another log held them.
        redact: called here for each that is not erased; a thread never calls it.
    """
    size = sum(len(record.body or b"") for record in records)
    if redact is None:
        return await _run(size, partial(_prepared, records, [None] * len(records)))
    known = await _run(size, partial(_checked, records))
    drafts: list[Draft | DuologError | None] = []
    for record, event in zip(records, known, strict=True):
        if isinstance(event, (DuologError, Forgotten)):
            drafts.append(event if isinstance(event, DuologError) else None)
            continue
        draft = Draft(
            event,
            record.actor,
            record.role,
            record.time,
            record.caller_id,
            record.cause,
            record.seen,
        )
        drafts.append(_attempt(partial(redacted, draft, redact)))
    return await _run(size, partial(_prepared, records, drafts))


async def _run(size: int, function: Callable[[], T]) -> T:
    if size <= _AT_ONCE:
        return function()
    return await anyio.to_thread.run_sync(function, abandon_on_cancel=True)


def _checked(records: Sequence[Record]) -> list[Event | Unknown | Forgotten | DuologError]:
    return [_attempt(partial(checked, record)) for record in records]


def _prepared(
    records: Sequence[Record], drafts: Sequence[Draft | DuologError | None]
) -> list[Restoration]:
    return [
        draft if isinstance(draft, DuologError) else _attempt(partial(_append, record, draft))
        for record, draft in zip(records, drafts, strict=True)
    ]


def _append(record: Record, draft: Draft | None) -> Append:
    """The append of a record, or of what a redaction hook has made of it."""
    if draft is None:
        return restored(record)
    append = prepare(record.session, (draft,), record.stream, record.version - 1, None, None)
    if append.late:
        check_late(append)
    return append


def _attempt(function: Callable[[], T]) -> T | DuologError:
    try:
        return function()
    except DuologError as error:
        return error.with_traceback(None)
