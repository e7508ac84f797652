"""Outputs of several files: their snapshots, and the whole output after each.

A snapshot of files maps every path to the digest of its text, and carries the texts that changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from .codec import digest
from .events import JSON, SnapshotTaken
from .text import text_of

__all__ = (
    "Contents",
    "changed_files",
    "files_problem",
    "is_edit_of_file",
    "output_text",
    "with_digests",
)


def changed_files(
    known: Mapping[str, str],
    changed: Mapping[str, str | None],
    *,
    shown: Mapping[str, str] | None = None,
    media_type: str = "text/plain",
) -> SnapshotTaken:
    """The snapshot after some files changed.

    Args:
        known: the digests of the files before, by path.
        changed: the texts after, by path; None for a file that is gone. A text that is the same as
            before is not carried again.
        shown: the unified diffs that the human was shown, by path.
        media_type: the media type of the texts.
    """
    files = dict(known)
    content: dict[str, JSON] = {}
    for path, text in changed.items():
        if text is None:
            files.pop(path, None)
            continue
        found = digest(text)
        if files.get(path) != found:
            files[path], content[path] = found, text
    return SnapshotTaken(
        content=content,
        digest=digest(files),
        media_type=media_type,
        files=files,
        shown={path: diff for path, diff in (shown or {}).items() if path in changed},
    )


def files_problem(event: SnapshotTaken, known: Mapping[str, str] | None = None) -> str | None:
    """The reason why the digests of a snapshot are refused; None if they are right.

    Args:
        event: the snapshot.
        known: the digests of the files before it, by path; None to look at the snapshot alone.
    """
    if event.files is None:
        if event.digest != digest(event.content):
            return "the snapshot's digest is not that of its content"
        return None
    content = event.content
    if not isinstance(content, Mapping):
        return "the content of a snapshot of files maps paths to texts"
    if event.digest != digest(event.files):
        return "the snapshot's digest is not that of its map of files"
    for path, text in content.items():
        if not isinstance(text, str):
            return f"the file {path!r} of the snapshot is not a text"
        if event.files.get(path) != digest(text):
            return f"the snapshot's digest of {path!r} is not that of its text"
    if known is not None:
        for path, of in event.files.items():
            if path not in content and known.get(path) != of:
                return (
                    f"the snapshot has no text of {path!r}, and the one before it has another "
                    "version or none; send the texts of all files that changed"
                )
    return None


def with_digests(event: SnapshotTaken) -> SnapshotTaken:
    """A snapshot with its digests recomputed, after its content was changed."""
    if event.files is None or not isinstance(event.content, Mapping):
        return msgspec.structs.replace(event, files=None, digest=digest(event.content))
    files = dict(event.files) | {path: digest(text) for path, text in event.content.items()}
    return msgspec.structs.replace(event, files=files, digest=digest(files))


def is_edit_of_file(content: JSON) -> bool:
    """Whether a structure is one file after an edit: the form of importers before there were files."""
    if not isinstance(content, Mapping) or "diff" not in content:
        return False
    return isinstance(content.get("path"), str) and isinstance(content.get("text"), str)


def output_text(snapshot: SnapshotTaken) -> str:
    """A whole snapshot as one text; of files each below its path."""
    content = snapshot.content
    if snapshot.files is None or not isinstance(content, Mapping):
        return text_of(content)
    return "\n".join(f"=== {path} ===\n{text}" for path, text in content.items())


@final
class Contents:
    """The whole output after each snapshot of a session; give it the snapshots in order."""

    __slots__ = ("_event", "_texts", "_whole")

    def __init__(self) -> None:
        self._event: SnapshotTaken | None = None
        self._whole: SnapshotTaken | None = None
        self._texts: dict[str, JSON] = {}

    def whole(self, event: SnapshotTaken) -> SnapshotTaken:
        """The snapshot with the texts of all its files; one without files stays the same."""
        if event.files is None:
            self._texts = {}
            return event
        if event is not self._event or self._whole is None:
            carried = event.content if isinstance(event.content, Mapping) else {}
            known = self._texts | dict(carried)
            self._texts = {path: known[path] for path in event.files if path in known}
            self._event = event
            self._whole = msgspec.structs.replace(event, content=self._texts)
        return self._whole
