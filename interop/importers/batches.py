"""Reads from importers in batches: without secrets, encoded, split by session and stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from ...engine import codec
from ...engine.errors import CodecError, InvalidInput
from ...engine.events import SessionOpened
from ...engine.log.append import redacted
from ...engine.plugins import PluginCall
from ...engine.records import Draft, Redact
from ...engine.redacting import redact_secrets
from ...engine.redaction import may_hold_forms
from ...engine.validation import written
from .protocol import Diagnostic, Foreign, Found, Importer, Reading

__all__ = ("BATCH", "BYTES", "Batch", "Part", "Run", "next_batch", "read_from", "taken_in", "unfit")


# --- every event that is imported, by whatever door --------------------------------------------


def taken_in(
    one: Foreign, redact: Redact | None = redact_secrets
) -> tuple[Foreign, bytes] | Diagnostic:
    """The event without secrets, and its body; a diagnostic if it cannot be written as JSON.

    The log itself checks everything else: see ``unfit``.
    """
    try:
        body = codec.encode_body(one.draft.event)
        if redact is None or (redact is redact_secrets and not may_hold_forms(body.decode())):
            return one, body
        draft = redacted(one.draft, redact)
        return one._replace(draft=draft), codec.encode_body(draft.event)
    except CodecError as error:
        return _diagnostic(one.session, error)


def unfit(session: str, draft: Draft) -> Diagnostic | None:
    """Why no log can hold an event; None if it can."""
    try:
        written(draft.event, *codec.kind_of(draft.event))
    except CodecError as error:
        return _diagnostic(session, error)
    return None


def _diagnostic(session: str, error: CodecError) -> Diagnostic:
    return Diagnostic("problem", str(error), f"session {session}", session)


# --- what an importer reads, batch by batch -------------------------------------------------------


BATCH: Final = 1024
"""Events in a batch."""
DIAGNOSTICS: Final = 10_000
"""Diagnostics of an import that are kept; others are counted."""
BYTES: Final = 1 << 20
"""Bytes of bodies in a batch; of one event there may be more."""


class Run(NamedTuple):
    """Events of one stream, one behind the other.

    Attributes:
        session: that they belong to.
        stream: that they belong to.
        opened: the opening that they begin with; None if the session continues.
        drafts: the events, without secrets.
        bodies: the bodies of the events, encoded.
    """

    session: str
    stream: str
    opened: SessionOpened | None
    drafts: list[Draft]
    bodies: list[bytes]


Part: TypeAlias = Run | Diagnostic
"""A part of a batch."""


class Batch(NamedTuple):
    """The next part of the source.

    Attributes:
        parts: in order.
        size: bytes of bodies.
        error: why it goes no further, if it does not.
    """

    parts: Sequence[Part]
    size: int
    error: InvalidInput | None = None


def read_from(source: Path, importer: Importer, reading: Reading) -> Iterator[Found]:
    """Reads from an importer, whatever the source holds.

    Raises:
        InvalidInput: the source as a whole cannot be read.
        PluginFailed: the importer raised something that is not an ``Exception``.
    """
    try:
        with PluginCall(f"importer {importer.name!r}"):
            found = importer.read(source, reading)
        yield from _bounded(found, source, importer)
    except RecursionError as error:
        raise InvalidInput(f"{source}: something in it nests too deeply to be read") from error
    except OSError as error:
        raise InvalidInput(f"cannot read {source}: {error.strerror or error}") from error


def _bounded(found: Iterator[Found], source: Path, importer: Importer) -> Iterator[Found]:
    """Limits the diagnostics to a number that a person can read and memory can hold.

    Raises:
        InvalidInput: there are only problems.
    """
    some = False
    diagnostics = 0
    for one in found:
        if isinstance(one, Diagnostic):
            diagnostics += 1
            if diagnostics > DIAGNOSTICS and not some:
                raise InvalidInput(
                    f"{source} does not read as {importer.name}: {one.where}: {one.what}; "
                    f"so do {DIAGNOSTICS:,} places before it, and no session was found"
                )
            if diagnostics > DIAGNOSTICS:
                continue
        else:
            some = True
        yield one
    if diagnostics > DIAGNOSTICS:
        what = f"{diagnostics - DIAGNOSTICS:,} more diagnostics were left out"
        yield Diagnostic("problem", what, str(source))


def next_batch(found: Iterator[Found], redact: Redact | None = redact_secrets) -> Batch | None:
    """The next batch; None at the end. Blocks, as the importer does.

    Raises:
        PluginFailed: the importer raised something that is not an ``Exception``.
    """
    parts: list[Part] = []
    run: Run | None = None
    count = size = 0
    try:
        with PluginCall("the importer"):
            for one in found:
                count += 1
                fit = one if isinstance(one, Diagnostic) else taken_in(one, redact)
                if isinstance(fit, Diagnostic):
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
