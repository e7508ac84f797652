"""Reports on tables beside those of the Python fold, which is what they are held to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from duolog.scoring.metrics import Convention, Report, aggregate
from duolog.scoring.metrics.forks import without_forks
from duolog.scoring.report import report_data
from duolog.scoring.tables.layout import Manifest, save_manifest, view_of
from duolog.scoring.tables.report import report_tables
from duolog.scoring.tables.rows import COLUMNS, Scored
from duolog.scoring.tables.writing import Rewriting
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.points import Trajectory

__all__ = ("by_fold", "by_tables", "differences", "write_tables")


def write_tables(directory: Path, sessions: Sequence[Trajectory], options: Options) -> None:
    """Writes trajectories as the exporter writes those of a log."""
    directory.mkdir(parents=True, exist_ok=True)
    scored = [Scored(at, None, None, item) for at, item in enumerate(sessions)]
    view = view_of(options)
    parts = Rewriting(directory, 0).parts(view, scored, [])
    save_manifest(
        directory,
        Manifest(log="x", views=(msgspec.structs.replace(view, columns=COLUMNS, parts=parts),)),
    )


def by_fold(
    sessions: Sequence[Trajectory], options: Options, convention: Convention, **settings: int
) -> Report:
    """The report as the Python fold computes it, with its warnings."""
    from duolog.scoring.comparison.sensitivity import order_warnings

    counted = without_forks(sessions)
    report = aggregate(
        counted,
        convention=convention,
        taus=options.taus,
        bootstrap=settings.get("bootstrap", 0),
        seed=settings.get("seed", 0),
    )
    if convention != "formal":
        return report
    whole = [item for item in counted if item.state != "forgotten"]
    return msgspec.structs.replace(report, warnings=order_warnings(whole, options.taus))


def by_tables(directory: Path, options: Options, convention: Convention, **settings: int) -> Report:
    """The report as DuckDB computes it."""
    return report_tables(
        directory,
        options,
        convention=convention,
        bootstrap=settings.get("bootstrap", 0),
        seed=settings.get("seed", 0),
    ).report


def differences(one: Report, other: Report) -> list[str]:
    """Where two reports differ by more than 1e-12."""
    return list(_differences(report_data(one), report_data(other), ""))


def _differences(one: object, other: object, where: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from _differences(one.get(key), other.get(key), f"{where}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, f"{where}/{at}")
    elif isinstance(one, float) and isinstance(other, float):
        if not math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12):
            yield f"{where}: {one!r} and {other!r}"
    elif one != other:
        yield f"{where}: {one!r} and {other!r}"
