"""Lays out the display as lines of text: a session's entries, and a row of the list."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ...engine.records import TRACE
from ...scoring.display.texts import clean, duration, has_times, is_virtual, moment, number, shorten
from ...scoring.display.updates import effort_words
from ...scoring.index.lines import SessionLine
from ...scoring.trajectory.points import Point
from ...scoring.trajectory.updates import StopAdvice, StopWithdrawn, Update
from ..text.names import fitted
from ..text.page import Page
from ..text.records import update_text
from ..text.sessions import stop_text
from ..text.transcript_view import NAME, ROLES, opening_lines, round_text
from .timeline import Moment, Timeline, TimelineEntry

__all__ = ("BARS", "STOP", "Painter", "header", "name_width", "row_line", "sparkline")

STOP = "bold reverse yellow"
"""The style of stop advice, noticeable without colours too."""

_STATES = {"open": "cyan", "failed": "red", "stalled": "yellow", "forgotten": "dim"}
_GAP = "  "


class _Layout(NamedTuple):
    """Widths of the columns on the left of a transcript."""

    numbers: int
    times: int
    names: int


@final
class Painter:
    """Lays out the entries of one session for one width; remembers the lines of its records.

    Args:
        timeline: the session.
        width: columns that there are.
    """

    def __init__(self, timeline: Timeline, width: int) -> None:
        self.timeline = timeline
        self.width = width
        self._console = Console(
            file=io.StringIO(), width=max(width, 20), markup=False, highlight=False, emoji=False
        )
        self._layout = _Layout(0, 0, 0)
        self._looked = 0  # records that the layout allows for
        self._lines: dict[int, Sequence[Text]] = {}

    def lines(self, index: int, now: Moment) -> Sequence[Text]:
        """The lines of an entry, as of a moment; none is wider than there is room."""
        self._look()
        entry = self.timeline.entries[index]
        if entry.round is not None:
            lines: list[Text] = []
            page = self._page(lines)
            if entry.round:
                self._heading(page, entry, now)
            else:
                self._head(page)
            return lines
        found = self._lines.get(index)
        if found is None:
            lines = []
            self._record(self._page(lines), entry.record)
            found = self._lines[index] = lines
        return found

    def _look(self) -> None:
        """Makes room for numbers, times and names of records that have come."""
        records = self.timeline.records
        if self._looked == len(records):
            return
        numbers, times, names = self._layout
        timed = has_times(records[0].time, records[-1].time)
        for record in records[self._looked if times or not timed else 0 :]:
            numbers = max(numbers, len(str(record.version)))
            times = max(times, len(_time(record.time))) if timed else 0
            if record.role in ("human", "agent"):
                names = max(names, min(len(clean(record.actor)), NAME))
        self._looked = len(records)
        layout = _Layout(numbers, times, names)
        if layout != self._layout:
            self._layout = layout
            self._lines.clear()

    def _page(self, lines: list[Text]) -> Page:
        return Page(self._console, **self._layout._asdict(), out=lines.append)

    def _head(self, page: Page) -> None:
        timeline = self.timeline
        page.plain(Text(clean(timeline.session), style="bold"))
        if timeline.opened is not None:
            for line in opening_lines(timeline.opened, timeline.records[0].time):
                page.plain(line)
        if timeline.problem:
            page.plain(Text(f"✗ not all of it can be read: {timeline.problem}", style="red"))

    def _heading(self, page: Page, entry: TimelineEntry, now: Moment) -> None:
        assert entry.round is not None
        at = entry.round - 1
        point = now.points[at] if at < len(now.points) else Point(round=entry.round)
        before = now.points[at - 1].utility if 0 < at <= len(now.points) else 0.0
        page.blank()
        title = Text.assemble((f"Round {point.round}", "bold"), (f" · {point.stage}", "dim"))
        page.rule(title, right=round_text(point, before if now.scored else None))
        effort = effort_words(point.effort)
        if effort:
            page.plain(Text(f"   effort so far: {effort}", style="dim"))
        stops = [f"τ = {tau}" for tau, number in now.stops.items() if number == point.round]
        if stops:
            text = f"■ stop advised: after this round {', '.join(stops)} is used up"
            page.plain(Text.assemble("   ", (text, STOP)))

    def _record(self, page: Page, index: int) -> None:
        timeline = self.timeline
        record, shown = timeline.records[index], timeline.texts[index]
        if not is_virtual(record.time) and index:
            day, before = moment(record.time)[:10], moment(timeline.records[index - 1].time)[:10]
            if day != before:
                page.plain(Text(day, style="dim"))
        if shown is not None:
            page.line(
                shown.text,
                number=str(record.version) if record.stream == TRACE else "",
                time="" if shown.quiet else _time(record.time),
                name="" if shown.quiet else shorten(record.actor, NAME),
                style=ROLES[record.role],
            )
            page.block(shown.block)
        for update in timeline.advice.get(index, ()):
            page.line(_advice(update))


def _time(time: float) -> str:
    return duration(time) if is_virtual(time) else moment(time)[-8:]


def _advice(update: Update) -> Text:
    text = update_text(update) or Text()
    if isinstance(update, StopAdvice):
        return Text(f"■ stop advised: {text.plain}", style=STOP)
    if isinstance(update, StopWithdrawn):
        return Text(f"□ advice withdrawn: {text.plain}", style="yellow")
    return Text.assemble("▸ ", text)


# --- the list ------------------------------------------------------------------------------------

_FIXED = {"agent": 10, "state": 9, "rds": 3, "util": 5, "stop": 4}
_BARS = (7, 12)  # the fewest and the most columns of a sparkline
_NAME = 16  # columns of a session's id for which the sparklines are left out
_ROOMY = 28  # beyond which the sparklines get a part of the room
_LEAST = 10  # and those for which numbers are
_COLUMNS = ("agent", "state", "rds", "util", "utility", "effort", "stop")
_FIRST_TO_GO = {
    "effort": _NAME,
    "utility": _NAME,
    "agent": _LEAST,
    "rds": _LEAST,
    "util": _LEAST,
    "stop": _LEAST,
}
_RIGHT = ("rds", "util")


def name_width(width: int) -> int:
    """Columns of a session's id in a list of this width."""
    return _widths(width)["session"]


@lru_cache(maxsize=8)
def _widths(width: int) -> Mapping[str, int]:
    """How the width of the list is shared: an id first gets its due, then the sparklines."""
    shown = {name: _FIXED.get(name, _BARS[0]) for name in _COLUMNS}

    def spare() -> int:
        return width - sum(shown.values()) - len(_GAP) * len(shown)

    for name, least in _FIRST_TO_GO.items():
        if spare() >= least:
            break
        shown.pop(name)
    bars = [name for name in shown if name not in _FIXED]
    wider = min(max(spare() - _ROOMY, 0) // 3, _BARS[1] - _BARS[0])
    shown.update(dict.fromkeys(bars, _BARS[0] + wider))
    return {"session": max(spare(), 4), **shown}


def header(width: int) -> Text:
    """The titles of the list's columns."""
    cells = [
        fitted(name, columns, right=name in _RIGHT) for name, columns in _widths(width).items()
    ]
    return Text(_GAP.join(cells), style="dim")


def row_line(line: SessionLine, measure: str, width: int, name: str) -> Text:
    """A session's row in the list, under a name of at most ``name_width`` columns.

    Args:
        line: what was measured of the session.
        measure: the measure of the effort.
        width: columns of the list.
        name: the name of the session.
    """
    widths = _widths(width)
    name = fitted(name, widths["session"])
    row = line.row
    if row.unreadable:
        return Text.assemble(
            name, _GAP, (shorten(row.unreadable, width - cell_len(name) - 2), "dim")
        )
    stop = stop_text(line.stops())
    style = _STATES.get(row.state, "")
    efforts = line.efforts(measure)
    cells = {
        "agent": (row.labels.get("agent", ""), "dim"),
        "state": (row.state, style),
        "rds": (str(line.rounds), ""),
        "util": (number(line.utility), ""),
        "utility": (sparkline(line.utilities, widths.get("utility", 1), top=1.0), "green"),
        "effort": (sparkline(efforts, widths.get("effort", 1), several=_sum), "magenta"),
        "stop": (stop, STOP if stop else ""),
    }
    text = Text.assemble((name, style))
    for title, (cell, look) in cells.items():
        if title in widths:
            padded = fitted(cell, widths[title], right=title in _RIGHT)
            text.append(_GAP).append(padded, look or None)
    return text


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


# --- sparklines -----------------------------------------------------------------------------------

BARS = "▁▂▃▄▅▆▇█"
_NO_BAR = "·"


def _last(values: Sequence[float | None]) -> float | None:
    """The last value, for several rounds that share a bar."""
    return values[-1]


def sparkline(
    values: Sequence[float | None],
    width: int,
    *,
    top: float | None = None,
    several: Callable[[Sequence[float | None]], float | None] = _last,
) -> str:
    """Values as bars, at most ``width`` of them; a dot for a missing value.

    Args:
        values: in order, from 0 up.
        width: the most bars; at least 1.
        top: the value of a full bar; None for the greatest value.
        several: combines values that share a bar.
    """
    if len(values) > width:
        cuts = [round(index * len(values) / width) for index in range(width + 1)]
        values = [several(values[a:b]) for a, b in pairwise(cuts)]
    most = max((value for value in values if value is not None), default=0.0)
    most = most if top is None else top
    return "".join(_NO_BAR if value is None else _bar(value, most) for value in values)


def _bar(value: float, most: float) -> str:
    share = min(max(value / most, 0.0), 1.0) if most > 0 else 0.0
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]
