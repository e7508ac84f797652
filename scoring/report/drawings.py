"""The figures of a report as data: curves, survival, tokens, quintiles, and the forest of a comparison."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import final
from zlib import crc32

from ...engine.text import quantity
from ..comparison.pairs import SIGNIFICANCE, Comparison, Difference
from ..metrics import Buckets, CurvePoint, EffortAxis, Group, Numbers, SessionScore
from ..metrics.buckets import token_ratio
from .document import Axis, Dot, Figure, Key, Line, Mark, Panel, Point, Rule, Series, Words, number
from .rows import compared_title, rows_of

__all__ = (
    "AUTOMATED",
    "Panels",
    "axis_ticks",
    "colours",
    "curve_name",
    "curves",
    "forest",
    "incidence",
    "log_ticks",
    "quintiles",
    "ratio_lines",
    "report_figures",
    "survival",
    "tokens",
)

AUTOMATED = "#4D4D4D"
"""The colour of automated runs, on a white page."""

_KNOWN: Mapping[str, str] = {"one-stage": "#0072B2", "two-stage": "#D55E00", "auto": AUTOMATED}
_OTHERS = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")
"""The rest of the colours of Okabe and Ito, with a dark red in place of yellow and black."""

_DASHES: tuple[tuple[float, ...], ...] = ((), (4, 1.5), (1, 1.2), (5, 1, 1, 1))
"""Dashes and gaps that distinguish series of one colour."""

_SHORTEST = 0.8
"""The least length of a logarithmic axis, in powers of ten, so that it always holds two ticks."""

_ACROSS: Mapping[EffortAxis, str] = {
    "rounds": "Rounds",
    "seconds": "Minutes that the human spent",
    "tokens_read": "Tokens that the human had to read",
    "tokens_written": "Tokens that the human wrote",
}
"""Titles of the axis of the curves."""

_LOWEST = 0.2
"""The least height of the utility axis, so that small differences do not look large."""

_UTILITIES = ("overall", "first", "final", "gain")
"""Quantities on the scale of utility; the drops, whose names begin with ``drop@``, are too."""

Limits = tuple[float, float]
PanelKey = tuple[tuple[str, str], ...]


@final
class Panels:
    """The groups of a report, sorted into panels and series.

    A series is one line, or one kind of dot. The labels that distinguish series are given; by
    default it is the one that names the rows of the report's table. Other labels that vary make
    panels.

    Attributes:
        groups: all groups of collaborating sessions.
        by_panel: the groups of each panel, by the labels of the panel.
        series: all series, in the order of their labels.
        left_out: the groups that are not drawn, since they have too few sessions.

    Args:
        report: the report.
        labels: those that distinguish series.
        marks: the places of agents among the colours and shapes of a page, by name; without them,
            colours go by the names.
        fewest: sessions that a group must have to be drawn.
    """

    def __init__(
        self,
        report: Numbers,
        labels: Sequence[str] | None = None,
        *,
        marks: Mapping[str, int] = {},
        fewest: int = 1,
    ) -> None:
        rows = rows_of(report)
        people = [group for group in rows.groups if not group.baseline]
        self.groups = [group for group in people if group.sessions >= fewest]
        self.left_out = [group for group in people if group.sessions < fewest]
        self._labels = tuple(labels) if labels else (rows.label,)
        names = [name for name in (*rows.sections, rows.label) if name not in self._labels]
        self.by_panel: dict[PanelKey, list[Group]] = {}
        for group in self.groups:
            key = tuple((name, group.group[name]) for name in names if name in group.group)
            self.by_panel.setdefault(key, []).append(group)
        self._keys = sorted({self._key(group.group) for group in people})
        hues = colours(key[0] for key in self._keys)
        hues |= {name: f"var(--a{place + 1})" for name, place in marks.items()}
        kinds = sorted({key[1:] for key in self._keys})
        self.series = [
            Series(
                " · ".join(part for part in key if part) or "all sessions",
                hues[key[0]],
                _DASHES[kinds.index(key[1:]) % len(_DASHES)],
                marks.get(key[0], 0),
            )
            for key in self._keys
        ]

    def place(self, labels: Mapping[str, str]) -> int | None:
        """The place of the series that sessions with these labels belong to; None if none is drawn."""
        key = self._key(labels)
        return self._keys.index(key) if key in self._keys else None

    def keys(self, mark: Mark, groups: Iterable[Group] | None = None) -> list[Key]:
        """The legend of the series that are drawn, or of those of some groups."""
        drawn = self.groups if groups is None else groups
        shown = {self.place(group.group) for group in drawn}
        return [
            Key(one.name, mark, place) for place, one in enumerate(self.series) if place in shown
        ]

    def _key(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(labels.get(name, "") for name in self._labels)


def report_figures(report: Numbers, panels: Panels) -> list[Figure]:
    """All figures for which a report has numbers."""
    drawn = [
        curves(panels, report.axis),
        tokens(panels, report),
        quintiles(panels, report),
        survival(panels),
        incidence(panels),
    ]
    return [figure for figure in drawn if figure is not None]


def curve_name(axis: EffortAxis) -> str:
    """The name of the figure of the curves along an axis."""
    return "curve" if axis == "rounds" else f"curve-{axis}"


def curves(panels: Panels, axis: EffortAxis = "rounds") -> Figure | None:
    """Scaling curves: mean utility against rounds, or another measure of effort; None without one."""
    points = [point for group in panels.groups for point in group.curve]
    if not points:
        return None
    most = max(point.reached for point in points)
    low, high = _utility_limits(panels.groups, points)
    xs = [float(point.x) for point in points]
    margin = 0.04 * (max(xs) - min(xs)) or 0.5
    left, right = min(xs) - margin, max(xs) + margin
    whole = all(x.is_integer() for x in xs)
    automated = any(group.reference.value is not None for group in panels.groups)
    legend = panels.keys("line", [group for group in panels.groups if group.curve])
    across = _ACROSS[axis]
    return Figure(
        name=curve_name(axis),
        title="Scaling curve" if axis == "rounds" else f"Utility against {across.lower()}",
        note=(
            f"Mean utility against {across[0].lower()}{across[1:]}; shorter sessions carried forward. "
            "Shaded: ±1\u00a0SEM over N sessions. Dot area: sessions that reached that point."
        ),
        x=Axis(title=across, low=left, high=right, ticks=axis_ticks(left, right, 8, whole=whole)),
        y=Axis(title="Mean utility", low=low, high=high, ticks=axis_ticks(low, high, 6)),
        series=panels.series,
        panels=[
            Panel(
                title=_title(key),
                note=_size(groups),
                lines=_lines([(panels.place(g.group), g.curve) for g in groups], most),
                rules=[
                    Rule(x=(left, right), y=(value, value), automated=True)
                    for value in {
                        group.reference.value: None
                        for group in groups
                        if group.reference.value is not None
                    }
                ],
            )
            for key, groups in panels.by_panel.items()
        ],
        legend=(*legend, *([Key("automated baseline", "dashed")] if automated else [])),
        sizes=_example_counts(most),
        size_title="Sessions that reached that point:",
    )


def _lines(drawn: Iterable[tuple[int | None, Sequence[CurvePoint]]], most: int) -> tuple[Line, ...]:
    """The curves of a panel, drawn so that a curve does not hide another that coincides with it."""
    lines: list[Line] = []
    courses: list[set[tuple[float, float]]] = []
    for series, curve in drawn:
        if not curve:
            continue
        course = {(point.x, point.mean) for point in curve}
        points = [
            Point(
                x=point.x,
                y=point.mean,
                low=point.mean - (point.sem or 0.0),
                high=point.mean + (point.sem or 0.0),
                size=point.reached
                / most
                * 0.36 ** sum((point.x, point.mean) in other for other in courses),
                values={
                    "SEM": point.sem,
                    "sessions": point.sessions,
                    "of them reached it": point.reached,
                },
            )
            for point in curve
        ]
        covered = any(len(course & other) > 1 for other in courses)
        lines.append(
            Line(points=tuple(points), series=series, covered=covered, bars=len(points) == 1)
        )
        courses.append(course)
    return tuple(lines)


def survival(panels: Panels) -> Figure | None:
    """The share of sessions whose human is still there after each round; None if no human left."""
    points = [point for group in panels.groups for point in group.completion.survival]
    if not any(point.left for point in points):
        return None
    longest = max(point.round for point in points) + 0.5

    def line(group: Group) -> Line:
        course = [Point(x=0, y=1, low=1, high=1)] + [
            Point(
                x=point.round,
                y=point.survival,
                low=point.survival if point.low is None else point.low,
                high=point.survival if point.high is None else point.high,
                crossed=bool(point.censored),
                values={
                    "at risk": point.at_risk,
                    "left": point.left,
                    "ended otherwise": point.censored,
                },
            )
            for point in group.completion.survival
        ]
        return Line(points=tuple(course), series=panels.place(group.group), steps=True)

    return Figure(
        name="survival",
        title="Survival",
        note=(
            "Share of sessions whose human is still there after each round (Kaplan-Meier), with 95 % "
            "intervals. The human leaves if the session is abandoned or stopped by tolerance; all other "
            "ends are censored (+)."
        ),
        x=Axis(title="Rounds", low=0, high=longest, ticks=axis_ticks(0, longest, 8, whole=True)),
        y=Axis(title="Share still there", low=-0.03, high=1.05, ticks=axis_ticks(0, 1, 6)),
        series=panels.series,
        panels=[
            Panel(title=_title(key), lines=[line(g) for g in groups])
            for key, groups in panels.by_panel.items()
        ],
        legend=panels.keys("line"),
    )


def incidence(panels: Panels) -> Figure | None:
    """The share of sessions that are abandoned by the end of each round; None if no human left."""
    points = [point for group in panels.groups for point in group.completion.survival]
    if not any(point.left for point in points):
        return None
    longest = max(point.round for point in points) + 0.5
    most = max(point.incidence_high or point.incidence for point in points)

    def line(group: Group) -> Line:
        course = [Point(x=0, y=0, low=0, high=0)] + [
            Point(
                x=point.round,
                y=point.incidence,
                low=point.incidence if point.incidence_low is None else point.incidence_low,
                high=point.incidence if point.incidence_high is None else point.incidence_high,
                values={
                    "at risk": point.at_risk,
                    "left": point.left,
                    "finished": point.finished,
                    "1 - Kaplan-Meier": 1 - point.survival,
                },
            )
            for point in group.completion.survival
        ]
        return Line(points=tuple(course), series=panels.place(group.group), steps=True)

    return Figure(
        name="incidence",
        title="Abandonment",
        note=(
            "Share of sessions that the human has left by the end of each round (Aalen-Johansen), with 95 % "
            "intervals. Finishing, satisfied, competes with leaving; all other ends are censored."
        ),
        x=Axis(title="Rounds", low=0, high=longest, ticks=axis_ticks(0, longest, 8, whole=True)),
        y=Axis(title="Share abandoned", low=-0.03, high=1.05 * most, ticks=axis_ticks(0, most, 6)),
        series=panels.series,
        panels=[
            Panel(title=_title(key), lines=[line(g) for g in groups])
            for key, groups in panels.by_panel.items()
        ],
        legend=panels.keys("line"),
    )


def tokens(panels: Panels, report: Numbers) -> Figure | None:
    """Effort of both sides: a dot per session on logarithmic axes; None without tokens of both."""
    kinds = [group.group for group in panels.groups]
    people = [
        (place, one)
        for place, one in enumerate(report.scores)
        if not one.baseline and one.group in kinds
    ]
    shown = [
        (one, one.human_tokens, one.agent_tokens, place)
        for place, one in people
        if one.agent_tokens and one.human_tokens
    ]
    if not shown:
        return None
    across = _powers([human for _, human, _, _ in shown])
    up = _powers([agent for _, _, agent, _ in shown])
    length = max(_SHORTEST, *(high - low for low, high in (across, up)))
    across, up = [
        ((low + high - length) / 2, (low + high + length) / 2) for low, high in (across, up)
    ]

    def panel(key: PanelKey, groups: Sequence[Group]) -> Panel:
        kinds = [group.group for group in groups]
        dots = [
            Dot(
                x=human,
                y=agent,
                series=panels.place(one.group),
                session=one.session,
                place=place,
                values={
                    "human tokens": human,
                    "agent tokens": agent,
                    "performance": one.performance,
                },
            )
            for one, human, agent, place in _mixed([row for row in shown if row[0].group in kinds])
        ]
        note = f"N = {len(dots):,}"
        means = [
            Dot(x=human, y=agent, series=panels.place(group.group), mark="mean")
            for group in groups
            if (human := group.effort.human_tokens.value)
            and (agent := group.effort.agent_tokens.value)
        ]
        rules = [
            Rule(
                x=(10 ** across[0], 10 ** across[1]),
                y=(10 ** (ratio + across[0]), 10 ** (ratio + across[1])),
                label=label,
            )
            for ratio, label in ratio_lines(across, up)
        ]
        return Panel(title=_title(key), note=note, dots=(*dots, *means), rules=tuple(rules))

    def axis(title: str, limits: Limits) -> Axis:
        low, high = (10**edge for edge in limits)
        places = [(10**power, name) for power, name in log_ticks(limits)]
        return Axis(title=title, low=low, high=high, ticks=tuple(places), log=True)

    drawn = [panel(key, groups) for key, groups in panels.by_panel.items()]
    tokened = [one.group for one, _, _, _ in shown]
    note = (
        "Tokens that the agent and the (simulated) human generated, a dot per session; ringed: the "
        "mean of an agent. Dashed: equal ratios of agent to human tokens."
    )
    if left := len(people) - len(shown):
        without = quantity(left, "session")
        note += f" {without} without tokens of both sides {'is' if left == 1 else 'are'} not shown."
    return Figure(
        name="tokens",
        title="Effort of both sides",
        note=note,
        x=axis("Human tokens", across),
        y=axis("Agent tokens", up),
        series=panels.series,
        panels=[one for one in drawn if one.dots],
        legend=panels.keys("dot", [group for group in panels.groups if group.group in tokened]),
        square=True,
    )


_Shown = tuple[SessionScore, int, int, int]


def _mixed(shown: Sequence[_Shown]) -> list[_Shown]:
    """Shuffles the drawing order, so that no agent covers another."""
    ranks: dict[str, int] = {}
    keyed = []
    for row in shown:
        kind = str(sorted(row[0].group.items()))
        ranks[kind] = ranks.get(kind, 0) + 1
        keyed.append((ranks[kind], kind, row))
    return [row for _, _, row in sorted(keyed, key=lambda item: item[:2])]


def quintiles(panels: Panels, report: Numbers) -> Figure | None:
    """Final performance by quintile of the ratio of agent to human tokens; None without buckets."""
    drawn = [buckets for buckets in report.buckets if buckets.stats]
    if not drawn or not panels.groups:
        return None

    def panel(buckets: Buckets) -> Panel:
        stats = buckets.stats or ()
        dots = [
            Dot(
                x=index + _jitter(rank),
                y=one.performance or 0.0,
                series=panels.place(one.group),
                session=one.session,
                place=place,
                values={"bucket": index + 1, "performance": one.performance},
            )
            for index, members in enumerate(_members(report, buckets))
            for rank, (place, one) in enumerate(members)
        ]
        means = [
            Point(
                x=index,
                y=one.mean.value,
                low=one.mean.value - (one.sem or 0.0),
                high=one.mean.value + (one.sem or 0.0),
                size=1.0,
                values={"SEM": one.sem, "sessions": one.mean.sessions},
            )
            for index, one in enumerate(stats)
            if one.mean.value is not None
        ]
        others = {name for name in buckets.group if len({b.group.get(name) for b in drawn}) > 1}
        edges = [f"{one.low:g}" for one in stats] + ["∞"]
        return Panel(
            title=_title([pair for pair in buckets.group.items() if pair[0] in others]),
            lines=(Line(points=tuple(means), bars=True),),
            dots=tuple(dots),
            words=[
                Words(x=index, y=1.08, text=f"n = {one.mean.sessions}")
                for index, one in enumerate(stats)
            ],
            ticks=[(index - 0.5, edge) for index, edge in enumerate(edges)],
        )

    return Figure(
        name="ratio",
        title="Performance by balance of effort",
        note=(
            "Final performance by quintile of the ratio of agent to human tokens, a dot per session; "
            "n: sessions. Black: mean ±1\u00a0SEM. Agents are pooled."
        ),
        x=Axis(
            title="Agent tokens per human token",
            low=-0.5,
            high=max(len(buckets.stats or ()) for buckets in drawn) - 0.5,
        ),
        y=Axis(title="Final performance", low=-0.04, high=1.15, ticks=axis_ticks(0, 1, 6)),
        series=panels.series,
        panels=[panel(buckets) for buckets in drawn],
        legend=(*panels.keys("dot"), Key("mean ±1 SEM", "line")),
    )


def forest(comparisons: Sequence[Comparison]) -> Figure | None:
    """The differences in utility with their intervals, a panel per pair of agents; None without any."""
    drawn = [(one, found) for one in comparisons if (found := _utilities(one))]
    if not drawn:
        return None
    edges = [abs(edge) for _, found in drawn for one in found for edge in _edges(one)]
    reach = max(edges) * 1.15 or 0.1
    most = max(len(found) for _, found in drawn)

    def panel(one: Comparison, found: Sequence[Difference]) -> Panel:
        others = [
            value
            for name, value in one.group.items()
            if len({other.group.get(name) for other, _ in drawn}) > 1
        ]
        rows = [(most - 1 - row, each) for row, each in enumerate(found)]
        values = [(y, each, each.difference.value or 0.0) for y, each in rows]
        return Panel(
            title=" · ".join([f"{one.second} – {one.first}", *others]),
            lines=[
                Line(points=(Point(x=min(_edges(each)), y=y), Point(x=max(_edges(each)), y=y)))
                for y, each in rows
            ],
            dots=[
                Dot(
                    x=value,
                    y=y,
                    mark="square"
                    if each.adjusted is not None and each.adjusted < SIGNIFICANCE
                    else "hollow",
                    values={
                        "difference": value,
                        "p": each.p,
                        "p (Holm)": each.adjusted,
                        "pairs": each.pairs,
                    },
                )
                for y, each, value in values
            ],
            rules=(Rule(x=(0, 0), y=(-0.5, most - 0.2)),),
            words=[
                Words(
                    x=-0.98 * reach,
                    y=y + 0.22,
                    text=f"{compared_title(each.quantity)}  (n = {each.pairs})",
                    left=True,
                )
                for y, each in rows
            ],
        )

    return Figure(
        name="compare",
        title="Differences on the same problem",
        note=(
            "Difference on the same problem, the second agent less the first: mean and 95 % interval; to the "
            "right of 0, the second is better. n: problems with a value on both sides. Only outcomes are tested."
        ),
        x=Axis(title="Difference", low=-reach, high=reach, ticks=axis_ticks(-reach, reach, 6)),
        y=Axis(title="", low=-0.5, high=most - 0.2),
        series=(),
        panels=[panel(one, found) for one, found in drawn],
        legend=(
            Key("p < 0.05 after Holm", "square"),
            Key("not significant, or not tested", "hollow"),
        ),
        height=0.3 + 0.3 * most,
    )


def _utilities(comparison: Comparison) -> list[Difference]:
    """The differences on the scale of utility that have a value."""
    return [
        each
        for each in comparison.differences
        if each.difference.value is not None
        and (each.quantity in _UTILITIES or each.quantity.startswith("drop@"))
    ]


def _edges(difference: Difference) -> list[float]:
    found = difference.difference
    return [edge for edge in (found.low, found.value, found.high) if edge is not None]


def _title(key: Iterable[tuple[str, str]]) -> str:
    return " · ".join(value for _, value in key)


def _size(groups: Sequence[Group]) -> str:
    """How many sessions the groups of a panel have."""
    found = sorted({group.sessions for group in groups})
    if len(found) > 1:
        return f"N = {found[0]:,} to {found[-1]:,}"
    return f"N = {found[0]:,}{' each' if len(groups) > 1 else ''}"


def _utility_limits(groups: Iterable[Group], points: Iterable[CurvePoint]) -> Limits:
    """Limits of the utility axis: the range of the drawn values with a margin, in steps of 1/20."""
    edges = [point.mean + sign * (point.sem or 0) for point in points for sign in (-1, 1)]
    edges += [group.reference.value for group in groups if group.reference.value is not None]
    low, high = min(edges), max(edges)
    margin = max(0.02, 0.06 * (high - low))
    low = max(math.floor((low - margin) * 20) / 20, -0.02)
    high = min(math.ceil((high + margin) * 20) / 20, 1.02)
    if high - low < _LOWEST:
        low = max(-0.02, min((low + high - _LOWEST) / 2, 1.02 - _LOWEST))
        high = max(high, low + _LOWEST)
    return low, high


def axis_ticks(
    low: float, high: float, most: int, *, whole: bool = False
) -> list[tuple[float, str]]:
    """At most so many round numbers between two limits, with their labels."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    steps = [n * power for n in (1, 2, 2.5, 5, 10) if not whole or (n * power).is_integer()]
    step = next((one for one in steps if one >= rough * (1 - 1e-9)), None) or max(1.0, 10 * power)
    places = next(n for n in range(12) if n == 11 or abs(round(step, n) - step) < 1e-9 * step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(n * step, number(n * step, places)) for n in range(first, last + 1)]


def _powers(values: Sequence[float]) -> Limits:
    return math.log10(min(values)) - 0.12, math.log10(max(values)) + 0.12


def log_ticks(limits: Limits) -> list[tuple[float, str]]:
    """The ticks of a logarithmic axis with these limits (powers of ten), and their labels.

    Powers of ten; if there would be fewer than three, also 2 and 5 times each.
    """
    low, high = limits
    powers = range(math.floor(low), math.floor(high) + 1)
    steps = (1,) if sum(low <= power <= high for power in powers) >= 3 else (1, 2, 5)
    places = [(power + math.log10(step), step * 10.0**power) for power in powers for step in steps]
    return [(place, _short(value)) for place, value in places if low <= place <= high]


def ratio_lines(across: Limits, up: Limits) -> list[tuple[float, str]]:
    """Lines of equal ratio that cross enough of a square panel: power of ten of the ratio, name.

    Powers of ten; if there would be fewer than three, also 2 and 5 times each.
    """
    length = across[1] - across[0]
    found: list[tuple[float, str]] = []
    for steps in ((1,), (1, 2, 5)):
        found = []
        for power in range(math.floor(up[0] - across[1]) - 1, math.ceil(up[1] - across[0]) + 1):
            for step in steps:
                ratio = power + math.log10(step)
                if abs(ratio + across[0] - up[0]) < 0.85 * length:
                    name = f"{step * 10**power:g}:1" if ratio >= 0 else f"1:{10**-power / step:g}"
                    found.append((ratio, name))
        if len(found) >= 3:
            break
    return found


def _short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _members(report: Numbers, buckets: Buckets) -> list[list[tuple[int, SessionScore]]]:
    """The sessions of each ratio interval with their places, in the order of their ids."""
    stats = buckets.stats or ()
    inner = [bucket.high for bucket in stats[:-1] if bucket.high is not None]
    members: list[list[tuple[int, SessionScore]]] = [[] for _ in stats]
    for place, one in sorted(enumerate(report.scores), key=lambda item: item[1].session):
        ratio = token_ratio(one.agent_tokens, one.human_tokens, report.convention)
        here = all(one.group.get(name, value) == value for name, value in buckets.group.items())
        if here and ratio and not one.baseline and one.performance is not None:
            members[bisect_left(inner, ratio)].append((place, one))
    return members


def _jitter(place: int) -> float:
    """A horizontal shift within ±.31 that spreads dots evenly and repeatably (van der Corput)."""
    shift, part, rest = 0.0, 0.5, place + 1
    while rest:
        rest, digit = divmod(rest, 2)
        shift += digit * part
        part /= 2
    return 0.62 * (shift - 0.5)


def _example_counts(most: int) -> tuple[int, ...]:
    """Two or three counts for a legend of dot sizes, the greatest among them."""
    if most < 4:
        return tuple(range(1, most + 1))
    step = 10 ** max(0, len(str(most)) - 2)
    small = max(1, round(most / 10 / step) * step)
    return small, max(small + 1, round(most / 2 / step) * step), most


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name, the same in every figure as far as the others leave it free.

    The agents that Duolog ships have fixed colours. The colour of any other name depends on the
    name alone, unless another name in the figure has that colour: then it is the next free one.
    """
    wanted = sorted(set(names))
    chosen = {name: _KNOWN[name] for name in wanted if name in _KNOWN}
    for name in wanted:
        if name in chosen:
            continue
        start = crc32(name.encode()) % len(_OTHERS)
        turned = (*_OTHERS[start:], *_OTHERS[:start], *_KNOWN.values())
        free = [colour for colour in turned if colour not in chosen.values()]
        chosen[name] = (free or turned)[0]
    return chosen
