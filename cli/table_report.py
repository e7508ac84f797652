"""The report on a directory of tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..scoring.metrics import Convention, Report
from ..scoring.tables.report import report_tables
from ..scoring.trajectory.options import Options
from .output import say_left_out

__all__ = ("report_directory",)


def report_directory(
    directory: Path,
    options: Options,
    *,
    convention: Convention,
    group_by: Sequence[str] | None,
    bootstrap: int,
    seed: int,
    whole: bool,
) -> Report:
    """The report on a directory, without forks, which would count their beginning twice.

    Raises:
        InvalidInput: as ``report_tables``.
        MissingExtra: DuckDB is not installed.
    """
    found = report_tables(
        directory,
        options,
        convention=convention,
        group_by=group_by,
        bootstrap=bootstrap,
        seed=seed,
        whole=whole,
    )
    say_left_out(found.forks)
    return found.report
