"""The protocol of importers, which convert another tool's log into Duolog sessions.

An importer is found by its entry point in the group ``duolog.importers``: a factory without
arguments. It knows one format, and reads from files; it never sees the log that it fills.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from ...engine.events import Tokens
from ...engine.records import Draft, Redact
from ...engine.redacting import redact_secrets
from .json_sniff import Shape

__all__ = ("Diagnostic", "DiagnosticKind", "Foreign", "Found", "Importer", "Reading")

DiagnosticKind = Literal["problem", "difference"]
"""See ``Diagnostic``."""


class Foreign(NamedTuple):
    """An event of an imported session.

    Attributes:
        session: id of the session: the same whenever and from wherever the source is read.
        stream: the trace, or the importer's measurement stream.
        draft: the event with its envelope.
    """

    session: str
    stream: str
    draft: Draft


class Diagnostic(NamedTuple):
    """Something that a person should know of an import.

    Attributes:
        kind: a ``problem``: something could not be read, and is missing in the log; or a
            ``difference`` on purpose to how the source, or its own analysis, has it.
        what: in words; the same words for the same kind of thing.
        where: the place in the source.
        session: the session that it is about, if any.
    """

    kind: DiagnosticKind
    what: str
    where: str
    session: str | None = None


Found: TypeAlias = Foreign | Diagnostic
"""The items that an importer reads: events, by session, each stream in order; and diagnostics."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How a source is to be read.

    Attributes:
        zone: of local times that do not say their zone; None for the zone of this machine.
        growing: another program is still writing the source: a last line without an end is not
            complete, and the content that a last message repeats may change.
        counted: by session, tokens of model calls that the log holds, by the version of the trace:
            if a source was cut off in a reply when it was imported, reading continues after the
            call that was counted there. Empty unless a log was compared.
        redact: removes secrets from each event; None for nothing.
    """

    zone: tzinfo | None = UTC
    growing: bool = False
    counted: Mapping[str, Mapping[int, Tokens]] = {}
    redact: Redact | None = redact_secrets


class Importer(Protocol):
    """Reads one format."""

    @property
    def name(self) -> str:
        """The name of the format, as after ``--format``."""
        ...

    @property
    def about(self) -> str:
        """The format in a few words, for messages."""
        ...

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a source looks like this format.

        Args:
            source: a file or a directory.
            shape: the shape of the file's beginning; None for a directory, or if it is not JSON.
        """
        ...

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads a source from beginning to end, one session after the other; blocks on files.

        Reading the same source again gives the same. Unreadable parts are reported as a ``problem``
        if the rest can still be read.

        Raises:
            InvalidInput: the source as a whole is not of this format, or cannot be read.
        """
        ...
