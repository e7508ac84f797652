"""Removes secrets from events before they are recorded: by default, never, or by your own patterns.

Duolog recognises keys and tokens by their documented forms and replaces them anywhere in an event.
A text without any stays the same, byte for byte. A replaced secret is not replaced again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from . import codec
from .errors import CodecError, InvalidInput
from .events import JSON, SnapshotTaken, Unknown
from .files import with_digests
from .patterns import compiled
from .records import Draft, Redact
from .redaction import REMOVED, may_hold_forms, redact_forms
from .settings import settings_text

__all__ = ("DEFAULT", "OFF", "redact_secrets", "redaction_in", "redaction_of", "said_of")

DEFAULT: Final = "default"
"""The name of the redaction that applies everywhere unless a user chooses another."""

OFF: Final = "off"
"""The name that turns redaction off."""


def redact_secrets(draft: Draft) -> Draft:
    """The draft with keys and tokens of documented forms replaced; the same if it has none."""
    try:
        body = codec.encode_body(draft.event)
    except CodecError:  # nothing of it will be written: the log refuses it
        return draft
    return _redacted(draft, body, redact_forms) if may_hold_forms(body.decode()) else draft


def redaction_of(name: str) -> Redact | None:
    """The redaction that a user names.

    Args:
        name: ``default``, ``off``, or a file with a regular expression on each line. Their matches
            are replaced in addition to those of the default. Empty lines and lines that begin with
            # do not count.

    Raises:
        InvalidInput: there is no such file, or a line is not a regular expression, or could take
            forever (see ``duolog.engine.patterns``).
    """
    if name in (DEFAULT, OFF):
        return redact_secrets if name == DEFAULT else None
    return _by_patterns(_patterns_in(Path(name)))


def said_of(name: str) -> JSON:
    """A session's record of its redaction; None for the default, which is not recorded.

    Raises:
        InvalidInput: as ``redaction_of``.
    """
    if name == DEFAULT:
        return None
    return OFF if name == OFF else _patterns_in(Path(name))


def redaction_in(said: JSON) -> Redact | None:
    """The redaction that a session says it was recorded with; see ``said_of``.

    Raises:
        InvalidInput: it says something else.
    """
    if said is None:
        return redact_secrets
    if said == OFF:
        return None
    if isinstance(said, str) or not isinstance(said, Sequence):
        raise InvalidInput(f"the session does not say how it was redacted: {said!r}")
    return _by_patterns([str(one) for one in said])


def _patterns_in(path: Path) -> list[str]:
    try:
        lines = settings_text(path).splitlines()
    except InvalidInput as error:
        raise InvalidInput(
            f"--redact expects {DEFAULT}, {OFF} or a file of patterns; {error}"
        ) from None
    found = [line for line in lines if line.strip() and not line.startswith("#")]
    for number, line in enumerate(found, start=1):
        try:
            compiled(line)
        except InvalidInput as error:
            raise InvalidInput(f"{path}, pattern {number}: {error}") from None
    return found


def _by_patterns(patterns: Sequence[str]) -> Redact:
    found = [compiled(one) for one in patterns]

    def clean(text: str) -> str:
        for one in found:
            text = one.sub(REMOVED, text)
        return redact_forms(text)

    def redact(draft: Draft) -> Draft:
        try:
            body = codec.encode_body(draft.event)
        except CodecError:
            return draft
        return _redacted(draft, body, clean)

    return redact


def _redacted(draft: Draft, body: bytes, clean: Callable[[str], str]) -> Draft:
    before: JSON = msgspec.json.decode(body)
    held = _cleaned(before, clean)
    if held == before:
        return draft
    event = draft.event
    if isinstance(event, Unknown):
        event = Unknown(event.kind, event.schema, msgspec.json.encode(held))
    else:
        event = msgspec.convert(held, type=type(event))
        if isinstance(event, SnapshotTaken):
            event = with_digests(event)
    return msgspec.structs.replace(draft, event=event)


def _cleaned(value: JSON, clean: Callable[[str], str]) -> JSON:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(key): _cleaned(held, clean) for key, held in value.items()}
    if isinstance(value, Sequence):
        return list(map(partial(_cleaned, clean=clean), value))
    return value
