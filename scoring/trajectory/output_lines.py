"""The output of a session as lines by file, split and compared once for all folds that look at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias, final

from ...engine.diff import matching
from ...engine.events import SnapshotTaken
from ...engine.files import is_edit_of_file
from ...engine.text import text_of, written_words

__all__ = ("Lines", "OutputLines", "Written", "shown_lines", "written")

Lines: TypeAlias = Mapping[str, list[str]]
"""The lines of an output by file; an output that is not of files has the path ``""``."""


@final
class OutputLines:
    """Splits each version of the output once, and compares two of them once.

    Folds of one session may share it if they take the same records in turn. Do not change its
    results.

    Attributes:
        coarse: the last two outputs that ``new`` compared were not compared in full: see ``Matching.whole``.
    """

    __slots__ = ("_event", "_fresh", "_lines", "_new", "_old", "coarse")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets what it holds, since the session is closed."""
        self._event: SnapshotTaken | None = None
        self._lines: Lines = {}
        self._old: Lines = self._lines
        self._new: Lines = self._lines
        self._fresh = ""
        self.coarse = False

    def of(self, event: SnapshotTaken) -> Lines:
        """The lines of an output: of the snapshot, and of files that it did not change."""
        if event is self._event:
            return self._lines
        self._event = event
        before, content = self._lines, event.content
        if event.files is not None and isinstance(content, Mapping):
            self._lines = {
                path: str(content[path]).splitlines() if path in content else before.get(path, [])
                for path in event.files
            }
        elif isinstance(content, Mapping) and is_edit_of_file(content):
            kept: dict[str, list[str]] = {path: lines for path, lines in before.items() if path}
            self._lines = kept | {str(content["path"]): str(content["text"]).splitlines()}
        else:
            self._lines = {"": text_of(content).splitlines()}
        return self._lines

    def new(self, old: Lines, new: Lines) -> str:
        """The lines that a diff of two outputs adds, file by file: see ``text.new_lines``."""
        if new is not self._new or old is not self._old:
            self._old, self._new = old, new
            self.coarse = False
            fresh: list[str] = []
            for path, lines in new.items():
                known = old.get(path)
                if known and lines is not known:
                    found = matching(known, lines)
                    self.coarse |= found.whole
                    fresh += found.added(lines)
                elif lines is not known:
                    fresh += lines
            self._fresh = "\n".join(fresh)
        return self._fresh


class Written(NamedTuple):
    """The words that were written to make one output of another.

    ``coarse`` says that the two were not compared in full, so that changed stretches count whole.
    """

    text: str
    coarse: bool


def written(old: Lines, new: Lines) -> Written:
    """The text written to turn one output into another, file by file: see ``text.new_words``."""
    texts: list[str] = []
    coarse = False
    for path, lines in new.items():
        known = old.get(path) or []
        found = matching(known, lines)
        coarse |= found.whole
        texts.append(written_words(found, known, lines))
    return Written("\n".join(text for text in texts if text), coarse)


def shown_lines(event: SnapshotTaken, path: str) -> list[str] | None:
    """The lines that a diff which the human was shown adds to a file; None if none was shown."""
    diff = event.shown.get(path)
    content = event.content
    if diff is None and isinstance(content, Mapping) and is_edit_of_file(content):
        diff = str(content["diff"]) if content["path"] == path else None
    lines = (diff or "").splitlines()
    if not any(line.startswith("@@") for line in lines):
        return None
    return [line[1:] for line in lines if line[:1] == "+" and not line.startswith("+++ ")]
