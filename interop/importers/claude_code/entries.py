"""The lines of a session file: where each lies and what it hangs on, and its contents on demand.

A file may be long, so that only the envelopes are kept in memory; contents are read again when
their turn comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..json_files import decode, decoder_of
from ..protocol import Remark

__all__ = ("Attachment", "Envelope", "Line", "Message", "Source", "envelopes_in", "line_at")

_BOM: Final = b"\xef\xbb\xbf"
_OBJECT: Final = re.compile(rb"\{")
_AGENT: Final = re.compile(rb'"agentId"')
_LIST: Final = re.compile(rb"\[")
_RESULT: Final = re.compile(rb'"type"\s*:\s*"tool_result"')
"""Inside of a text each quotation mark has a backslash before it."""


class _Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"null")


class _Result(msgspec.Struct, rename="camel"):
    agent_id: str | None = None


class _Entry(msgspec.Struct, rename="camel"):
    type: str
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    is_sidechain: bool | None = None
    session_id: str | None = None
    agent_id: str | None = None
    subtype: str | None = None
    message: _Message | None = None
    tool_use_result: msgspec.Raw = msgspec.Raw(b"null")


@final
class Envelope(msgspec.Struct, frozen=True, gc=False):
    """What has to be known of every line.

    Attributes:
        number: of the line, from 1.
        offset: of the line in the file, in bytes.
        type: ``user``, ``assistant``, ``system`` and others.
        subtype: of a ``system`` line.
        uuid: its id; None for a line outside of the conversation.
        parent: id of the line that it hangs on.
        logical_parent: id of the line that it follows, where a summary took the place of what was
            before.
        sidechain: it belongs to a subagent.
        session: id of the session.
        agent: id of the subagent that it belongs to.
        result: it brings the result of a call.
        reply: id of the model's message that an ``assistant`` line is a part of.
        model: that wrote an ``assistant`` line.
        helper: id of the subagent whose result a ``user`` line brings.
    """

    number: int
    offset: int
    type: str
    subtype: str | None
    uuid: str | None
    parent: str | None
    logical_parent: str | None
    sidechain: bool
    session: str | None
    agent: str | None
    result: bool
    reply: str | None
    model: str | None
    helper: str | None


class Message(msgspec.Struct):
    """The model's or the user's message in a line."""

    content: JSON = None
    model: str | None = None
    usage: JSON = None


class Attachment(msgspec.Struct, rename="camel"):
    """What the program put beside the messages: among much else, what was typed meanwhile."""

    type: str = ""
    prompt: JSON = None
    command_mode: str | None = None


class Source(msgspec.Struct):
    """Who brought a line, where it says so."""

    kind: str | None = None


class Line(msgspec.Struct, rename="camel"):
    """The contents of a line."""

    type: str
    timestamp: str | None = None
    message: Message | None = None
    tool_use_result: JSON = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    attachment: Attachment | None = None
    origin: Source | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None


_decode_entry: Final = decoder_of(_Entry)
_decode_line: Final = decoder_of(Line)


def envelopes_in(path: Path, *, growing: bool = False) -> Iterator[Envelope | Remark]:
    """The envelopes of all lines, in order; a remark for a line that is none.

    Args:
        path: of the file.
        growing: a last line without an end is left out.

    Raises:
        InvalidInput: the file cannot be read.
    """
    offset = 0
    texts: dict[str | None, str | None] = {}
    before: Envelope | None = None
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                here, offset = offset, offset + len(line)
                if line.isspace():
                    continue
                if growing and not line.endswith(b"\n"):
                    return
                try:
                    found = _decode_entry(line.removeprefix(_BOM))
                    envelope = _envelope(found, number, here, before, texts)
                except InvalidInput as error:
                    yield Remark("problem", f"no entry: {error}", f"{path}, line {number}")
                    continue
                before = envelope
                yield envelope
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error


def line_at(file: BinaryIO, envelope: Envelope) -> tuple[Line, bytes]:
    """The contents of a line, and the line itself with what ends it.

    Raises:
        InvalidInput: they are not as the format has them.
    """
    file.seek(envelope.offset)
    data = file.readline().removeprefix(_BOM)
    return _decode_line(data), data


def _envelope(
    found: _Entry,
    number: int,
    offset: int,
    before: Envelope | None,
    texts: dict[str | None, str | None],
) -> Envelope:
    """The envelope of a line. A text that others have as well is the same object in all of them."""
    parent, reply = found.parent_uuid, None
    kind, message, kept = found.type, found.message, found.tool_use_result
    same = texts.setdefault
    helper = None
    if _OBJECT.match(kept) is not None and _AGENT.search(kept) is not None:
        helper = decode(kept, _Result).agent_id
    if message is not None and kind == "assistant":
        reply = message.id
    if before is not None:
        parent = before.uuid if parent == before.uuid else parent
        reply = before.reply if reply == before.reply else reply
    return Envelope(
        number,
        offset,
        same(kind, kind) or kind,
        found.subtype,
        found.uuid,
        parent,
        found.logical_parent_uuid,
        bool(found.is_sidechain),
        same(found.session_id, found.session_id),
        same(found.agent_id, found.agent_id),
        kind == "user" and message is not None and _has_result(message.content),
        reply,
        None if message is None else same(message.model, message.model),
        helper,
    )


def _has_result(content: msgspec.Raw) -> bool:
    return _LIST.match(content) is not None and _RESULT.search(content) is not None
