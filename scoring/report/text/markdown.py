"""The paper's table as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from ...metrics import Estimate, Group, Report
from .wording import Rows, absences, completeness, number, percent, rows_of, span

__all__ = ("report_markdown",)


def report_markdown(report: Report) -> str:
    """The paper's table in GitHub-flavoured Markdown: a row per group, intervals in brackets."""
    rows = rows_of(report)
    labels = [*rows.sections, rows.label]
    head = [name.capitalize() for name in labels]
    head += ["N", "Automated baseline", "First update", "Final step", "Overall"]
    head += ["Gain abs.", "Gain rel."]
    for tau in report.taus:
        head += [f"Drop@{tau} abs.", f"Drop@{tau} rel."]
    rule = [":--"] * len(labels) + ["--:"] * (len(head) - len(labels))
    lines = [_line(head), _line(rule)]
    lines += [_line(_cells(group, rows, labels)) for group in rows.groups]
    notes = [f"{name} {value}" for name, value in rows.shared.items()]
    notes.append(f"Convention {report.convention}")
    if report.resamples:
        notes.append(
            f"in brackets the {100 * report.level:g} % bootstrap interval over sessions "
            f"({report.resamples:,} resamples, seed {report.seed})"
        )
    notes += absences(report.groups, rows)
    notes += completeness([group.counts for group in report.groups if not group.baseline])
    return "\n".join([*lines, "", "; ".join(notes) + "."]) + "\n"


def _cells(group: Group, rows: Rows, labels: Sequence[str]) -> list[str]:
    cells = [group.group.get(name, "") for name in labels]
    if not group.group:
        cells[-1] = rows.name(group)
    cells.append(f"{group.sessions:,}")
    final = Estimate() if group.baseline else group.final
    reference = group.final if group.baseline else group.reference
    utility = (reference, group.first, final, group.overall)
    cells += [_with(number(estimate.value), estimate) for estimate in utility]
    pairs = [(group.gain_abs, group.gain_rel), *[(drop.abs, drop.rel) for drop in group.drops]]
    for absolute, relative in pairs:
        cells += [_with(number(absolute.value), absolute), percent(relative.value)]
    return cells


def _with(text: str, estimate: Estimate) -> str:
    interval = span(estimate)
    return f"{text} [{interval}]" if interval else text


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
