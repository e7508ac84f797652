"""The lines of a session file: the place and parent of each, and its contents on demand.

A file may be long, so only the envelopes are kept in memory; contents are read again when needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..conversation.steps import AGENT, FileEdit
from ..json_files import PIECE, decode, decoder_of
from ..protocol import Diagnostic

__all__ = (
    "INTERRUPTED",
    "Attachment",
    "Envelope",
    "Line",
    "command_in",
    "edited_file",
    "envelopes_in",
    "is_injected",
    "line_at",
    "note_in",
    "typed_part",
)

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
    """The facts kept about every line.

    Attributes:
        number: the number of the line, from 1.
        offset: the offset of the line in the file, in bytes.
        type: ``user``, ``assistant``, ``system`` and others.
        subtype: the subtype of a ``system`` line.
        uuid: its id; None for a line outside of the conversation.
        parent: id of its parent line.
        logical_parent: id of the line that it follows, if a summary took the place of what was
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
    """Something the program added to the messages, such as text typed meanwhile."""

    type: str = ""
    prompt: JSON = None
    command_mode: str | None = None


class Source(msgspec.Struct):
    """The origin of a line, if it says so."""

    kind: str | None = None


class Line(msgspec.Struct, rename="camel"):
    """The contents of a line."""

    type: str
    timestamp: str | None = None
    message: Message | None = None
    tool_use_result: JSON = None
    source_tool_use_id: str | None = msgspec.field(default=None, name="sourceToolUseID")
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


def envelopes_in(path: Path, *, growing: bool = False) -> Iterator[Envelope | Diagnostic]:
    """The envelopes of all lines, in order; a diagnostic for an invalid line.

    Args:
        path: the path of the file.
        growing: a last line without an end is left out.

    Raises:
        InvalidInput: the file cannot be read.
    """
    offset = 0
    texts: dict[str | None, str | None] = {}
    before: Envelope | None = None
    try:
        with path.open("rb") as file:
            for number, line in enumerate(PIECE.lines(file), start=1):
                here, offset = offset, offset + len(line)
                if line.isspace():
                    continue
                if growing and not line.endswith(b"\n"):
                    return
                try:
                    found = _decode_entry(line.removeprefix(_BOM))
                    envelope = _envelope(found, number, here, before, texts)
                except InvalidInput as error:
                    yield Diagnostic("problem", f"invalid entry: {error}", f"{path}, line {number}")
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
    data = file.readline(PIECE.size).removeprefix(_BOM)
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


# --- lines that Claude Code writes for itself -----------------------------------------------------


_STATES: Final = frozenset(
    "summary progress file-history-snapshot queue-operation last-prompt custom-title ai-title"
    " task-summary tag agent-name agent-color agent-setting pr-link mode permission-mode"
    " worktree-state content-replacement attribution-snapshot".split()
)
"""Types of lines: titles of sessions, states of the program."""
_NOTICES: Final = frozenset(
    "stop_hook_summary turn_duration local_command informational api_error api_metrics away_summary"
    " memory_saved bridge_status".split()
)
"""Subtypes of ``system`` lines."""
_CONTEXT: Final = frozenset(
    "skill_listing deferred_tools_delta agent_listing_delta mcp_instructions_delta todo_reminder"
    " task_reminder edited_text_file edited_image_file file directory already_read_file"
    " compact_file_reference selected_lines_in_ide opened_file_in_ide diagnostics plan_mode"
    " plan_mode_exit plan_mode_reentry plan_file_reference hook_success hook_additional_context"
    " hook_non_blocking_error hook_cancelled async_hook_response date_change nested_memory"
    " relevant_memories critical_system_reminder ultrathink_effort output_style token_usage"
    " total_tokens_reminder budget_usd command_permissions prompt_snapshot invoked_skills"
    " dynamic_skill auto_mode".split()
)
"""Types of attachments: context that the program shows to the model in addition to typed text."""


def note_in(envelope: Envelope, line: Line) -> str | None:
    """The name of a line that belongs to the program alone; None for any other."""
    if line.type in _STATES:
        return line.type
    if line.type == "system" and envelope.subtype in _NOTICES:
        return envelope.subtype
    attached = line.attachment.type if line.attachment is not None else None
    return f"{attached} attachment" if line.type == "attachment" and attached in _CONTEXT else None


# --- parts of a user's message that the person did not type ---------------------------------------


INTERRUPTED: Final = "[Request interrupted by user"
"""The beginning of the mark that shows that a person stopped the agent."""

_AROUND: Final = (
    "system-reminder",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "new-diagnostics",
    "user-prompt-submit-hook",
    "session-start-hook",
    "task-notification",
)
_COMMANDS: Final = (
    "command-name",
    "command-message",
    "command-args",
    "command-contents",
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
    "user-memory-input",
    "teammate-message",
)
_CLIENT: Final = frozenset(
    "add-dir agents bashes bug clear color compact config context copy cost doctor effort exit"
    " export extra-usage fast feedback fork help hooks ide install-github-app keybindings login"
    " logout mcp memory model output-style permissions plugin privacy-settings quit release-notes"
    " reload-plugins remote-control rename resume rewind sandbox skills stats status statusline"
    " tasks terminal-setup theme todos upgrade usage vim".split()
)
"""Commands that the program itself answers. Any other is a request to the agent."""
_NAME: Final = re.compile(r"<command-name>([^<]*)</command-name>")
_ARGUMENTS: Final = ("<command-args>", "</command-args>")
_BEGIN: Final = re.compile(rf"<({'|'.join(_AROUND)})\b[^<>]*>")
_COMMAND: Final = re.compile(rf"\s*<({'|'.join(_COMMANDS)})\b")
_PROGRAM: Final = (
    "Caveat: The messages below were generated by the user while running local commands",
    "This session is being continued from a previous conversation that ran out of context",
)
"""How texts of the program begin."""


def is_injected(text: str) -> bool:
    """Whether a text is the program's own, as a whole."""
    return bool(_COMMAND.match(text)) or text.lstrip().startswith(_PROGRAM)


def command_in(text: str) -> str | None:
    """The command that a person typed for the agent, such as ``/review 12``; None if a text holds
    none, or one for the program itself.
    """
    found = _NAME.search(text) if _COMMAND.match(text) else None
    name = "" if found is None else found[1].strip().removeprefix("/").strip()
    if not name or name.lower() in _CLIENT:
        return None
    begin, end = _ARGUMENTS
    arguments, ended, _ = text.partition(begin)[2].partition(end)
    return f"/{name} {arguments.strip() if ended else ''}".strip()


def typed_part(text: str) -> str:
    """The typed part of a text, without the program's additions."""
    if "<" not in text:
        return text
    kept: list[str] = []
    at = 0
    unended: set[str] = set()
    for begin in _BEGIN.finditer(text):
        kind = begin[1]
        if begin.start() < at or kind in unended:
            continue
        end = f"</{kind}>"
        over = text.find(end, begin.end())
        if over < 0:
            unended.add(kind)  # nor has any later one of its kind an end
            continue
        kept.append(text[at : begin.start()])
        at = over + len(end)
    kept.append(text[at:])
    return "".join(kept)


# --- edits of files -------------------------------------------------------------------------------


def edited_file(result: JSON, name: str | None) -> FileEdit | None:
    """The file that a tool wrote, from the program's record of its result; None if it wrote none,
    or if the text cannot be told.

    Args:
        result: the result of the tool.
        name: the name of the agent that wrote it.
    """
    if not isinstance(result, dict):
        return None
    path, before = result.get("filePath"), result.get("originalFile")
    patch = result.get("structuredPatch")
    if not isinstance(path, str) or not isinstance(patch, Sequence) or isinstance(patch, str):
        return None
    content = result.get("content")
    if isinstance(content, str):
        after: str | None = content
    elif isinstance(before, str):
        after = _edited(before, result)
    else:
        after = None
    if after is None:
        return None
    return FileEdit(AGENT, name, path, after, _diff(patch))


def _edited(before: str, result: Mapping[str, JSON]) -> str | None:
    edits = result.get("edits", [result])
    if not isinstance(edits, Sequence) or isinstance(edits, str):
        return None
    text = before
    for edit in edits:
        if not isinstance(edit, Mapping):
            return None
        old = edit.get("oldString", edit.get("old_string"))
        new = edit.get("newString", edit.get("new_string"))
        if not isinstance(old, str) or not isinstance(new, str) or (old and old not in text):
            return None
        everywhere = edit.get("replaceAll", edit.get("replace_all")) is True
        text = (text.replace(old, new, -1 if everywhere else 1)) if old else new
    return text


def _diff(patch: Sequence[JSON]) -> str:
    """The hunks of a patch, as a unified diff has them."""
    lines: list[str] = []
    for hunk in patch:
        if not isinstance(hunk, Mapping):
            continue
        was = f"-{hunk.get('oldStart')},{hunk.get('oldLines')}"
        now = f"+{hunk.get('newStart')},{hunk.get('newLines')}"
        lines.append(f"@@ {was} {now} @@")
        held = hunk.get("lines")
        if isinstance(held, Sequence) and not isinstance(held, str):
            lines += [line for line in held if isinstance(line, str)]
    return "\n".join(lines)
