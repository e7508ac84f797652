"""Files that an agent or a person edited, in words: snapshots with a path, a text and a diff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, final

from rich.text import Text

from ...engine.diff import ChangedLine, Mark, changes, counts
from ...engine.events import JSON
from ...engine.text import quantity
from .wording import one_line

__all__ = ("EditedFile", "FileEdits")

_MARKS: Final[Mapping[str, Mark]] = {"+": "+", "-": "-", "@": "…"}
_HEADS: Final = ("--- ", "+++ ", "diff ", "index ", "\\ No newline")


class EditedFile(NamedTuple):
    """An edit in words, and the lines that it changed."""

    text: Text
    changed: Sequence[ChangedLine]


@final
class FileEdits:
    """Formats edits of files in order; keeps the texts that later ones are compared with."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def of(self, content: JSON) -> EditedFile | None:
        """An edit; None where a snapshot is no file."""
        if not isinstance(content, Mapping):
            return None
        path, text, diff = content.get("path"), content.get("text"), content.get("diff")
        if not isinstance(path, str) or not isinstance(text, str) or "diff" not in content:
            return None
        before = self._texts.get(path)
        self._texts[path] = text
        if before == text:
            return EditedFile(Text(f"leaves {one_line(path)} as it is", style="bold"), ())
        if isinstance(diff, str) and diff.strip():
            changed = list(_lines(diff))
        else:
            changed = changes((before or "").splitlines(), text.splitlines())
        added, gone = counts(changed)
        if gone or before is not None:
            words = f"edits {one_line(path)} (+{added} −{gone} lines)"
        else:
            words = f"writes {one_line(path)} ({quantity(added, 'line')})"
        return EditedFile(Text(words, style="bold"), changed)


def _lines(diff: str) -> Sequence[ChangedLine]:
    """The lines of a unified diff, with ``…`` for what lies between its hunks."""
    found: list[ChangedLine] = []
    for line in diff.splitlines():
        if line.startswith(_HEADS):
            continue
        mark = _MARKS.get(line[:1], " ")
        if mark == "…":
            first = not found and line.startswith(("@@ -0,", "@@ -1,", "@@ -1 "))
            if not first:
                found.append(ChangedLine(mark, ""))
        else:
            found.append(ChangedLine(mark, line[1:]))
    return found
