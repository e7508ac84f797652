"""A report as one self-contained HTML page: tables, and interactive curves and scatter plots.

The page embeds the numbers as JSON, with a style sheet and a script of a few hundred lines that
draw them. It loads nothing: its content security policy forbids it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files

import msgspec

from ...engine.text import quantity
from ..metrics import Estimate, Group, Report
from .figures.geometry import left_out_note, token_sessions
from .figures.panels import Panels
from .page.data import has_left, page_data
from .page.sessions import LISTED, session_sections
from .text.completion import (
    COMPLETION_NOTE,
    HAZARD_NOTE,
    has_hazard,
    hazard_text,
    longest_stall,
    outcomes_of,
    share_text,
)
from .text.effort import EFFORT_TITLES, effort_estimates, effort_texts
from .text.process import (
    PROCESS_GROUPS,
    PROCESS_NOTE,
    has_process,
    process_sessions,
    process_value,
)
from .text.wording import (
    ABSENT,
    Rows,
    absences,
    completeness,
    has_intervals,
    number,
    percent,
    provenance,
    rows_of,
    span,
)

__all__ = ("report_html",)

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def report_html(
    report: Report,
    *,
    title: str = "Collaborative effort scaling",
    transcripts: Mapping[str, str] | None = None,
    commands: Mapping[str, str] | None = None,
) -> str:
    """The page of a report: HTML with everything that it needs.

    Args:
        report: the report.
        title: of the page.
        transcripts: texts of sessions, by id, to be put on the page: rows and dots lead there.
        commands: by id, the command that shows a session whose transcript is not on the page.
    """
    panels = Panels(report)
    data = msgspec.json.encode(page_data(report, panels)).decode().replace("<", "\\u003c")
    assets = files(f"{__package__}.page")
    style = assets.joinpath("report.css").read_text(encoding="utf-8")
    script = assets.joinpath("report.js").read_text(encoding="utf-8")
    parts = [*_head(report, title), *_sections(report, panels)]
    parts += _session_lists(report, transcripts or {}, commands or {})
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n"
        f'<div id="tip" role="status"></div>\n<script type="application/json" id="data">{data}'
        f"</script>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _head(report: Report, title: str) -> list[str]:
    rows = rows_of(report)
    shared = " · ".join(f"{name} {value}" for name, value in rows.shared.items())
    sessions = sum(group.sessions for group in report.groups if not group.baseline)
    automated = sum(group.sessions for group in report.groups if group.baseline)
    about = quantity(sessions, "session")
    if automated:
        about += f", {quantity(automated, 'automated run')}"
    about += f", convention {report.convention}"
    return [
        f"<h1>{escape(title)}</h1>",
        f'<p class="note">{escape(" · ".join(part for part in (shared, about) if part))}</p>',
        '<div class="switches" id="switches"></div>',
    ]


def _sections(report: Report, panels: Panels) -> list[str]:
    parts = ["<h2>Utility, gain and drop</h2>", *_table(report, panels)]
    if has_process(report.groups):
        parts += ["<h2>Process</h2>", *_process_table(rows_of(report), panels)]
    if any(group.completion.outcomes for group in rows_of(report).groups):
        parts += ["<h2>How sessions ended</h2>", *_completion_table(rows_of(report), panels)]
    if has_hazard(report.groups):
        parts += _hazard_table(rows_of(report), panels)
    figures: list[str] = []
    if has_left(panels.groups):
        note = (
            "Share of sessions whose human is still there after each round (Kaplan-Meier). Shaded: 95 % "
            "intervals. Crosses: sessions that ended otherwise, or are open, and say no more from there on."
        )
        figures += _figure("Survival", note, "survival")
    if any(group.curve for group in panels.groups):
        note = (
            "Mean utility after each round, shorter sessions carried forward. Shaded: ±1 SEM over "
            "sessions. Dot area: sessions that reached that round. Dashed grey: automated runs."
        )
        figures += _figure("Scaling curve", note, "curves")
    shown, left_out = token_sessions(report)
    if shown:
        note = "Tokens that the agent and the (simulated) human generated, a dot per session."
        if left_out:
            note += f" {left_out_note(left_out)}"
        figures += _figure("Effort of both sides", note, "tokens")
    if any(buckets.stats for buckets in report.buckets):
        note = (
            "Final performance by quintile of the ratio of agent to human tokens, a dot per "
            "session; line: mean ±1 SEM, all agents together."
        )
        figures += _figure("Performance by balance of effort", note, "ratios")
    if figures:
        kind = "figures" if len(panels.by_panel) == 1 else "figures rows"
        parts += [f'<div class="{kind}">', *figures, "</div>"]
    return parts


def _session_lists(
    report: Report, transcripts: Mapping[str, str], commands: Mapping[str, str]
) -> list[str]:
    if not report.scores:
        return []
    if len(report.scores) > LISTED:
        note = f"{quantity(len(report.scores), 'session')} are too many to list on this page."
        return ["<h2>Sessions</h2>", f'<p class="note">{note}</p>']
    rows = rows_of(report)
    groups = [
        (" · ".join(part for part in (rows.section(group), rows.name(group)) if part), group)
        for group in rows.groups
    ]
    groups += [
        (", ".join([*group.group.values(), "automated"]), group)
        for group in report.groups
        if group not in rows.groups
    ]
    return session_sections(groups, report.scores, transcripts, commands)


def _figure(title: str, note: str, name: str) -> list[str]:
    return [
        f"<section><h2>{title}</h2>",
        f'<p class="note">{note}</p>',
        f'<div class="panels" id="{name}"></div></section>',
    ]


def _table(report: Report, panels: Panels) -> list[str]:
    rows = rows_of(report)
    if not rows.groups:
        notes = ["There are no sessions to report on.", *completeness(report)]
        return [f"<p>{escape(note)}</p>" for note in notes]
    spans = [("Utility", 3), ("Gain", 2)]
    spans += [(f"Drop at τ = {tau}", 2) for tau in report.taus]
    spans += [("Effort per session", 4)]
    names = [rows.label.capitalize(), "N", "Automated baseline"]
    names += ["First update", "Final step", "Overall"]
    names += ["abs.", "rel."] * (1 + len(report.taus))
    names += EFFORT_TITLES
    head = '<tr><th colspan="3"></th>'
    head += "".join(f'<th class="span" colspan="{wide}">{name}</th>' for name, wide in spans)
    head += f'</tr>\n<tr><th class="name">{escape(names[0])}</th>'
    head += "".join(f"<th>{name}</th>" for name in names[1:]) + "</tr>"
    linked = len(report.scores) <= LISTED
    lines = _body(head, len(names), rows, panels, _cells, linked=linked)
    notes = [*absences(report.groups, rows)]
    if has_intervals(report):
        notes.insert(
            0,
            f"Below each number its {100 * report.level:g} % bootstrap interval over sessions "
            f"({report.resamples:,} resamples, seed {report.seed}).",
        )
    notes += [*completeness(report), *provenance(report)]
    return [*lines, *[f'<p class="note">{escape(note)}</p>' for note in notes]]


def _process_table(rows: Rows, panels: Panels) -> list[str]:
    columns = [column for part in PROCESS_GROUPS for column in part.columns]
    head = '<tr><th colspan="2"></th>'
    for part in PROCESS_GROUPS:
        head += f'<th class="span" colspan="{len(part.columns)}">{part.title}</th>'
    head += f'</tr>\n<tr><th class="name">{escape(rows.label.capitalize())}</th><th>N</th>'
    head += "".join(f"<th>{column.name}</th>" for column in columns) + "</tr>"

    def cells(group: Group) -> list[str]:
        found = [process_value(group, column) for column in columns]
        sessions = f"<td>{process_sessions(group):,}</td>"
        return [sessions, *[_cell(one, number(one.value, 2)) for one in found]]

    lines = _body(head, 2 + len(columns), rows, panels, cells)
    return [*lines, f'<p class="note">{escape(PROCESS_NOTE)}.</p>']


def _completion_table(rows: Rows, panels: Panels) -> list[str]:
    """How sessions ended: each outcome with its share, and below it the interval of the share."""
    names = outcomes_of(rows.groups)
    head = f'<tr><th class="name">{escape(rows.label.capitalize())}</th><th>N</th>'
    head += "".join(f"<th>{escape(name.capitalize())}</th>" for name in names) + "</tr>"

    def cells(group: Group) -> list[str]:
        shares = [share_text(group.completion.outcomes.get(name)) for name in names]
        return [f"<td>{group.sessions:,}</td>", *[_two_lines(*share) for share in shares]]

    lines = _body(head, 2 + len(names), rows, panels, cells)
    return [*lines, f'<p class="note">{escape(COMPLETION_NOTE)}.</p>']


def _hazard_table(rows: Rows, panels: Panels) -> list[str]:
    """The hazard by rounds without progress in a row, and below each its interval."""
    runs = range(longest_stall(rows.groups) + 1)
    head = f'<tr><th></th><th class="span" colspan="{len(runs)}">Hazard by rounds without progress</th>'
    head += f'</tr>\n<tr><th class="name">{escape(rows.label.capitalize())}</th>'
    head += "".join(f"<th>{run}</th>" for run in runs) + "</tr>"

    def cells(group: Group) -> list[str]:
        return [_two_lines(*hazard_text(group, run)) for run in runs]

    lines = _body(head, 1 + len(runs), rows, panels, cells)
    return [*lines, f'<p class="note">{escape(HAZARD_NOTE)}.</p>']


def _body(
    head: str,
    width: int,
    rows: Rows,
    panels: Panels,
    cells: Callable[[Group], list[str]],
    *,
    linked: bool = False,
) -> list[str]:
    """A table: its head, and a row per group, section by section; ``linked`` to its sessions."""
    lines = ['<div class="wide"><table>', f"<thead>\n{head}\n</thead>\n<tbody>"]
    order = list(panels.looks)
    section = ""
    for place, group in enumerate(rows.groups):
        if rows.section(group) != section:
            section = rows.section(group)
            heading = f'<td colspan="{width}">{escape(section)}</td>'
            lines.append(f'<tr class="section">{heading}</tr>')
        name = escape(rows.name(group))
        if linked:
            name = f'<a href="#g{place}">{name}</a>'
        lines.append(_row(group, name, panels, order, cells(group)))
    lines.append("</tbody></table></div>")
    return lines


def _row(
    group: Group,
    name: str,
    panels: Panels,
    order: Sequence[tuple[str, ...]],
    cells: Sequence[str],
) -> str:
    key = panels.series(group.group)
    mark, swatch = "", ""
    if not group.baseline:
        mark = f' data-series="{order.index(key)}"'
        swatch = f'<span class="swatch" style="background:{panels.looks[key].colour}"></span>'
    return f'<tr{mark}><td class="name">{swatch}{name}</td>{"".join(cells)}</tr>'


def _cells(group: Group) -> list[str]:
    """Utility, gain, drop and tokens of a group."""
    final = group.final
    if group.baseline:
        final = Estimate(reason=group.overall.reason)
    cells = [
        f"<td>{group.sessions:,}</td>",
        _cell(group.final if group.baseline else group.reference),
        *[_cell(estimate) for estimate in (group.first, final, group.overall)],
    ]
    pairs = [(group.gain_abs, group.gain_rel), *[(drop.abs, drop.rel) for drop in group.drops]]
    for absolute, relative in pairs:
        below = _percents(relative)
        cells += [_cell(absolute), _cell(relative, percent(relative.value), below)]
    efforts = zip(effort_estimates(group), effort_texts(group), strict=True)
    return cells + [_cell(estimate, *text) for estimate, text in efforts]


def _cell(estimate: Estimate, text: str | None = None, below: str | None = None) -> str:
    shown = number(estimate.value) if text is None else text
    if shown == ABSENT:
        return f'<td><abbr title="{escape(estimate.reason or "")}">{ABSENT}</abbr></td>'
    return _two_lines(shown, span(estimate) if below is None else below)


def _percents(estimate: Estimate) -> str:
    """The interval of a share, as percentages."""
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return ""
    return f"{number(100 * estimate.low, 0)} to {number(100 * estimate.high, 0)}%"


def _two_lines(shown: str, below: str) -> str:
    return f"<td>{shown}{f'<small>{below}</small>' if below else ''}</td>"
