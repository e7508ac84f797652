"""A Jupyter notebook that computes a report again."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .._version import __version__
from ..scoring.metrics import Convention, EffortAxis
from ..scoring.trajectory.options import Options

__all__ = ("notebook_of",)


def notebook_of(
    sources: Sequence[str],
    *,
    options: Options,
    convention: Convention = "formal",
    group_by: Sequence[str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    effort: EffortAxis = "rounds",
) -> str:
    """The text of a notebook (nbformat 4.5) that gives the numbers of ``duolog report`` with these arguments.

    Args:
        sources: logs, files of trajectories, or a directory of tables.
        options: how sessions are scored; only rounds, tolerances, utility and judge are kept.
        convention: how sessions are aggregated.
        group_by: the labels that make groups.
        bootstrap: resamples for the intervals.
        seed: the seed of the resampling.
        effort: the axis of the curves.
    """
    scored = (
        f"duolog.Options(rounds={options.rounds!r}, taus={tuple(options.taus)!r}, "
        f"utility={options.utility!r}, judge={options.judge!r})"
    )
    labels = None if group_by is None else list(group_by)
    made = "\n".join(
        (
            "import duolog",
            "",
            "report = duolog.report(",
            f"    {list(sources)!r},",
            f"    convention={convention!r},",
            f"    group_by={labels!r},",
            f"    bootstrap={bootstrap},",
            f"    seed={seed},",
            f"    options={scored},",
            f"    effort={effort!r},",
            ")",
            "report",
        )
    )
    cells = [
        _text(
            "title",
            "# Collaborative effort scaling\n\n"
            f"Made by Duolog {__version__}. It computes the report again from {', '.join(sources)}, with the same "
            "numbers as `duolog report`.",
        ),
        _code("report", made),
        _text("curve-title", "## Utility against effort"),
        _code("curve", "report.plot()"),
        _text("table-title", "## The numbers as a table"),
        _code("table", "report.to_pandas()"),
    ]
    notebook = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1) + "\n"


def _text(name: str, text: str) -> dict[str, object]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text}


def _code(name: str, text: str) -> dict[str, object]:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "source": text,
        "execution_count": None,
        "outputs": [],
    }
