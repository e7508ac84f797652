"""Prints the table of sessions: a line each, as wide as the terminal, fast for thousands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

from ...engine.text import quantity
from ...scoring.columns.rows import ERASED
from ...scoring.display.texts import dollars, duration, is_virtual, lasted, moment, number, one_line
from ...scoring.index.lines import ListedSession
from ...scoring.trajectory.labels import STAMPS
from ...scoring.trajectory.points import NO_SCORE, NOT_EVALUATED, UNDECIDED
from .names import distinct, fitted, width_of
from .terminal import screen

__all__ = ("print_sessions", "stop_text")

_GAP = "  "
_STYLES = {"open": "cyan", "failed": "red", "stalled": "yellow", "forgotten": "dim"}
_GROUP = 8  # the fewest columns of the group
_NAME = 24  # columns of a session's name before which others are left out
_LONG = 48  # columns of a name, beyond which the group is not shortened for it
_LEAST = 8  # and the fewest
_LONGEST = 200  # columns of a name if there is room for all
_FIRST_TO_GO = ("opened", "lasted", "reply", "cost", "task", "group", "rounds", "stop", "utility")

_MISSING = {NOT_EVALUATED: "not evaluated", NO_SCORE: "score missing", ERASED: "erased"}
"""The text in the utility column if utility is missing."""


class _Column(NamedTuple):
    title: str
    text: Callable[[ListedSession], str]
    right: bool = False


def print_sessions(found: Sequence[ListedSession]) -> None:
    """Prints the table; a value that all sessions share, or that none has, gets no column.

    On a terminal no line is wider than the screen: the group is shortened first, then columns are
    left out, then names are shortened so that they can still be told apart.
    """
    console = screen()
    heading = _heading(found)
    console.print(Text(heading, style="bold"), soft_wrap=True)
    columns = _columns(found)
    cells = [[column.text(line) for line in found] for column in columns]
    widths = [
        max(len(column.title), *map(width_of, texts))
        for column, texts in zip(columns, cells, strict=True)
    ]
    names = [line.session for line in found]
    whole = distinct(names, _LONGEST)
    widest = name = max(len("session"), *map(width_of, whole))
    if console.is_terminal:
        shown, name = _fit(console.width, [column.title for column in columns], widths, name)
    else:
        shown = {column.title: width for column, width in zip(columns, widths, strict=True)}
    kept = [(c, texts) for c, texts in zip(columns, cells, strict=True) if c.title in shown]
    titles = [fitted(c.title, shown[c.title], right=c.right) for c, _ in kept]
    head = _GAP.join([fitted("session", name), *titles]).rstrip()
    console.print(Text(head, style="dim"), soft_wrap=True)
    firsts = whole if name >= widest else distinct(names, name)
    rows = zip(firsts, *(texts for _, texts in kept), strict=True)
    uncoloured = not console.color_system
    write = console.file.write
    for line, (first, *texts) in zip(found, rows, strict=True):
        parts = [fitted(first, name)]
        parts += [
            fitted(text, shown[column.title], right=column.right)
            for text, (column, _) in zip(texts, kept, strict=True)
        ]
        row = _GAP.join(parts).rstrip()
        state = line.state
        if uncoloured or state not in _STYLES:
            write(row + "\n")
        else:
            console.print(Text(row, style=_STYLES[state]), soft_wrap=True)
        if line.snippet:
            console.print(Text(f"{_GAP}{one_line(line.snippet)}", style="dim"), soft_wrap=True)


def stop_text(stops: Mapping[int, int]) -> str:
    """The tolerances that are used up: ``τ=1`` for one, ``τ≤3`` up to the greatest of several."""
    if not stops:
        return ""
    return f"τ{'≤' if len(stops) > 1 else '='}{max(stops)}"


def _fit(
    room: int, titles: Sequence[str], widths: Sequence[int], name: int
) -> tuple[dict[str, int], int]:
    """The columns for which there is room, with their widths, and the width of the names."""
    shown = dict(zip(titles, widths, strict=True))

    def spare() -> int:
        return room - sum(shown.values()) - len(_GAP) * len(shown)

    if "group" in shown:
        shown["group"] += min(max(spare() - min(name, _LONG), _GROUP - shown["group"]), 0)
    for title in _FIRST_TO_GO:
        if spare() >= min(name, _NAME):
            break
        shown.pop(title, None)
    return shown, min(name, max(spare(), _LEAST))


def _heading(listed: Sequence[ListedSession]) -> str:
    """The number of sessions, their task if it is one, and their states."""
    tasks = {s.task for s in listed}
    of = f" of {one_line(tasks.pop())}" if len(tasks) == 1 and listed[0].task else ""
    states = Counter(s.state for s in listed)
    summary = ", ".join(f"{number:,} {state}" for state, number in states.most_common())
    scorers = {s.scorer for s in listed if s.scorer is not None}
    by = f"; utility by {one_line(scorers.pop())}" if len(scorers) == 1 else ""
    return f"{quantity(len(listed), 'session')}{of}: {summary}{by}"


def _columns(found: Sequence[ListedSession]) -> list[_Column]:
    """All columns but the first, the name."""
    columns: list[_Column] = []
    if len({line.task for line in found}) > 1:
        columns.append(_Column("task", lambda line: one_line(line.task)))
    if any(line.group for line in found):
        columns.append(_Column("group", _group))
    columns += [
        _Column("state", lambda line: line.state),
        _Column("rounds", lambda line: str(line.rounds), right=True),
        _Column("utility", _utility, right=True),
    ]
    if len({line.scorer for line in found if line.scorer is not None}) > 1:
        columns.append(_Column("by", lambda line: one_line(line.scorer or "")))
    if any(line.lost for line in found):
        columns.append(
            _Column("lost", lambda line: f"{line.lost:,}" if line.lost else "", right=True)
        )
    if any(line.cost is not None for line in found):
        columns.append(_Column("cost", _cost, right=True))
    if any(line.latency is not None for line in found):
        columns.append(_Column("reply", _reply, right=True))
    if any(line.stops for line in found):
        columns.append(_Column("stop", lambda line: stop_text(line.stops or {})))
    if not all(is_virtual(line.opened) for line in found):
        columns.append(_Column("opened", _opened))
    columns.append(_Column("lasted", _lasted, right=True))
    return columns


def _group(line: ListedSession) -> str:
    return one_line(", ".join(value for name, value in line.group.items() if name not in STAMPS))


def _utility(line: ListedSession) -> str:
    if line.utility_missing is None:
        return number(line.utility)
    if line.utility_missing.startswith(UNDECIDED):
        return f"choose: {line.utility_missing.rpartition(': ')[2]}"
    return _MISSING.get(line.utility_missing) or one_line(line.utility_missing)


def _cost(line: ListedSession) -> str:
    """The known cost, with a plus if calls without a price come on top of it."""
    if line.cost is None:
        return "–"
    return f"{dollars(line.cost)}{'+' if line.unpriced else ''}"


def _reply(line: ListedSession) -> str:
    return "–" if line.latency is None else duration(line.latency)


def _opened(line: ListedSession) -> str:
    opened = line.opened
    return "–" if is_virtual(opened) else moment(opened)


def _lasted(line: ListedSession) -> str:
    return lasted(line.opened, line.last)
