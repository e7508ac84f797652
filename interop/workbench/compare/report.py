"""Makes the report of some trajectories: what the page shows, and the data that its script draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ....engine.errors import InvalidInput
from ....scoring.comparison.pairs import Comparison, compare
from ....scoring.metrics import Report, aggregate
from ....scoring.report.figures.geometry import left_out_note, token_sessions
from ....scoring.report.figures.panels import Panels
from ....scoring.report.page.data import has_left, page_data
from ....scoring.trajectory.points import Trajectory
from ..markup.html import Html, Node, join, tag
from .tables import comparison_tables, report_table

__all__ = ("make_pairs", "make_report")

_RESAMPLES: Final = 400
_LABEL: Final = "agent"
_AGENTS: Final = 4  # that are put beside each other, each with each
_LINK: Final = "/session?id="


def make_report(trajectories: Sequence[Trajectory], taus: Sequence[int]) -> dict[str, object]:
    """The report as HTML, and its data; takes a moment, so call it in a thread.

    Raises:
        InvalidInput: a utility is not within 0 and 1.
    """
    report = aggregate(trajectories, taus=taus, bootstrap=_RESAMPLES)
    panels = Panels(report)
    parts: list[Node] = [report_table(report, panels), *_figures(report, panels)]
    data = page_data(report, panels) | {"link": _LINK}
    return {"html": join(parts).text, "data": msgspec.json.encode(data).decode()}


def make_pairs(trajectories: Sequence[Trajectory], taus: Sequence[int]) -> str:
    """Agents beside each other as HTML, empty where there are no two; takes seconds."""
    paired, why = _paired(trajectories, taus)
    if not paired and not why:
        return ""
    note = tag("p", why, class_="quiet") if why else None
    return join(tag("h2", "Agents beside each other"), note, comparison_tables(paired)).text


def _paired(
    trajectories: Sequence[Trajectory], taus: Sequence[int]
) -> tuple[Sequence[Comparison], str]:
    """The comparisons, or why there are none though there are several agents."""
    names = sorted({one.group[_LABEL] for one in trajectories if _LABEL in one.group})
    if len(names) < 2:
        return (), ""
    shown = names[:_AGENTS]
    note = "" if shown == names else f"Of {len(names)} agents the first {_AGENTS}."
    try:
        return compare(trajectories, shown, taus=taus, bootstrap=_RESAMPLES), note
    except InvalidInput as error:
        return (), f"No comparison by pairs: {error}."


def _figures(report: Report, panels: Panels) -> list[Html]:
    figures: list[Html] = []
    if has_left(panels.groups):
        note = (
            "Share of sessions whose human is still there after each round (Kaplan-Meier), with 95 % "
            "intervals. Crosses: sessions that ended otherwise, or are open."
        )
        figures.append(_figure("Survival", note, "survival"))
    if any(group.curve for group in panels.groups):
        note = (
            "Mean utility after each round, shorter sessions carried forward. Shaded: ±1 SEM over "
            "sessions. Dot area: sessions that reached that round."
        )
        figures.append(_figure("Scaling curve", note, "curves"))
    shown, left_out = token_sessions(report)
    if shown:
        note = "Tokens that agent and human generated, a dot per session: it leads there, by the arrow keys and Enter too."
        if left_out:
            note += f" {left_out_note(left_out)}"
        figures.append(_figure("Effort of both sides", note, "tokens"))
    if any(buckets.stats for buckets in report.buckets):
        note = (
            "Final performance by quintile of the ratio of agent to human tokens, a dot per session; "
            "line: mean ±1 SEM."
        )
        figures.append(_figure("Performance by balance of effort", note, "ratios"))
    switches = tag("div", id="switches", class_="switches", role="group", aria_label="Series")
    return [switches, tag("div", figures, class_="figures")] if figures else []


def _figure(title: str, note: str, name: str) -> Html:
    return tag(
        "section",
        tag("h2", title),
        tag("p", note, class_="quiet"),
        tag("div", id=name, class_="panels"),
    )
