"""Files that an agent edits: their texts, as far as messages or the files themselves show them."""

from __future__ import annotations

import os
import stat
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, final

from ...engine.text import new_words
from ...scoring.display.diff import unified
from ...scoring.scorers.retention import retention
from ...scoring.scorers.utility import Missing

__all__ = ("Change", "Directory", "FileTexts", "file_of", "share_kept")

_FILES: Final = 500  # files whose texts are remembered, of one session
_LARGEST: Final = 4 * 2**20  # bytes of a file that is looked at
_LATE: Final = 1.0  # seconds after which a file may say something else than it did


class Change(NamedTuple):
    """An edit of a file: its text before and after."""

    path: str
    before: str
    after: str


@final
class Directory:
    """The files below some directories, to be looked at.

    Args:
        roots: the directories; others are not looked at, whatever an agent names.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = [os.path.realpath(root) for root in roots if os.path.isabs(root)]

    def read(self, path: str) -> str | None:
        """The text of a file; empty if there is none, None if it is not to be looked at: it lies
        elsewhere, is not a regular file, is too large, or is not text.
        """
        try:
            real = os.path.realpath(path)
            if not os.path.isabs(path) or not any(
                os.path.commonpath((root, real)) == root for root in self._roots
            ):
                return None
            found = os.stat(real)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
                return None
            return Path(real).read_bytes().decode()
        except FileNotFoundError:
            return ""
        except (OSError, ValueError):  # unreadable, not text, or an invalid path
            return None


@final
class FileTexts:
    """The known texts of files in one session.

    Args:
        directory: the files themselves, if they may be looked at.
    """

    def __init__(self, directory: Directory | None = None) -> None:
        self._directory = directory
        self._known: OrderedDict[str, str] = OrderedDict()
        self._edited: dict[str, Change] = {}

    def learn(self, path: str, text: str) -> None:
        """Notes the whole text of a file that was not just edited."""
        self._known[path] = text
        self._known.move_to_end(path)
        if len(self._known) > _FILES:
            self._known.popitem(last=False)

    def edit(self, path: str, old: str | None, new: str, at: float = 0.0) -> Change | None:
        """An edit that the agent has made, by its diff.

        Args:
            path: the path of the file.
            old: the text before, the whole of it or the part that was replaced; None for a new file.
            new: what it was replaced by.
            at: when, UTC epoch seconds.

        Returns:
            The edit; None if the text is as it was.
        """
        before, after = self._texts(path, old, new, at)
        known = self._known.get(path)
        if after == (before if known is None else known):
            self.learn(path, after)
            return None
        self.learn(path, after)
        change = Change(path, before, after)
        earlier = self._edited.get(path)
        self._edited[path] = change if earlier is None else earlier._replace(after=after)
        return change

    def write(self, path: str, text: str) -> Change | None:
        """A file that the agent has written as a whole."""
        return self.edit(path, self._known.get(path), text)

    def look(self, at: float) -> tuple[tuple[Change, str], ...]:
        """The agent's edits since this was called last, each with the text as it is now.

        There are none without files that may be looked at, and none if it is too late to look.

        Args:
            at: when the files were to be looked at, UTC epoch seconds.
        """
        edited, self._edited = self._edited, {}
        found: list[tuple[Change, str]] = []
        for path, change in edited.items():
            now = self._now(path, at)
            if now is not None:
                self.learn(path, now)
                found.append((change, now))
        return tuple(found)

    def _now(self, path: str, at: float) -> str | None:
        if self._directory is None or time.time() - at > _LATE:
            return None
        return self._directory.read(path)

    def _texts(self, path: str, old: str | None, new: str, at: float) -> tuple[str, str]:
        """The whole text before and after: a diff has the whole, by the protocol, but many agents
        send the part that they replace.
        """
        if old is None:
            return "", new
        known = self._known.get(path)
        if old == known:
            return old, new
        now = self._now(path, at)
        if now is not None and now != new and (not new or new in now):
            before = now.replace(new, old, 1) if new else f"{now}\n{old}"
            return before, now
        if known is not None and old and old in known:
            return known, known.replace(old, new, 1)
        return old, new


def share_kept(edits: Sequence[tuple[Change, str]]) -> float | None:
    """The share of the words that an agent wrote into files which are still there later.

    Args:
        edits: its edits, each with the text of the file later.

    Returns:
        The mean of retention's part ``changes``, weighted by how many words the agent wrote in each
        file; None if it wrote none.
    """
    written = kept = 0.0
    for change, later in edits:
        words = len(new_words(change.before.splitlines(), change.after.splitlines()).split())
        score = retention(change.after, later, change.before)
        share = None if isinstance(score, Missing) else score.parts.get("changes")
        if words and share is not None:
            written += words
            kept += words * share
    return kept / written if written else None


def file_of(change: Change) -> tuple[str, str, str]:
    """A file after an edit: its path, its text, and the diff that led to it."""
    return change.path, change.after, unified(change.before, change.after)
