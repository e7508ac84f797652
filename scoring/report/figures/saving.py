"""Draws the figures of a report and writes them; needs the extra ``plots``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....engine.errors import InvalidInput, MissingExtra
from ....engine.log.exchange.output_file import OutputRules, check_output, output_file
from ...metrics import Report, aggregate, effort_curve
from ...trajectory.points import Trajectory
from .curve import draw_curves
from .panels import Panels
from .quintiles import draw_quintiles
from .scatter import draw_scatter
from .style import SETTINGS
from .survival import draw_survival

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ("FORMATS", "save_figures", "write_figures")

FORMATS = ("png", "svg", "pdf")
"""The formats that figures are written in."""

_AXES: Mapping[str, str] = {
    "rounds": "Human-led rounds",
    "acts": "Acts of the human",
    "tokens_written": "Tokens that the human wrote",
    "tokens_read": "Tokens that the human had to read",
    "deferrals": "Vague requests of the human",
    "seconds": "Session time that the human spent (s)",
    "agent_tokens": "Tokens that the agent generated",
    "human_tokens": "Tokens that the human generated",
    "token_ratio": "Agent tokens per human token",
}
"""Axis labels of the measures of effort."""

_NO_DATES: Mapping[str, Mapping[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Metadata to leave out of a file, so that the same report gives the same bytes."""


def save_figures(
    source: Report | Sequence[Trajectory],
    directory: str | os.PathLike[str],
    formats: Sequence[str] = ("png", "svg"),
    *,
    series: Sequence[str] | None = None,
    efforts: Sequence[str] = (),
    rules: OutputRules = OutputRules(),  # noqa: B008  (immutable)
) -> list[Path]:
    """Draws a report's figures and writes them into a directory, which is created if it does not exist.

    ``curve``: mean utility by round with its standard error, dots sized by the number of sessions
    that reached it, the automated baseline as a line. ``tokens``: tokens of agent against human, with lines
    of equal ratio. ``ratio``: final performance by quintile of that ratio. The last two are left
    out if no tokens are known. The same report gives the same files, byte for byte.

    Args:
        source: a report, or trajectories, which are then reported under ``formal``.
        directory: where to write; files of the same names are replaced, unless they are logs.
        formats: of ``png``, ``svg``, ``pdf``.
        series: the labels that distinguish lines within a panel; by default the agent, if it
            varies. All other labels that vary make panels.
        efforts: measures of effort to draw a curve against as well, as in ``Point.effort``; needs
            trajectories as the source.
        rules: what the files may take the place of.

    Returns:
        The files written.

    Raises:
        MissingExtra: matplotlib is not installed.
        InvalidInput: a format is unknown, a label or measure does not occur, or the directory
            cannot be written.
    """
    report = source if isinstance(source, Report) else aggregate(source, bootstrap=0)
    for name in series or ():
        if name not in report.group_by:
            known = ", ".join(report.group_by) or "none"
            raise InvalidInput(
                f"no label {name!r} to distinguish series by; the report has: {known}"
            )
    if efforts and isinstance(source, Report):
        raise InvalidInput("curves against effort are drawn from trajectories, not from a report")
    trajectories = () if isinstance(source, Report) else source
    return write_figures(
        lambda: _figures(report, Panels(report, series), trajectories, efforts),
        directory,
        formats,
        rules,
    )


def write_figures(
    draw: Callable[[], Iterable[tuple[str, Figure]]],
    directory: str | os.PathLike[str],
    formats: Sequence[str],
    rules: OutputRules = OutputRules(),  # noqa: B008  (immutable)
) -> list[Path]:
    """Draws figures in the style of a report, and writes each in all formats, once all are drawn.

    Args:
        draw: gives the figures with the names of their files.
        directory: where to write; made if there is none.
        formats: of ``FORMATS``.
        rules: what the files may take the place of.

    Returns:
        The files written.

    Raises:
        MissingExtra: matplotlib is not installed.
        InvalidInput: a format is unknown, or the directory cannot be written.
    """
    for name in formats:
        if name not in FORMATS:
            raise InvalidInput(f"no figures as {name!r}: choose of {', '.join(FORMATS)}")
    settings: Any = dict(SETTINGS)  # typed differently from version to version of matplotlib
    try:
        from matplotlib import rc_context
    except ModuleNotFoundError as error:
        raise MissingExtra("plots", "a figure") from error
    folder = Path(directory)
    drawn: dict[Path, bytes] = {}
    with rc_context(settings):
        for name, figure in draw():
            for kind in formats:
                data = BytesIO()
                figure.savefig(data, format=kind, metadata=dict(_NO_DATES[kind]))
                drawn[folder / f"{name}.{kind}"] = data.getvalue()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or error
        raise InvalidInput(f"cannot write figures to {os.fspath(directory)}: {why}") from error
    for path in drawn:
        check_output(path, rules)
    for path, contents in drawn.items():
        with output_file(path, rules) as file:
            file.write(contents)
    return list(drawn)


def _figures(
    report: Report,
    panels: Panels,
    trajectories: Sequence[Trajectory],
    efforts: Sequence[str],
) -> Iterator[tuple[str, Figure]]:
    groups = panels.groups
    if any(group.curve for group in groups):
        yield "curve", draw_curves(panels, {id(g): g.curve for g in groups}, "Rounds")
    for measure in efforts:
        curves = {
            id(group): effort_curve(
                [
                    item
                    for item in trajectories
                    if not item.baseline
                    and {n: item.group[n] for n in report.group_by if n in item.group}
                    == group.group
                ],
                measure,
            )
            for group in groups
        }
        if not any(curves.values()):
            raise InvalidInput(f"no session has a measure of effort {measure!r}")
        whole = all(point.x.is_integer() for curve in curves.values() for point in curve)
        axis = _AXES.get(measure, measure.replace("_", " ").capitalize())
        yield f"curve-{measure}", draw_curves(panels, curves, axis, whole=whole)
    if groups and (figure := draw_scatter(panels, report)) is not None:
        yield "tokens", figure
    if (figure := draw_quintiles(panels, report)) is not None:
        yield "ratio", figure
    if groups and (figure := draw_survival(panels)) is not None:
        yield "survival", figure
