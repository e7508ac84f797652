"""The numbers of the gallery: one table and one figure for each task, of 100 instances."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from duolog.benchmarks.science.cells import Size
from duolog.benchmarks.science.phenomena import PERSON
from duolog.benchmarks.science.playing import Played, Players, load, play
from duolog.benchmarks.science.words import table
from duolog.scoring.metrics.results import Estimate, Group, Numbers
from duolog.scoring.report import make_report, report_document
from duolog.scoring.report.drawings import Panels, curves
from duolog.scoring.report.plots import write_figures
from duolog.tasks.kit import HUMAN_ALONE

__all__ = ("SEED", "gallery_text", "play_gallery")

SEED: Final = 11
"""The seed of the instances in the gallery."""

_AGENTS: Final = ("auto", HUMAN_ALONE, "one-stage", "careful", "two-stage", "adaptive")
_NAMES: Final = {"auto": "agent alone (`auto`)", HUMAN_ALONE: "human alone (`human-alone`)"}
_AS_ONE_STAGE: Final = ("data", "finance", "proof")  # `careful` does as `one-stage` there
_ROBUST: Final = "The drop under "


async def play_gallery(task: str, size: Size, folder: Path) -> Played:
    """Plays the sessions of a task's page, as far as the log does not hold them, and reads them.

    Args:
        task: the task.
        size: what is played.
        folder: the folder of the logs.
    """
    agents = [one for one in _AGENTS if one != "careful" or task not in _AS_ONE_STAGE]
    await play(task, [Players(agents, (PERSON,), size.gallery)], (SEED,), folder)
    return await load(task, folder, (SEED,))


def gallery_text(played: Played, size: Size, figure: Path) -> str:
    """The numbers of a task in Markdown; draws its figure.

    Args:
        played: from ``play_gallery``.
        size: what was played.
        figure: where to draw the curves, an SVG.
    """
    sessions = [item for found in played.values() for item in found.values()]
    report = make_report(sessions, taus=(1, 2), bootstrap=size.resamples)
    drawn = figure.with_suffix(".figures")
    curve = curves(Panels(report))
    assert curve is not None
    write_figures([curve], drawn, ("svg",))
    shutil.move(drawn / "curve.svg", figure)
    shutil.rmtree(drawn)
    groups: Mapping[str, Group] = {one.group["agent"]: one for one in report.groups}
    rows = [
        [_NAMES.get(name, f"`{name}`"), *_cells(groups[name])] for name in _AGENTS if name in groups
    ]
    head = (
        "who",
        "first utility",
        "overall utility",
        "drop at τ = 1",
        "drop at τ = 2",
        "rounds",
        "the human's time",
    )
    return "\n".join([*table(head, rows), "", *_notes(report)])


def _cells(group: Group) -> list[str]:
    if group.baseline:
        return [_number(group.final), _interval(group.final), "", "", "", ""]
    seconds = group.effort.measures["seconds"].value
    minutes = "" if seconds is None else f"{int(seconds + 0.5) // 60}:{int(seconds + 0.5) % 60:02}"
    rounds = group.effort.all_rounds.value
    return [
        _number(group.first),
        _interval(group.overall),
        *[_drop(one.rel) for one in group.drops],
        "" if rounds is None else f"{rounds:.1f}",
        minutes,
    ]


def _number(found: Estimate) -> str:
    return "" if found.value is None else f"{found.value:.2f}"


def _interval(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return _number(found)
    return f"{_number(found)} ({found.low:.2f} to {found.high:.2f})"


def _drop(found: Estimate) -> str:
    return "" if found.value is None else f"{100 * found.value:.1f}%"


def _notes(report: Numbers) -> list[str]:
    notes = [
        note.text
        for section in report_document(report, whole=False).sections
        for note in section.notes
    ]
    return [note for note in notes if note.startswith(_ROBUST)]
