"""Names of sessions in few columns, shortened so that no two of them look the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import count, pairwise

from rich.cells import cell_len, set_cell_size

from ...scoring.display.texts import clean

__all__ = ("distinct", "fitted", "width_of")

_CUT = "…"
_MARKS = " -_.:/"  # between the words of an id


def width_of(text: str) -> int:
    """The columns that a text takes."""
    return len(text) if text.isascii() else cell_len(text)


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """A text padded to a number of columns, or cut at the end if it takes more."""
    if text.isascii() and len(text) <= width:
        return text.rjust(width) if right else text.ljust(width)
    spare = width - cell_len(text)
    if spare < 0:
        return _head(text, width - 1) + _CUT if width > 0 else ""
    return " " * spare + text if right else text + " " * spare


def distinct(names: Sequence[str], width: int) -> list[str]:
    """Names on one line each, in at most so many columns, all different.

    A name that is too long is cut in the middle, since ids begin alike and end differently. If that
    makes names look the same, the part with the difference is shown. If they still look the same,
    because they differ only in invisible characters, they are numbered.

    Args:
        names: all different.
        width: columns for each; at least 4, below which names cannot be told apart.
    """
    lines = [" ".join(clean(name).split()) for name in names]
    found = [line if width_of(line) <= width else _middle(line, width) for line in lines]
    alike: defaultdict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(found):
        alike[text].append(index)
    if len(alike) == len(found):
        return found
    for indices in alike.values():
        if len(indices) > 1:
            windows = _windows([lines[index] for index in indices], width)
            for index, text in zip(indices, windows, strict=True):
                found[index] = text
    return _numbered(found, width)


def _middle(line: str, width: int) -> str:
    tail = (width - 1) // 2
    return f"{_head(line, width - 1 - tail)}{_CUT}{_tail(line, tail)}"


def _head(line: str, width: int) -> str:
    if line.isascii():
        return line[: max(width, 0)]
    return set_cell_size(line, max(width, 0)).rstrip()


def _tail(line: str, width: int) -> str:
    if line.isascii():
        return line[len(line) - width :] if width > 0 else ""
    start = len(line)
    while start and cell_len(line[start - 1 :]) <= width:
        start -= 1
    return line[start:]


def _windows(lines: Sequence[str], width: int) -> list[str]:
    """Shortens texts that look alike when cut in the middle, keeping the differing part."""
    ordered = sorted(set(lines))
    if len(ordered) == 1 or width < 8:
        return [_middle(line, width) if width_of(line) > width else line for line in lines]
    shared = min(_shared(one, other) for one, other in pairwise(ordered))
    word = max(ordered[0].rfind(mark, 0, shared) for mark in _MARKS) + 1
    start = word if shared - word <= width // 3 else shared - 2
    head = min(width // 4, start)
    return [
        fitted(f"{line[:head]}{_CUT if start > head else ''}{line[start:]}", width).rstrip()
        for line in lines
    ]


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))


def _numbered(found: Sequence[str], width: int) -> list[str]:
    """Texts of which those that occur several times end with a number, from the second on."""
    times = Counter(found)
    taken = set(found)
    seen: Counter[str] = Counter()
    result = []
    for text in found:
        seen[text] += 1
        if times[text] == 1 or seen[text] == 1:
            result.append(text)
            continue
        for number in count(seen[text]):
            mark = f"~{number}"
            marked = f"{_head(text, width - len(mark))}{mark}"
            if marked not in taken:
                break
        seen[text] = number
        taken.add(marked)
        result.append(marked)
    return result
