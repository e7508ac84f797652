"""The tables of a report as HTML: a row for each group, and pairs of agents beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ....engine.display import shorten
from ....engine.text import quantity
from ....scoring.comparison.pairs import Comparison, Difference
from ....scoring.metrics import Estimate, Group, Report
from ....scoring.report.figures.panels import Panels
from ....scoring.report.text.effort import EFFORT_TITLES, effort_estimates, effort_texts
from ....scoring.report.text.wording import (
    ABSENT,
    Rows,
    absences,
    compared_places,
    compared_title,
    completeness,
    number,
    percent,
    provenance,
    rows_of,
    span,
)
from ..markup.html import Html, Node, join, tag

__all__ = ("comparison_tables", "report_table")

_NAME: Final = 60


def report_table(report: Report, panels: Panels) -> Html:
    """The paper's numbers by group, with their intervals, and what is to be known about them."""
    rows = rows_of(report)
    if not rows.groups:
        notes = ["There are no sessions to report on.", *completeness(report)]
        return join([tag("p", note) for note in notes])
    titles = [
        rows.label.capitalize(),
        "N",
        "First update",
        "Final step",
        "Overall",
        "Gain",
        "Gain %",
    ]
    titles += [f"Drop τ = {tau}" for tau in report.taus]
    titles += EFFORT_TITLES
    head = tag("thead", _head(titles))
    body: list[Node] = []
    section = ""
    for group in rows.groups:
        if rows.section(group) != section:
            section = rows.section(group)
            body.append(tag("tr", tag("th", section, colspan=len(titles), scope="colgroup")))
        body.append(_row(group, rows, panels))
    table = tag(
        "table",
        tag("caption", "Groups of sessions", class_="unseen"),
        head,
        tag("tbody", body),
        class_="sessions report",
    )
    notes = [*absences(report.groups, rows), *completeness(report), *provenance(report)]
    intervals = (
        f"Below each number its {100 * report.level:g} % bootstrap interval over sessions "
        f"({report.resamples:,} resamples)."
    )
    wide = tag("div", table, class_="wide", tabindex=0, role="region", aria_label="Report")
    return join(wide, [tag("p", note, class_="quiet") for note in (intervals, *notes)])


def _head(titles: Sequence[str]) -> Html:
    """The titles of the columns: of names first, and then of numbers."""
    first, *numbers = (shorten(title, _NAME) for title in titles)
    cells = [tag("th", title, scope="col", class_="number") for title in numbers]
    return tag("tr", tag("th", first, scope="col"), cells)


def _row(group: Group, rows: Rows, panels: Panels) -> Html:
    key = panels.series(group.group)
    look = panels.looks.get(key)
    swatch = None
    if look is not None and not group.baseline:
        dot = tag("circle", cx=5, cy=5, r=5, fill=look.colour)
        swatch = tag("svg", dot, viewBox="0 0 10 10", class_="dot-of", aria_hidden="true")
    cells: list[Node] = [
        tag("th", swatch, shorten(rows.name(group), _NAME), scope="row", dir="auto"),
        tag("td", f"{group.sessions:,}", class_="number"),
    ]
    cells += [_cell(one) for one in (group.first, group.final, group.overall, group.gain_abs)]
    cells.append(_cell(group.gain_rel, percent(group.gain_rel.value), ""))
    cells += [_cell(drop.abs) for drop in group.drops]
    efforts = zip(effort_estimates(group), effort_texts(group), strict=True)
    cells += [_cell(estimate, *text) for estimate, text in efforts]
    series = None if look is None or group.baseline else list(panels.looks).index(key)
    return tag("tr", cells, data_series=series)


def _cell(estimate: Estimate, text: str | None = None, below: str | None = None) -> Html:
    shown = number(estimate.value) if text is None else text
    if shown == ABSENT:
        why = tag("abbr", ABSENT, title=estimate.reason or "")
        return tag("td", why, class_="number")
    under = span(estimate) if below is None else below
    return tag("td", shown, tag("small", under) if under else None, class_="number")


def comparison_tables(comparisons: Sequence[Comparison]) -> Html:
    """Agents beside each other on the instances that both played."""
    untested = any(one.untested for one in comparisons)
    note = "p is missing: the workbench runs without Duolog's extra analytics, which tests need."
    return join(
        [_comparison(one) for one in comparisons],
        tag("p", note, class_="quiet") if untested else None,
    )


def _comparison(one: Comparison) -> Html:
    others = ", ".join(f"{key} {value}" for key, value in one.group.items())
    about = f"{quantity(one.pairs, 'instance')} that both played"
    title = f"{one.second} beside {one.first}: {about}{f'; {others}' if others else ''}"
    titles = (
        "Quantity",
        "Pairs",
        one.first,
        one.second,
        "Difference",
        "p",
        "p (Holm)",
        "Effect d_z",
    )
    head = _head(titles)
    rows = [_difference(difference) for difference in one.differences]
    table = tag(
        "table",
        tag("caption", shorten(title, 300)),
        tag("thead", head),
        tag("tbody", rows),
        class_="sessions report",
    )
    return tag(
        "div", table, class_="wide", tabindex=0, role="region", aria_label=shorten(title, 80)
    )


def _difference(one: Difference) -> Html:
    places = compared_places(one.quantity)
    difference = number(one.difference.value, places)
    cells = [
        tag("td", str(one.pairs), class_="number"),
        tag("td", number(one.first, places), class_="number"),
        tag("td", number(one.second, places), class_="number"),
        _cell(one.difference, difference, span(one.difference, min(places, 2))),
        tag("td", number(one.p), class_="number"),
        tag("td", number(one.adjusted), class_="number"),
        tag("td", number(one.effect, 2), class_="number"),
    ]
    return tag("tr", tag("th", compared_title(one.quantity), scope="row"), cells)
