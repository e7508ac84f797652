"""The hash chain of a log: it shows later whether a stream was changed after it was written.

For each record n of a stream, h_n = SHA-256 of h_(n-1), the envelope, and m_n, with m_n the
HMAC-SHA-256 of the body under a random salt of the session. Erasing a session deletes its salt with
its bodies. The chain can still be followed through m_n, but no body can be guessed from it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

import msgspec

from ...records import Record
from .checksum import envelope_of

__all__ = ("START", "link", "mac", "new_salt")

START: Final = bytes(32)
"""h_0 of every stream, and m_n of a body that was erased before this log got it."""

_encode = msgspec.json.Encoder().encode


def new_salt() -> bytes:
    """A salt for a new session."""
    return secrets.token_bytes(16)


def mac(salt: bytes | None, body: bytes | None) -> bytes:
    """m_n: the trace of a body in the chain."""
    return START if body is None or salt is None else hmac.digest(salt, body, "sha256")


def link(before: bytes, record: Record, body_mac: bytes) -> bytes:
    """h_n, from h_(n-1), a record's envelope and m_n."""
    return hashlib.sha256(before + _encode(envelope_of(record)) + body_mac).digest()
