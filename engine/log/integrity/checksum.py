"""The checksum of a record: it shows later whether what is read is what was written.

CRC-32 over the envelope, as JSON, and over the body behind it. It finds any damage of up to 32 bits
in a row, and all but one in four billion of the rest. Unlike the hash chain, it does not protect
against deliberate changes. The checksum of an erased record covers its envelope alone, so it
reveals nothing about the body.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

import msgspec

from ...records import Record

__all__ = ("Envelope", "checksum", "checksum_of", "envelope_checksum", "envelope_of")

Envelope = tuple[int, str, str, int, str, int, float, str, str, str | None, int | None, str | None]
"""Position, session, stream, version, kind, schema, time, actor, role, cause, seen, caller's id."""

_encode: Final = msgspec.json.Encoder().encode


def envelope_checksum(envelope: Envelope) -> int:
    """The checksum of an envelope, and of a record whose body was erased."""
    return crc32(_encode(envelope))


def checksum(envelope: int, body: bytes | None) -> int:
    """The checksum of a record, from that of its envelope."""
    return envelope if body is None else crc32(body, envelope)


def checksum_of(record: Record, *, erased: bool = False) -> int:
    """The checksum of a record as it is, or as it is without its body."""
    envelope = envelope_checksum(envelope_of(record))
    return envelope if erased else checksum(envelope, record.body)


def envelope_of(record: Record) -> Envelope:
    """The envelope of a record, in the order in which checksums and chains take it."""
    return (
        record.position,
        record.session,
        record.stream,
        record.version,
        record.kind,
        record.schema,
        record.time,
        record.actor,
        record.role,
        record.cause,
        record.seen,
        record.caller_id,
    )
