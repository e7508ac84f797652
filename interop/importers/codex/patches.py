"""Files that a patch adds: their text stands in the patch, in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..conversation.steps import AGENT, Output, ToolCall

__all__ = ("added_files",)

_BEGIN: Final = "*** Begin Patch"
_ADD: Final = "*** Add File: "


def added_files(call: ToolCall) -> Iterator[Output]:
    """The files that a call of the patch tool adds, as they stand after it.

    Files that it changes are left out: a patch does not hold the whole of their text.
    """
    patch = call.arguments.get("input", call.raw)
    command = call.arguments.get("command")
    if isinstance(command, list | tuple):
        patch = next((part for part in command if _BEGIN in str(part)), None)
    if not isinstance(patch, str) or _BEGIN not in patch:
        return
    path: str | None = None
    lines: list[str] = []
    for line in patch.split("\n"):  # a file may hold what else ends lines
        if path is not None and line.startswith("+"):
            lines.append(line[1:])
            continue
        if path is not None:
            yield _file(path, lines)
        path = line.removeprefix(_ADD) if line.startswith(_ADD) else None
        lines = []
    if path is not None:
        yield _file(path, lines)


def _file(path: str, lines: list[str]) -> Output:
    text = "".join(f"{line}\n" for line in lines)
    diff = "\n".join([f"@@ -0,0 +1,{len(lines)} @@", *(f"+{line}" for line in lines)])
    return Output(AGENT, None, {"path": path, "text": text, "diff": diff}, "application/json")
