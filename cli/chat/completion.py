"""Completes a command as it is typed: names, actions with their arguments, ratings, files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...engine.session.environment import ActionSpec
from ...users.person_commands import COMMANDS, argument_names

__all__ = ("Completion", "complete")

_FILES = 200  # directory entries that are looked at


class Completion(NamedTuple):
    """The possible completions of a line.

    Attributes:
        start: where the completed word begins.
        words: the possible words, in order.
        hint: what the command does, if known.
    """

    start: int
    words: Sequence[str] = ()
    hint: str = ""

    def extend(self, line: str) -> str:
        """The line with as much added as all words have in common."""
        common = _common(self.words)
        whole = len(self.words) == 1 and not common.endswith(("=", "/"))
        done = line[: self.start] + common + (" " if whole else "")
        return done if done.startswith(line) else line

    def suggestion(self, line: str) -> str:
        """The rest of the first word that fits."""
        return self.words[0].removeprefix(line[self.start :]) if self.words else ""


def complete(line: str, actions: Mapping[str, ActionSpec]) -> Completion:
    """Completes a line whose cursor is at the end.

    Args:
        line: the typed text; not a command unless it begins with a slash.
        actions: those that the person may take.
    """
    if not line.startswith("/") or "\n" in line:
        return Completion(len(line))
    name, space, rest = line[1:].partition(" ")
    if not space:
        names = [command.name for command in COMMANDS if command.name.startswith(name)]
        hint = _hint(names[0]) if len(names) == 1 else ""
        return Completion(1, names, hint)
    start = len(line) - len(rest.rpartition(" ")[2])
    return Completion(start, _words(name, rest, line[start:], actions), _hint(name))


def _common(words: Sequence[str]) -> str:
    """What all words begin with."""
    low, high = min(words, default=""), max(words, default="")
    same = next((at for at, c in enumerate(low) if not high.startswith(c, at)), len(low))
    return low[:same]


def _hint(name: str) -> str:
    found = [command for command in COMMANDS if command.name == name]
    return f"{found[0].usage}: {found[0].help}" if found else ""


def _words(name: str, rest: str, word: str, actions: Mapping[str, ActionSpec]) -> Sequence[str]:
    """The words that fit as an argument of a command."""
    if name == "rate" and " " not in rest:
        return _fitting(word, "12345") if word else ()
    if name == "submit":
        return _files(rest) if rest == word else ()
    if name == "do":
        action, space, given = rest.partition(" ")
        if not space:
            return _fitting(word, actions)
        spec = actions.get(action)
        names = () if spec is None else argument_names(spec)
        return _fitting(word, [f"{one}=" for one in names if f"{one}=" not in given])
    return ()


def _fitting(word: str, words: Iterable[str]) -> Sequence[str]:
    return [one for one in words if one.startswith(word)]


def _files(typed: str) -> Sequence[str]:
    """The files whose paths begin as typed; directories end in a slash."""
    _, _, begin = typed.rpartition("/")
    shown = typed[: len(typed) - len(begin)]
    found = []
    try:
        with os.scandir(Path(shown or ".")) as entries:
            for entry, _ in zip(entries, range(_FILES), strict=False):
                hidden = entry.name.startswith(".") and not begin.startswith(".")
                if entry.name.startswith(begin) and not hidden:
                    found.append(f"{shown}{entry.name}{'/' if entry.is_dir() else ''}")
    except OSError:
        return ()  # no such directory, or not ours to read: nothing to offer
    return sorted(found)
