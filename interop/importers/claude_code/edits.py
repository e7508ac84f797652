"""Edits of files: the text of the file as it stands after an edit, where the log holds enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....engine.events import JSON
from ..conversation.steps import AGENT, Output

__all__ = ("edited_file",)


def edited_file(result: JSON, name: str | None) -> Output | None:
    """The file that a tool wrote, out of what the program kept of its result; None where it wrote
    none, or where the text cannot be told.

    Args:
        result: of the tool.
        name: of the agent that wrote it.
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
    file = {"path": path, "text": after, "diff": _diff(patch)}
    return Output(AGENT, name, file, "application/json")


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
