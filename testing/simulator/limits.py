"""Small limits, so that small runs reach what large ones do: full queues and buffers, caches that evict,
checkpoints of the write-ahead log, batches of reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...engine.log import append, append_writer, decide, memory, subscriptions
from ...engine.log.exchange import copying, jsonl_export
from ...engine.log.sqlite import commit, derived, file, reader, writer

__all__ = ("small_limits",)


@contextmanager
def small_limits() -> Iterator[None]:
    """Makes the limits of logs small in this process."""
    own: list[tuple[object, str, float]] = [
        (subscriptions, "BUFFER", 4),
        (memory, "_BATCH", 3),
        (copying, "_BATCH", 3),
        (copying, "_ERASURES", 0.5),
        (decide, "_SESSIONS", 1),
        (commit, "_FOREIGN", 2),
        (reader, "BATCH", 4),
        (reader, "_AT_ONCE", 3),
        (derived, "AT_ONCE", 2),
        (jsonl_export, "BATCH", 3),
        (append, "_AT_ONCE", 6000),
        (append_writer, "_APPENDS", 2),
        (append_writer, "_AT_ONCE", 4000),
        (writer, "_EVENTS", 5),
        (file, "_CHECKPOINT", 12),
        (file, "_CACHE", 128),
    ]
    before = [(where, name, getattr(where, name)) for where, name, _ in own]
    try:
        for where, name, value in own:
            setattr(where, name, value)
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)
